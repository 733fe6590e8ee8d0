/**
 * Checks of approvals, with the tools of the built-in workspace.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as RunStatus from "../../domain/RunStatus.js"
import type { Snapshot } from "../../domain/Snapshot.js"
import * as Json from "../../tool/Json.js"
import * as Laws from "../Laws.js"
import {
  ask,
  type Broken,
  define,
  field,
  type HttpCheck,
  logOf,
  must,
  mustKeep,
  refused,
  Skipped,
  until
} from "./Check.js"
import { finished, needsDemo, start, unique } from "./Runs.js"
import type { Ask } from "./Target.js"

/** A run that asks whether it may write a document, and what it asks. */
const proposal = (title: string, text: string) =>
  Effect.gen(function* () {
    yield* needsDemo
    const { runId } = yield* start(`/write ${title}: ${text}`)
    const waiting = yield* until(runId, ({ status }) => status === "waiting_approval" || RunStatus.isEnded(status))
    const [approval] = waiting.pendingApprovals
    if (approval === undefined) return yield* new Skipped({ message: "needs the tools of the workspace" })
    return { runId, approval }
  })

const decide = (runId: string, approvalId: string, body: object): Ask => ({
  method: "POST",
  path: `/runs/${runId}/approvals/${approvalId}`,
  body
})

const ended = (runId: string) => until(runId, ({ status }) => RunStatus.isEnded(status))

/** How often a document with exactly this text is found by its title. */
const found = (title: string, text: string) =>
  Effect.gen(function* () {
    const { snapshot } = yield* finished(`/call document_search ${JSON.stringify({ query: title, limit: 20 })}`)
    const results = field(snapshot.toolCalls[0]?.result, "results")
    const own = (Array.isArray(results) ? results : []).filter((hit) => field(hit, "title") === title)
    const ids = own.map((hit) => String(field(hit, "id")))
    const texts = yield* Effect.forEach(ids, (id) =>
      Effect.map(finished(`/call document_read ${JSON.stringify({ id })}`), ({ snapshot }) =>
        field(snapshot.toolCalls[0]?.result, "text")
      )
    )
    return texts.filter((one) => one === text).length
  })

const settledAs = ({ toolCalls }: Snapshot, state: string): Effect.Effect<void, Broken> =>
  must(toolCalls[0]?.state === state, `the call is ${toolCalls[0]?.state}, not ${state}`)

const lawful = (run: Snapshot) =>
  Effect.flatMap(logOf(run.runId), (log) =>
    mustKeep(Laws.ofLogs, { runs: [{ runId: run.runId, conversationId: run.conversationId, log, turns: [] }] })
  )

/**
 * All of them.
 *
 * @since 0.1.0
 * @category checks
 */
export const approvals: ReadonlyArray<HttpCheck> = [
  define(
    "a write waits for a person, and happens once when it is approved",
    Effect.gen(function* () {
      const title = `Conformance ${yield* unique}`
      const { approval, runId } = yield* proposal(title, "approved")
      const { approvalId, input, preview, previewHash, toolName } = approval
      yield* must(
        previewHash === Json.hash({ toolName, input, preview }),
        "the hash is not that of the tool, the input and the preview that are shown"
      )
      yield* must((yield* found(title, "approved")) === 0, "it was written before anybody approved it")
      const yes = decide(runId, approvalId, { decision: "approve", previewHash })
      const answers = yield* Effect.all([ask(200, yes), ask(200, yes), ask(200, yes)], { concurrency: 3 })
      yield* must(new Set(answers.map(({ text }) => text)).size === 1, "the same decision has different answers")
      const run = yield* ended(runId)
      yield* settledAs(run, "applied")
      yield* must((yield* found(title, "approved")) === 1, "it is not there exactly once")
      yield* ask(200, yes)
      yield* refused(409, decide(runId, approvalId, { decision: "reject" }))
      yield* lawful(run)
    })
  ),
  define(
    "what is rejected does not happen, and the run goes on",
    Effect.gen(function* () {
      const title = `Conformance ${yield* unique}`
      const { approval, runId } = yield* proposal(title, "rejected")
      yield* ask(200, decide(runId, approval.approvalId, { decision: "reject", reason: "No." }))
      const run = yield* ended(runId)
      yield* settledAs(run, "rejected")
      yield* must(run.status === "completed", `it is ${run.status}`)
      yield* must((yield* found(title, "rejected")) === 0, "it was written all the same")
      yield* lawful(run)
    })
  ),
  define(
    "an edit is shown again, and what is done is what was shown last",
    Effect.gen(function* () {
      const title = `Conformance ${yield* unique}`
      const { approval, runId } = yield* proposal(title, "proposed")
      const input = { title, text: "edited" }
      yield* ask(200, decide(runId, approval.approvalId, { decision: "edit", input }))
      const again = yield* until(
        runId,
        ({ pendingApprovals: [next] }) => next !== undefined && next.approvalId !== approval.approvalId
      )
      const [next] = again.pendingApprovals
      if (next === undefined) return
      yield* must(Json.canonical(next.input) === Json.canonical(input), "the new request shows another input")
      yield* must(next.previewHash !== approval.previewHash, "the new request has the old hash")
      yield* refused(409, decide(runId, approval.approvalId, { decision: "approve" }))
      yield* refused(409, decide(runId, next.approvalId, { decision: "approve", previewHash: approval.previewHash }))
      yield* ask(200, decide(runId, next.approvalId, { decision: "approve", previewHash: next.previewHash }))
      const run = yield* ended(runId)
      yield* settledAs(run, "applied")
      yield* must((yield* found(title, "edited")) === 1, "the edited text is not there exactly once")
      yield* must((yield* found(title, "proposed")) === 0, "the text that was proposed is there")
      yield* lawful(run)
    })
  ),
  define(
    "a decision that does not fit is refused, and the request stays open",
    Effect.gen(function* () {
      const { approval, runId } = yield* proposal(`Conformance ${yield* unique}`, "open")
      const { approvalId } = approval
      yield* refused(404, decide(runId, "apr_00000000-0000-7000-8000-000000000000", { decision: "approve" }))
      yield* refused(409, decide(runId, approvalId, { decision: "approve", previewHash: "0000" }))
      yield* refused(422, decide(runId, approvalId, { decision: "retry" }))
      yield* refused(422, decide(runId, approvalId, { decision: "edit", input: { title: 7 } }))
      yield* refused(400, decide(runId, approvalId, { decision: "perhaps" }))
      const open = yield* until(runId, () => true)
      yield* must(open.pendingApprovals[0]?.approvalId === approvalId, "the request is not open any more")
    })
  ),
  define(
    "a run that is cancelled while it waits can not be approved any more",
    Effect.gen(function* () {
      const title = `Conformance ${yield* unique}`
      const { approval, runId } = yield* proposal(title, "cancelled")
      yield* ask(200, { method: "POST", path: `/runs/${runId}/cancel` })
      yield* refused(409, decide(runId, approval.approvalId, { decision: "approve" }))
      const run = yield* ended(runId)
      yield* settledAs(run, "interrupted")
      yield* must((yield* found(title, "cancelled")) === 0, "it was written all the same")
      yield* lawful(run)
    })
  )
]
