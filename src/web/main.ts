/**
 * The page: asks, shows the conversation as it comes, stops it, answers its questions, and finds it again after a reload
 * or in another tab. The address names the conversation; the client watches one run of it, the first that has not ended.
 *
 * @since 0.1.0
 */
import type { Accepted, Message, StartBody } from "../client/Api.js"
import { makeClient } from "../client/Client.js"
import { RunletError } from "../client/RunletError.js"
import * as Status from "../domain/RunStatus.js"
import * as Snapshot from "../domain/Snapshot.js"
import { arrange, byId, keyed, make, setText } from "./Dom.js"
import { draw, type Turn } from "./View.js"

const client = makeClient()
const { api } = client

const message = byId("message", HTMLTextAreaElement)
const problem = byId("problem", HTMLElement)
const list = byId("turns", HTMLElement)
const status = byId("status", HTMLElement)
const send = byId("send", HTMLButtonElement)

let conversationId: string | undefined
let turns: ReadonlyArray<Turn> = []
/** Counts how often another conversation was put on display, so that what comes late does not take its place. */
let visit = 0
/** Whether the end of the page is kept in view. Only the reader's own scrolling and asking change it. */
let follow = true
let lastY = 0
let drawing = false
let endSeen = ""
let loads = 0
/** A message whose fate is unknown: the same one must go under the same key. */
let unsure: { readonly json: string; readonly key: string } | undefined

const tell = (text: string) => {
  setText(problem, text)
  problem.hidden = text === ""
}

const report = (error: unknown) => {
  const unknown = error instanceof RunletError && error._tag === "Unauthorized"
  if (unknown) byId("sign-in", HTMLFormElement).hidden = false
  tell(unknown ? "" : error instanceof Error ? error.message : "Something went wrong.")
}

/** Does it, and shows what the server refused. */
const attempt = (work: () => Promise<unknown>): Promise<void> => {
  tell("")
  return work().then(() => {}, report)
}

const pause = (milliseconds: number) => new Promise((done) => setTimeout(done, milliseconds))

const newKey = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("")

const isOver = ({ gone, snapshot }: Turn) => gone || (snapshot !== undefined && Status.isEnded(snapshot.status))

const current = (): Turn | undefined => turns.find((turn) => !isOver(turn)) ?? turns.at(-1)

/** Lets the client watch the run that is under way, or the last one. */
const advance = () => {
  const next = current()
  if (next !== undefined && next.runId !== client.getSnapshot().run?.runId) attempt(() => client.attach(next.runId))
}

const words: { readonly [status: string]: string } = {
  running: "working…",
  streaming: "answering…",
  waiting_approval: "waits for you"
}

const drawStatus = (turn: Turn | undefined) => {
  const { canContinue, phase, run } = client.getSnapshot()
  const cut = turn !== undefined && run?.runId === turn.runId && (phase === "interrupted" || phase === "resuming")
  const known = turn === undefined ? "idle" : (turn.snapshot?.status ?? "queued")
  status.dataset.status = cut ? "cut" : known
  const text = turn === undefined ? "ready" : (words[known] ?? known)
  setText(status, cut ? (run?.seq === 0 ? "loading…" : "reconnecting…") : text)
  const over = turn === undefined || isOver(turn)
  byId("stop", HTMLElement).hidden = over
  byId("again", HTMLElement).hidden = turn === undefined || !over
  byId("continue", HTMLElement).hidden = !canContinue || run?.runId !== turn?.runId
  byId("welcome", HTMLElement).hidden = conversationId !== undefined
}

const decide = (runId: string, approvalId: string, answer: Parameters<typeof api.decide>[2]) =>
  attempt(async () => {
    await api.decide(runId, approvalId, answer)
  })

/** What was drawn of each turn, so that only what changed is drawn again. */
const drawn = new WeakMap<HTMLElement, unknown>()

const drawAll = () => {
  drawing = false
  const { run } = client.getSnapshot()
  const watched = turns.find((turn) => turn.runId === run?.runId)
  if (run && watched && run.seq > 0) watched.snapshot = Snapshot.of(run)
  const first = turns.find((turn) => !isOver(turn))
  const fresh = turns.flatMap((turn) => {
    const waits = first !== undefined && turn !== first && !isOver(turn)
    const element = list.querySelector<HTMLElement>(`[data-key="${CSS.escape(turn.runId)}"]`)
    const version = turn.snapshot && `${turn.snapshot.lastSeq} ${waits}`
    if (element && version && drawn.get(element) === version) return []
    const requests = draw(list, turn, waits, decide)
    const made = element ?? list.querySelector<HTMLElement>(`[data-key="${CSS.escape(turn.runId)}"]`)
    if (made) drawn.set(made, version)
    return requests
  })
  arrange(
    list,
    turns.map(({ runId }) => runId)
  )
  drawStatus(first ?? turns.at(-1))
  if (follow) window.scrollTo(0, document.documentElement.scrollHeight)
  for (const request of fresh) request.scrollIntoView({ block: "nearest" })
}

const redraw = () => {
  if (drawing) return
  drawing = true
  requestAnimationFrame(drawAll)
}

const place = (id: string | undefined) => (id === undefined ? location.pathname : `#${encodeURIComponent(id)}`)

/** The question of each run and its answer as text: what a conversation's messages say. */
const turnsOf = (messages: ReadonlyArray<Message>): ReadonlyArray<Turn> => {
  const known = new Map(turns.map((turn) => [turn.runId, turn]))
  const found: Array<Turn> = []
  for (const { content, role, runId } of messages) {
    const last = found.at(-1)
    if (role === "user") found.push({ runId: runId ?? `${found.length}`, question: content, answer: "" })
    else if (last !== undefined) {
      last.answer = content
      if (runId !== undefined) last.runId = runId
    }
  }
  return found.map((turn) => ({ ...turn, snapshot: known.get(turn.runId)?.snapshot }))
}

const isFinal = ({ snapshot }: Turn) => snapshot !== undefined && Status.isFinal(snapshot)

/** Fetches the conversation, with the runs that may have changed. What can not be had as a run stays as text. */
const load = async () => {
  const [id, from] = [conversationId, visit]
  if (id === undefined) return
  const mine = ++loads
  const before = new Set(turns.map(({ runId }) => runId))
  const found = turnsOf((await api.conversation(id)).messages)
  const asked = found.filter((turn) => !isFinal(turn))
  for (let at = 0; at < asked.length && visit === from; at += 8) {
    await Promise.all(
      asked.slice(at, at + 8).map(async (turn) => {
        const snapshot = await api.run(turn.runId).catch((error: unknown) => {
          if (!(error instanceof RunletError && error._tag === "NotFound")) throw error
          turn.gone = true
          return undefined
        })
        if (snapshot) turn.snapshot = snapshot
      })
    )
  }
  if (visit !== from || mine !== loads) return
  // What was heard meanwhile is newer than what was asked for before, and what was sent may be missing in it.
  const late: Array<Turn> = []
  for (const turn of turns) {
    const same = found.find(({ runId }) => runId === turn.runId)
    if (!same && !before.has(turn.runId)) late.push(turn)
    if (same && (turn.snapshot?.lastSeq ?? 0) > (same.snapshot?.lastSeq ?? 0)) same.snapshot = turn.snapshot
  }
  turns = [...found, ...late]
  advance()
  redraw()
}

const showPast = async () => {
  const { items } = await api.conversations({ limit: 100 })
  byId("past", HTMLElement).hidden = items.length === 0
  const past = byId("conversations", HTMLElement)
  for (const item of items) {
    const link = () => {
      const anchor = document.createElement("a")
      anchor.href = place(item.conversationId)
      return make("li", "", "", anchor, make("span", "state", ""))
    }
    const [anchor, state] = keyed(past, item.conversationId, link).children
    if (!anchor || !state) continue
    setText(anchor, item.title || "Untitled")
    anchor.ariaCurrent = item.conversationId === conversationId ? "page" : null
    const known = item.lastStatus ?? ""
    setText(state, `${words[known] ?? known} · ${new Date(item.updatedAt).toLocaleString()}`)
  }
  arrange(
    past,
    items.map((item) => item.conversationId)
  )
}

/** Puts a conversation on display, or the empty page, and forgets all that was said of another one. */
const enter = (id: string | undefined) => {
  visit++
  conversationId = id
  turns = []
  follow = true
  client.clear()
  tell("")
  send.disabled = false
  message.readOnly = false
  byId("past", HTMLDetailsElement).open = id === undefined
  if (decodeURIComponent(location.hash.slice(1)) !== (id ?? "")) history.pushState(undefined, "", place(id))
  drawAll()
}

const visitPlace = () => {
  const id = decodeURIComponent(location.hash.slice(1)) || undefined
  if (id !== conversationId || turns.length === 0) enter(id)
  return attempt(async () => {
    await showPast()
    await load().catch((error: unknown) => {
      if (!(error instanceof RunletError && error._tag === "NotFound")) throw error
      enter(undefined)
      tell("There is no such conversation, or it is not yours.")
    })
  })
}

client.subscribe(() => {
  const { error, run, signedOut } = client.getSnapshot()
  if (error) report(error)
  if (signedOut || !run || run.seq === 0) return redraw()
  const turn = turns.find(({ runId }) => runId === run.runId)
  if (turn && Status.isEnded(run.status)) {
    turn.snapshot = Snapshot.of(run)
    advance()
    const end = `${run.runId} ${run.seq}`
    // The page may know less than the server by now; without an answer it knows enough.
    if (endSeen !== end) Promise.all([load(), showPast()]).catch(() => {})
    endSeen = end
  }
  redraw()
})

/** Sends it, a few times while there is no answer: under one key, so that it begins one run however often it arrives. */
const post = async (body: StartBody): Promise<Accepted | undefined> => {
  const from = visit
  const json = JSON.stringify(body)
  const mine = unsure?.json === json ? unsure : { json, key: newKey() }
  unsure = mine
  for (let tries = 1; ; tries++) {
    try {
      const accepted = await api.start(body, mine.key)
      unsure = undefined
      return visit === from ? accepted : undefined
    } catch (error) {
      const lost = error instanceof RunletError && error.transient
      if (!lost) unsure = undefined
      if (visit !== from) return undefined
      if (!lost || error.status === 429) throw error
      if (tries === 5) {
        throw new Error("The server can not be reached. Your message is kept: press Send to try again.")
      }
      tell("The server can not be reached. Your message is kept, and is sent again…")
      await pause(500 * 2 ** tries)
      if (visit !== from) return undefined
    }
  }
}

const ask = () =>
  attempt(async () => {
    const text = message.value.trim()
    if (text === "" || send.disabled) return
    const from = visit
    follow = true
    send.disabled = true
    message.readOnly = true
    try {
      const enableThinking = byId("thinking", HTMLInputElement).checked
      const accepted = await post({ message: text, conversationId, enableThinking })
      if (accepted === undefined) return
      message.value = ""
      tell("")
      if (conversationId === undefined) {
        conversationId = accepted.conversationId
        history.pushState(undefined, "", place(conversationId))
        byId("past", HTMLDetailsElement).open = false
      }
      if (!turns.some(({ runId }) => runId === accepted.runId)) {
        turns = [...turns, { runId: accepted.runId, question: text, answer: "" }]
      }
      follow = true
      advance()
      redraw()
      showPast().catch(() => {})
    } finally {
      if (visit === from) {
        send.disabled = false
        message.readOnly = false
        message.focus({ preventScroll: true })
      }
    }
  })

byId("ask", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault()
  ask()
})

message.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
  event.preventDefault()
  byId("ask", HTMLFormElement).requestSubmit()
})

for (const example of byId("welcome", HTMLElement).querySelectorAll("button")) {
  example.addEventListener("click", () => {
    message.value = example.textContent ?? ""
    ask()
  })
}

byId("stop", HTMLButtonElement).addEventListener("click", () =>
  attempt(async () => {
    const turn = current()
    if (turn !== undefined) await api.cancel(turn.runId)
  })
)

byId("continue", HTMLButtonElement).addEventListener("click", () =>
  attempt(() => {
    follow = true
    return client.continue()
  })
)

byId("again", HTMLButtonElement).addEventListener("click", () =>
  attempt(async () => {
    const last = turns.at(-1)
    if (last === undefined) return
    follow = true
    await api.regenerate(last.runId, {}, newKey())
    await load()
  })
)

byId("fresh", HTMLButtonElement).addEventListener("click", () => {
  enter(undefined)
  attempt(showPast)
  message.focus()
})

byId("sign-in", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault()
  const token = byId("token", HTMLInputElement)
  attempt(async () => {
    await client.signIn(token.value).catch((error: unknown) => {
      throw error instanceof RunletError && error.status === 401 ? new Error("This token is not valid here.") : error
    })
    token.value = ""
    byId("sign-in", HTMLFormElement).hidden = true
    await visitPlace()
  })
})

window.addEventListener("scroll", () => {
  const end = document.documentElement.scrollHeight - window.innerHeight
  if (window.scrollY >= end - 2) follow = true
  else if (window.scrollY < lastY) follow = false
  lastY = window.scrollY
})

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) Promise.all([load(), showPast()]).catch(() => {})
})

window.addEventListener("popstate", visitPlace)
history.scrollRestoration = "manual"

visitPlace()
