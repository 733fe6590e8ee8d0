/**
 * A person's answer to an approval request.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import * as ToolCatalog from "../agent/ToolCatalog.js"
import type { AgentEvent, DecisionOutcome, EventOf } from "../domain/AgentEvent.js"
import { CurrentUser } from "../domain/Owner.js"
import { Conflict, NotFound, Unprocessable } from "../domain/RunError.js"
import * as Fold from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import type { RunRow, StoreError } from "../store/RunStore.js"
import * as Json from "../tool/Json.js"
import type { Environment } from "./Environment.js"
import { noRun } from "./Refusals.js"
import type { DecideRequest } from "./RunEngine.js"
import * as RunLog from "./RunLog.js"
import type { Decision } from "./RunWriter.js"
import { expire, requeued, type Supervisor } from "./Supervisor.js"

/**
 * The decision that stands, who took it, and where in the log it is.
 *
 * @since 0.1.0
 * @category models
 */
export interface DecisionAnswer {
  readonly approvalId: string
  readonly decision: string
  readonly by: string
  readonly seq: number
}

/**
 * What a decision needs to know: the store, and the tools by which an edit is checked.
 *
 * @since 0.1.0
 * @category models
 */
export interface Deciding {
  readonly store: Environment["store"]
  readonly agent: Pick<Environment["agent"], "tools">
}

const outcomes: Record<DecideRequest["decision"], DecisionOutcome> = {
  approve: "approved",
  reject: "rejected",
  edit: "edited",
  retry: "retry",
  applied: "applied",
  abandon: "abandoned"
}

const noApproval = new NotFound({
  message: "There is no such approval in this run. Read the run for the ones that wait."
})

const alreadyDecided = (decision: string): Conflict =>
  new Conflict({ message: `This was decided already: ${decision}. Read the run to see what became of it.` })

const overtaken = new Conflict({
  message:
    "This request was replaced by a newer one, or the run has ended. Read the run and decide on what it shows now."
})

const notShown = new Conflict({
  message: "This is not what is shown now. Read the run again and decide on its present preview."
})

type Refusal = NotFound | Conflict | Unprocessable

/**
 * Decides. The same decision again gives the same answer; whoever comes second with another one is refused.
 *
 * @since 0.1.0
 * @category deciding
 */
export const decide = (
  env: Deciding,
  supervisor: Pick<Supervisor, "active" | "transact">,
  runId: string,
  approvalId: string,
  request: DecideRequest
): Effect.Effect<DecisionAnswer, Refusal | StoreError> =>
  Effect.gen(function* () {
    const user = yield* CurrentUser
    const found = yield* env.store.find({ runId, userId: user })
    if (Option.isNone(found)) return yield* noRun
    const row = found.value
    const state = yield* RunLog.current(env.store, row, supervisor.active(row.key))
    const call = pendingCall(state, approvalId)
    if (call === undefined) return yield* decidedBefore(env, row, approvalId, request)
    const input = yield* checkRequest(env, row, call, request)
    const decision: EventOf<"approval-decision"> = {
      type: "approval-decision",
      approvalId,
      toolCallId: call.id,
      decision: outcomes[request.decision],
      by: user,
      ...(request.reason !== undefined && { reason: Json.wellFormed(request.reason) }),
      ...(request.decision === "edit" && { input })
    }
    let ranOut = false
    let seq = 0
    const decided = yield* supervisor.transact(row, (current, now) => {
      ranOut = false
      const waiting = pendingCall(current, approvalId)?.approval?.request
      if (waiting === undefined) return undefined
      if (waiting.expiresAt <= now) {
        ranOut = true
        const events = expire(current, now)
        return events === undefined ? undefined : { events }
      }
      seq = current.seq + 1
      return decisionEvents(current, decision)
    })
    if (ranOut) {
      return yield* new Conflict({
        message: "The time to decide has run out; nothing was applied. Regenerate the answer."
      })
    }
    if (!decided.written) return yield* decidedBefore(env, row, approvalId, request)
    return { approvalId, decision: decision.decision, by: user, seq }
  })

const decisionEvents = (state: Fold.RunState, decision: EventOf<"approval-decision">): Decision => {
  const others = Fold.pendingApprovals(state).filter((other) => other.approvalId !== decision.approvalId)
  // An edit needs a new preview at once, whatever else still waits.
  const onward = decision.decision === "edited" || others.length === 0 ? requeued(state) : []
  const events: ReadonlyArray<AgentEvent> = [decision, ...onward]
  return { events }
}

const pendingCall = (state: Fold.RunState, approvalId: string): Fold.Call | undefined => {
  if (RunStatus.isEnded(state.status)) return undefined
  return state.open?.calls.find(
    (call) =>
      call.result === undefined &&
      call.approval?.request.approvalId === approvalId &&
      call.approval.decision === undefined
  )
}

/** Whether the request may be answered like this; the answer is the edited input. */
const checkRequest = (
  env: Deciding,
  row: RunRow,
  call: Fold.Call,
  request: DecideRequest
): Effect.Effect<unknown, Conflict | Unprocessable | StoreError> =>
  Effect.gen(function* () {
    const waiting = call.approval?.request
    const inDoubt = waiting?.reason === "in_doubt"
    const forDoubt = request.decision === "retry" || request.decision === "applied" || request.decision === "abandon"
    if (inDoubt !== forDoubt) {
      return yield* new Unprocessable({
        message: inDoubt
          ? "It is not known whether this took effect. Answer with retry, applied or abandon."
          : "Answer this request with approve, reject or edit.",
        path: "decision"
      })
    }
    if (request.decision === "retry" && call.conflict === true) {
      return yield* new Unprocessable({
        message: "The target has changed, so trying again can not tell what happened. Answer with applied or abandon.",
        path: "decision"
      })
    }
    if (request.previewHash !== undefined && request.previewHash !== waiting?.previewHash) {
      return yield* notShown
    }
    if (request.decision !== "edit") return undefined
    const input = yield* env.store.input(row.key)
    const tool = ToolCatalog.make(env.agent.tools, input.tools).get(call.name)
    if (tool === undefined) {
      return yield* new Unprocessable({ message: "The tool does not exist any more, so its input can not be edited." })
    }
    if (typeof request.input !== "object" || request.input === null || Array.isArray(request.input)) {
      return yield* new Unprocessable({ message: "An edit needs the whole new input as a JSON object.", path: "input" })
    }
    const edited = Json.toJson(request.input)
    const checked = yield* Effect.either(ToolCatalog.check(tool, edited))
    if (Either.isLeft(checked)) return yield* new Unprocessable({ message: checked.left, path: "input" })
    return edited
  })

/** The request does not wait: an equal decision gets the first one's answer, anything else is refused. */
const decidedBefore = (
  env: Deciding,
  row: RunRow,
  approvalId: string,
  request: DecideRequest
): Effect.Effect<DecisionAnswer, Refusal | StoreError> =>
  Effect.gen(function* () {
    const { decision, requested } = yield* search(env, row, approvalId)
    if (decision === undefined) return yield* requested === undefined ? noApproval : overtaken
    const same =
      decision.event.decision === outcomes[request.decision] &&
      (request.decision !== "edit" || Json.canonical(decision.event.input) === Json.canonical(request.input))
    if (!same) return yield* alreadyDecided(decision.event.decision)
    if (request.previewHash !== undefined && request.previewHash !== requested?.previewHash) return yield* notShown
    return { approvalId, decision: decision.event.decision, by: decision.event.by, seq: decision.seq }
  })

interface Found {
  requested: EventOf<"approval-request"> | undefined
  decision: { readonly seq: number; readonly event: EventOf<"approval-decision"> } | undefined
}

/** Looks an approval up in the log: the fold keeps only the newest request of a call. */
const search = (env: Deciding, row: RunRow, approvalId: string): Effect.Effect<Found, StoreError> =>
  Effect.gen(function* () {
    const found: Found = { requested: undefined, decision: undefined }
    let after = 0
    while (true) {
      const page = yield* env.store.envelopes({ key: row.key, runId: row.runId, after, limit: 1000 })
      for (const { event, seq } of page) {
        after = seq
        if (event.type === "approval-request" && event.approvalId === approvalId) found.requested = event
        if (event.type === "approval-decision" && event.approvalId === approvalId) {
          found.decision = { seq, event }
          return found
        }
      }
      if (page.length < 1000) return found
    }
  })
