/**
 * The page: asks, shows the run as it comes, stops it, answers its questions, and finds it again after a reload. The
 * log is folded by the same function that the server uses.
 *
 * @since 0.1.0
 */
import type { Envelope } from "../domain/Envelope.js"
import * as RunState from "../domain/RunState.js"
import * as Status from "../domain/RunStatus.js"
import * as Snapshot from "../domain/Snapshot.js"
import { byId, make, setText } from "./Dom.js"
import { call, field, Refused } from "./Server.js"
import { draw } from "./View.js"

const runKey = "runlet.run"
const conversationKey = "runlet.conversation"

const message = byId("message", HTMLTextAreaElement)
const problem = byId("problem", HTMLElement)
const signIn = byId("sign-in", HTMLFormElement)

let state: RunState.RunState | undefined
let source: EventSource | undefined
let drawing = false

const report = (error: unknown) => {
  const unknown = error instanceof Refused && error.status === 401
  signIn.hidden = !unknown
  setText(problem, unknown ? "" : error instanceof Error ? error.message : "Something went wrong.")
  problem.hidden = problem.textContent === ""
}

/** Does it, and shows what the server refused. */
const attempt = (work: () => Promise<void>) => {
  report(undefined)
  problem.hidden = true
  work().catch(report)
}

const decide = (approvalId: string, decision: string, previewHash: string) =>
  attempt(async () => {
    await call("POST", `/runs/${state?.runId}/approvals/${approvalId}`, { decision, previewHash })
  })

const redraw = () => {
  if (drawing) return
  drawing = true
  requestAnimationFrame(() => {
    drawing = false
    if (state === undefined) return
    const bottom = window.innerHeight + window.scrollY >= document.body.scrollHeight - 48
    byId("run", HTMLElement).hidden = false
    draw(Snapshot.of(state), decide)
    if (bottom) window.scrollTo(0, document.body.scrollHeight)
  })
}

const isEnvelope = (value: unknown): value is Envelope =>
  typeof value === "object" && value !== null && "seq" in value && "event" in value

const watch = (runId: string, after: number) => {
  source?.close()
  const opened = new EventSource(`/runs/${runId}/events?after=${after}`)
  source = opened
  opened.onmessage = ({ data }: MessageEvent<string>) => {
    const frame: unknown = JSON.parse(data)
    // A frame that was applied already comes again when a connection broke in between.
    if (!isEnvelope(frame) || state?.runId !== runId || frame.seq !== state.seq + 1) return
    state = RunState.reduce(state, frame)
    if (Status.isEnded(state.status)) opened.close()
    redraw()
  }
  opened.onerror = () => {
    if (opened.readyState !== EventSource.CLOSED || state?.runId !== runId || Status.isEnded(state.status)) return
    attempt(() => attach(runId))
  }
}

/** Shows a run as it stands and goes on from there. */
const attach = async (runId: string) => {
  const snapshot = (await call("GET", `/runs/${runId}`)) as Snapshot.Snapshot
  sessionStorage.setItem(runKey, runId)
  sessionStorage.setItem(conversationKey, snapshot.conversationId)
  state = Snapshot.toState(snapshot)
  redraw()
  if (!Status.isEnded(snapshot.status)) watch(runId, snapshot.lastSeq)
}

interface Message {
  readonly messageId: string
  readonly role: string
  readonly content: string
  readonly runId?: string
}

/** Shows what was said before the run that is on display. */
const showHistory = async () => {
  const conversationId = sessionStorage.getItem(conversationKey)
  const list = byId("history", HTMLElement)
  list.replaceChildren()
  if (conversationId === null) return
  const { messages } = (await call("GET", `/conversations/${conversationId}`)) as { messages: ReadonlyArray<Message> }
  const runId = sessionStorage.getItem(runKey)
  for (const { content, role, runId: of } of messages) {
    if (of === runId && role === "user") setText(byId("question", HTMLElement), content)
    else if (of !== runId) list.append(make("li", role === "user" ? "message user" : "message", content))
  }
}

const clear = () => {
  source?.close()
  state = undefined
  byId("run", HTMLElement).hidden = true
  byId("parts", HTMLElement).replaceChildren()
  byId("approvals", HTMLElement).replaceChildren()
}

const reload = async () => {
  await call("GET", "/runs?limit=1")
  const runId = sessionStorage.getItem(runKey)
  if (runId === null) return
  try {
    await attach(runId)
    await showHistory()
  } catch (error) {
    if (!(error instanceof Refused && error.status === 404)) throw error
    sessionStorage.removeItem(runKey)
    sessionStorage.removeItem(conversationKey)
  }
}

byId("ask", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault()
  const text = message.value.trim()
  if (text === "") return
  attempt(async () => {
    const conversationId = sessionStorage.getItem(conversationKey) ?? undefined
    const enableThinking = byId("thinking", HTMLInputElement).checked
    const accepted = await call("POST", "/chat", { message: text, conversationId, enableThinking })
    const runId = field(accepted, "runId")
    if (runId === undefined) return
    message.value = ""
    clear()
    setText(byId("question", HTMLElement), text)
    await attach(runId)
    await showHistory()
  })
})

message.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
  event.preventDefault()
  byId("ask", HTMLFormElement).requestSubmit()
})

byId("stop", HTMLButtonElement).addEventListener("click", () =>
  attempt(async () => {
    await call("POST", `/runs/${state?.runId}/cancel`)
  })
)

byId("continue", HTMLButtonElement).addEventListener("click", () =>
  attempt(async () => {
    const runId = state?.runId
    if (runId === undefined) return
    await call("POST", `/runs/${runId}/resume`, { lastAppliedSeq: state?.seq ?? 0 })
    await attach(runId)
  })
)

byId("fresh", HTMLButtonElement).addEventListener("click", () => {
  sessionStorage.removeItem(runKey)
  sessionStorage.removeItem(conversationKey)
  byId("history", HTMLElement).replaceChildren()
  clear()
  message.focus()
})

signIn.addEventListener("submit", (event) => {
  event.preventDefault()
  const token = byId("token", HTMLInputElement)
  attempt(async () => {
    await call("POST", "/session", { token: token.value })
    token.value = ""
    await reload()
  })
})

attempt(reload)
