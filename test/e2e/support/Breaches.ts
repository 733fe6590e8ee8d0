/** What careless servers do, and which check of the contract must notice it. */
import * as Told from "../../web/support/Told.js"
import type * as Breaker from "./Breaker.js"

export const tokens = { token: "token-of-alice-5d1f", otherToken: "token-of-bob-77ac" }

export const seqOf = (block: string): number => Number(/^id: (\d+)/m.exec(block)?.[1] ?? 0)
const isTerminal = (block: string): boolean => /"event":\{"type":"(finish|cancelled|error)"/.test(block)
const isJson = (text: string): boolean => text.startsWith("{")

/** A run whose events the server has removed, but for its end. */
export const removed = Told.tell({ n: 1 }, [...Told.text("It is all that is left."), ...Told.done()])

const toWhatIsLeft = (asked: Breaker.Asked) => {
  if (asked.url === `/runs/${removed[0]?.runId}/events`) asked.url += `?after=${removed.length - 1}`
}

const withoutKey = ({ headers }: Breaker.Asked) => {
  delete headers["idempotency-key"]
}

const inAnotherConversation = (asked: Breaker.Asked) => {
  if (asked.url === "/chat") asked.body = asked.body.replace(/,"conversationId":"[^"]+"/, "")
}

/** What a careless server does, the check that must notice, and which checks are made, if not that one alone. */
export const breaches: ReadonlyArray<readonly [string, string, Breaker.Breach, string?]> = [
  ["leaves an event out", "a log counts 1, 2, 3", { frame: (block) => (seqOf(block) === 5 ? [] : [block]) }],
  [
    "ends a run twice",
    "a log counts 1, 2, 3",
    {
      frame: (block) =>
        isTerminal(block) ? [block, block.replaceAll(String(seqOf(block)), String(seqOf(block) + 1))] : [block]
    }
  ],
  [
    "does not say that a run has ended",
    "a log counts 1, 2, 3",
    { frame: (block) => (isTerminal(block) ? [] : [block]) }
  ],
  [
    "begins one event too late",
    "behind a cursor comes the log",
    {
      asking: (asked) => {
        asked.url = asked.url.replace(/after=(\d+)$/, (_, n) => `after=${Number(n) + (Number(n) > 2 ? 1 : 0)}`)
      }
    }
  ],
  [
    "does not know Last-Event-ID",
    "behind a cursor comes the log",
    {
      asking: ({ headers }) => {
        delete headers["last-event-id"]
      }
    }
  ],
  [
    "lets ?after win",
    "Last-Event-ID wins",
    {
      asking: (asked) => {
        if (asked.url.includes("after=")) delete asked.headers["last-event-id"]
      }
    }
  ],
  [
    "guesses at cursors",
    "what is no cursor is refused",
    {
      asking: (asked) => {
        asked.url = asked.url.replace(/after=0+(?=\d)/, "after=")
      }
    }
  ],
  [
    "answers a client at the end with an empty stream",
    "at the end of a run that is over",
    {
      instead: ({ url }) =>
        /after=\d+$/.test(url) && Number(/\d+$/.exec(url)?.[0]) > 20 ? { status: 200, json: "" } : undefined
    }
  ],
  [
    "names frames, which an EventSource then does not show",
    "a run can be started",
    { frame: (block) => [block.startsWith("id:") ? `event: message\n${block}` : block] }
  ],
  [
    "shows what is not stored yet",
    "what a client sees is stored",
    {
      answer: (body, { method, url }) =>
        method === "GET" && /^\/runs\/[^/?]+$/.test(url)
          ? body.replace(/"lastSeq":(\d+)/, (_, n) => `"lastSeq":${Math.max(0, Number(n) - 40)}`)
          : body
    }
  ],
  [
    "shows a snapshot that is not its log",
    "a snapshot is the fold of the log",
    { answer: (body, { url }) => (/^\/runs\/[^/?]+$/.test(url) ? body.replace(/"text":"(\w)/, '"text":"$1$1') : body) }
  ],
  [
    "only says that it cancelled",
    "a run that is cancelled ends",
    {
      instead: ({ url }) =>
        url.endsWith("/cancel") ? { status: 200, json: { runId: "run_1", status: "cancelled", lastSeq: 9 } } : undefined
    }
  ],
  ["sends no heartbeats", "a stream is never silent", { frame: (block) => (block.startsWith(": hb") ? [] : [block]) }],
  ["does not know Idempotency-Key", "the same key with the same body", { asking: withoutKey }],
  [
    "takes everybody for one user",
    "what belongs to somebody else",
    {
      asking: ({ headers }) => {
        headers.authorization = `Bearer ${tokens.token}`
      }
    }
  ],
  [
    "says Forbidden where it should say nothing",
    "what belongs to somebody else",
    {
      instead: ({ headers, url }) =>
        headers.authorization?.endsWith(tokens.otherToken) === true && !url.includes("00000000")
          ? { status: 403, json: { _tag: "Forbidden", message: "This is not yours." } }
          : undefined
    }
  ],
  [
    "does not look at the hash of what was shown",
    "a decision that does not fit",
    {
      asking: (asked) => {
        if (!asked.url.includes("/approvals/") || !isJson(asked.body)) return
        const { previewHash: _, ...body } = JSON.parse(asked.body)
        asked.body = JSON.stringify(body)
      }
    }
  ],
  [
    "takes a rejection for an approval",
    "what is rejected does not happen",
    {
      asking: (asked) => {
        asked.body = asked.body.replace('"decision":"reject"', '"decision":"approve"')
      }
    }
  ],
  [
    "shows its stack",
    "what does not exist is refused",
    {
      answer: (body) =>
        body.replace('"message":"There is no such run', '"message":"Error\\n    at find (store.js:1:1) no')
    }
  ],
  [
    "shows every viewer something else",
    "everybody who watches a run sees the same",
    {
      frame: (block, { method, n }) =>
        method === "GET" && n % 2 === 0 ? [block.replace('"delta":"', '"delta":" ')] : [block]
    }
  ],
  [
    "stops a run whose client leaves",
    "a client that leaves does not stop its run",
    {
      left: ({ url }, runId) => (url === "/chat" ? { method: "POST", url: `/runs/${runId}/cancel` } : undefined)
    }
  ],
  ["sends no heartbeats among lines", "a stream is never silent", { frame: (block) => (block === "" ? [] : [block]) }],
  [
    "says that it cancelled what was over",
    "cancelling again, or what is over",
    {
      answer: (body, { url }) =>
        url.endsWith("/cancel") ? body.replace(/"status":"\w+"/, '"status":"cancelled"') : body
    }
  ],
  ["has no queue", "a run that is cancelled in the queue", { asking: inAnotherConversation }],
  [
    "lets proxies hold its streams back",
    "a start answers with the stream of its run",
    {
      headers: (headers) => {
        delete headers["x-accel-buffering"]
      }
    }
  ],
  [
    "does not know Prefer",
    "a start in the background",
    {
      asking: ({ headers }) => {
        delete headers.prefer
      }
    }
  ],
  ["writes lines in its own way", "lines of NDJSON", { frame: (block) => [block.replace(/^\{"runId"/, '{ "runId"')] }],
  ["does not know Idempotency-Key in a hurry", "thirty equal starts", { asking: withoutKey }],
  [
    "believes a message of the system",
    "a start that can not be understood",
    {
      asking: (asked) => {
        asked.body = asked.body.replace('"role":"system"', '"role":"user"')
      }
    }
  ],
  [
    "writes the time of reading into a log",
    "a log is the same for whoever reads it again",
    { frame: (block, { method, n }) => [method === "GET" ? block.replace(/\d{4}\}$/, `${1000 + n}}`) : block] }
  ],
  [
    "leaves the end out of a trace",
    "a trace is a header and the log",
    { frame: (block, { url }) => (url.endsWith("/trace") && isTerminal(block) ? [] : [block]) }
  ],
  [
    "forgets a checkpoint",
    "checkpoints are those of the log",
    {
      answer: (body, { url }) => (url.endsWith("/checkpoints") ? body.replace(/\{"runId"[^}]*\},/, "") : body)
    }
  ],
  [
    "lists runs as they were",
    "lists show the run",
    {
      answer: (body, { url }) => (url.startsWith("/runs?") ? body.replaceAll('"completed"', '"streaming"') : body)
    }
  ],
  [
    "repeats the last event for whoever comes back",
    "a client that comes and goes",
    {
      asking: ({ headers }) => {
        const at = Number(headers["last-event-id"] ?? 0)
        if (at > 0) headers["last-event-id"] = String(at - 1)
      }
    }
  ],
  [
    "does not say that it resumes",
    "a resume begins with resume-start",
    { frame: (block) => (block.includes('"type":"resume-start"') ? [] : [block]) }
  ],
  [
    "moves the cursor by what is no event",
    "a resume begins with resume-start",
    { frame: (block) => [block.includes('"type":"resume-start"') ? `id: 1\n${block}` : block] }
  ],
  [
    "shows what is left of a log as if it was whole",
    "a cursor in a part of the log that was removed",
    { asking: toWhatIsLeft }
  ],
  [
    "does not say what became of a removed log",
    "a cursor in a part of the log that was removed",
    { answer: (body) => body.replace(/"snapshot":"[^"]+"/, '"snapshot":""') }
  ],
  ["does two things at once", "runs of a conversation come one after the other", { asking: inAnotherConversation }],
  [
    "lets everybody wait",
    "a busy conversation refuses",
    {
      asking: (asked) => {
        asked.body = asked.body.replace(',"onBusy":"reject"', "")
      }
    }
  ],
  [
    "forgets what it answered",
    "a conversation holds its messages",
    {
      answer: (body, { url }) =>
        url.startsWith("/conversations/") ? body.replace(/("role":"assistant","content":)"[^"]*"/, '$1""') : body
    }
  ],
  [
    "answers any message again",
    "the last message can be answered again",
    { status: (status, { url }) => (url.endsWith("/regenerate") ? 202 : status) }
  ],
  [
    "shows the text of both attempts",
    "a run that failed recoverably",
    {
      answer: (body, { url }) =>
        /^\/runs\/[^/?]+$/.test(url) && body.includes('"attempt":2') ? body.replace(/"text":"/, '"text":"again ') : body
    }
  ],
  [
    "only says that it removed",
    "what goes on can not be removed",
    {
      instead: ({ method, url }) =>
        method === "DELETE" && url.startsWith("/runs/") ? { status: 204, json: "" } : undefined
    }
  ],
  [
    "shows another preview than it stores",
    "a write waits for a person",
    { answer: (body) => body.replaceAll(/"previewHash":"./g, '"previewHash":"_') }
  ],
  [
    "takes an edit for what was proposed",
    "an edit is shown again",
    {
      asking: (asked) => {
        asked.body = asked.body.replace('"text":"edited"', '"text":"proposed"')
      }
    }
  ],
  [
    "lets what is cancelled be approved",
    "a run that is cancelled while it waits",
    { status: (status, { url }) => (url.includes("/approvals/") ? 200 : status) }
  ],
  [
    "answers everybody",
    "without a credential",
    {
      asking: ({ headers }) => {
        headers.authorization ??= `Bearer ${tokens.token}`
      }
    }
  ],
  [
    "takes a wrong credential",
    "without a credential",
    {
      asking: ({ headers }) => {
        if (headers.authorization === "Bearer wrong") headers.authorization = `Bearer ${tokens.token}`
      }
    }
  ],
  [
    "lists everything to everybody",
    "lists hold the caller's own alone",
    {
      asking: ({ headers, url }) => {
        if (url.startsWith("/runs?")) headers.authorization = `Bearer ${tokens.token}`
      }
    }
  ],
  [
    "never says that it is ready",
    "the server says that it lives",
    {
      instead: ({ url }) =>
        url === "/readyz" ? { status: 503, json: { _tag: "Unavailable", message: "No." } } : undefined
    }
  ],
  [
    "sends credentials back",
    "no credential stands in anything",
    { answer: (body) => body.replace('"items":[', `"token":"${tokens.token}","items":[`) },
    "lists show the run"
  ]
]
