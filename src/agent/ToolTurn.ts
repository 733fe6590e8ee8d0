/**
 * Running the tools of a turn and asking a person, from acts to events of the log.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Mailbox from "effect/Mailbox"
import * as Stream from "effect/Stream"
import type { AgentEvent, EventOf } from "../domain/AgentEvent.js"
import { IdGenerator } from "../domain/Ids.js"
import type { CurrentDocument } from "../domain/RunInput.js"
import type { Call, RunState } from "../domain/RunState.js"
import * as Tracing from "../domain/Tracing.js"
import * as Json from "../tool/Json.js"
import type { Tool, ToolContext } from "../tool/Tool.js"
import * as ToolRunner from "../tool/ToolRunner.js"
import * as Emission from "./Emission.js"
import type { Act, Settlement } from "./NextStep.js"
import * as ToolCatalog from "./ToolCatalog.js"

/**
 * What tools run with. `now` is the clock that approvals expire by; `guard` is asked just before a tool begins, and
 * never returns when this process may no longer act for the run.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolSetting {
  readonly user: string
  readonly state: RunState
  readonly catalog: ToolCatalog.ToolCatalog
  readonly currentDocument: CurrentDocument | null
  readonly toolTimeoutMs: number
  readonly maxResultBytes: number
  readonly approvalTtlMs: number
  readonly now: Effect.Effect<number>
  readonly guard: Effect.Effect<void>
  readonly remember: (tool: Tool, call: Call, result: unknown) => void
}

/**
 * Results for calls that nothing is run for. A call that could not be read is told why.
 *
 * @since 0.1.0
 * @category streams
 */
export const settle = (
  setting: ToolSetting,
  settlements: ReadonlyArray<Settlement>
): Stream.Stream<Emission.Emission> =>
  Stream.fromEffect(
    Effect.map(
      Effect.forEach(settlements, ({ call, ok, result, source, state }) =>
        Effect.map(
          result === undefined && state === "invalid" ? whyInvalid(setting, call) : Effect.succeed(result ?? null),
          (value): AgentEvent => ({
            type: "tool-call-result",
            toolCallId: call.id,
            toolName: call.name,
            ok,
            state,
            result: value,
            source,
            durationMs: 0
          })
        )
      ),
      (events) => Emission.durable(events)
    )
  )

const whyInvalid = (setting: ToolSetting, call: Call): Effect.Effect<unknown> =>
  ToolCatalog.readArguments(setting.catalog, call.name, call.args).pipe(
    Effect.match({
      onFailure: (error) => ({ error }),
      onSuccess: () => ({ error: `The tool ${JSON.stringify(call.name)} can not be used here.` })
    })
  )

/**
 * Stores what begins, all of it at once, then runs the tools side by side.
 *
 * @since 0.1.0
 * @category streams
 */
export const runTools = (
  setting: ToolSetting,
  acts: ReadonlyArray<Act>
): Stream.Stream<Emission.Emission, never, IdGenerator> => {
  const intents = Effect.forEach(
    acts,
    (act): Effect.Effect<AgentEvent, never, IdGenerator> =>
      act._tag === "Ask"
        ? ask(setting, act.call, act.reason, undefined)
        : Effect.succeed({
            type: "tool-start",
            toolCallId: act.call.id,
            toolName: act.call.name,
            phase: act.phase,
            idempotencyKey: act.key
          })
  )
  const running = acts.filter((act) => act._tag === "Run")
  return Stream.concat(
    Stream.fromEffect(Effect.map(intents, (events) => Emission.durable(events))),
    running.length === 0 ? Stream.empty : sideBySide(setting, running)
  )
}

type RunAct = Extract<Act, { readonly _tag: "Run" }>

const sideBySide = (
  setting: ToolSetting,
  acts: ReadonlyArray<RunAct>
): Stream.Stream<Emission.Emission, never, IdGenerator> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const mailbox = yield* Mailbox.make<Emission.Emission>(64)
      yield* Effect.forEach(acts, (act) => runAct(setting, act, mailbox), {
        concurrency: "unbounded",
        discard: true
      }).pipe(Effect.ensuring(mailbox.end), Effect.forkScoped)
      return Mailbox.toStream(mailbox)
    })
  )

const runAct = (
  setting: ToolSetting,
  act: RunAct,
  mailbox: Mailbox.Mailbox<Emission.Emission>
): Effect.Effect<void, never, IdGenerator> =>
  Effect.gen(function* () {
    const { call, phase } = act
    const startedAt = yield* Clock.currentTimeMillis
    const tool = setting.catalog.get(call.name)
    if (tool === undefined) return
    const context: ToolContext = {
      user: setting.user,
      runId: setting.state.runId,
      conversationId: setting.state.start?.conversationId ?? "",
      toolCallId: call.id,
      phase,
      idempotencyKey: act.key,
      currentDocument: setting.currentDocument,
      ...(call.approval !== undefined && { preview: call.approval.request.preview }),
      progress: (delta) =>
        delta === ""
          ? Effect.void
          : Effect.asVoid(mailbox.offer(Emission.events([{ type: "tool-result-delta", toolCallId: call.id, delta }])))
    }
    const result = (value: Pick<EventOf<"tool-call-result">, "ok" | "state" | "result">): Effect.Effect<AgentEvent> =>
      Effect.map(Clock.currentTimeMillis, (now) => ({
        type: "tool-call-result",
        toolCallId: call.id,
        toolName: call.name,
        ...value,
        source: "executed",
        durationMs: now - startedAt
      }))
    const conflict = (message: string | undefined): AgentEvent => ({
      type: "tool-conflict",
      toolCallId: call.id,
      ...(message !== undefined && { message })
    })

    // After a start whose outcome is not known, only success tells what happened; a failure is that of this try alone.
    let unsure = false
    if (act.again) {
      const probed = yield* ToolRunner.probe(tool, context, {
        timeoutMs: tool.timeoutMs ?? setting.toolTimeoutMs,
        maxResultBytes: setting.maxResultBytes
      })
      if (probed.state === "applied") {
        const event = yield* result({
          ok: true,
          state: phase === "commit" ? "applied" : "done",
          result: Json.fit(probed.result ?? null, setting.maxResultBytes)
        })
        return yield* mailbox.offer(Emission.durable([event]))
      }
      unsure = probed.state === "unknown"
      const retried = call.approval?.decision?.decision === "retry"
      if (probed.state === "unknown" && tool.idempotent !== true && !retried) {
        return yield* mailbox.offer(Emission.durable([yield* ask(setting, call, "in_doubt", undefined)]))
      }
    }
    const checked = yield* Effect.either(ToolCatalog.check(tool, call.input?.value))
    if (checked._tag === "Left") {
      const event = yield* result({ ok: false, state: "invalid", result: { error: checked.left } })
      return yield* mailbox.offer(Emission.durable([event]))
    }
    yield* setting.guard
    const outcome = yield* Tracing.spanned(
      `execute_tool ${tool.name}`,
      {
        attributes: {
          "gen_ai.operation.name": "execute_tool",
          "gen_ai.tool.name": tool.name,
          "gen_ai.tool.call.id": call.id,
          "gen_ai.tool.type": "function",
          "gen_ai.conversation.id": context.conversationId,
          "runlet.run.id": context.runId,
          "runlet.tool.kind": call.kind,
          "runlet.tool.phase": phase
        }
      },
      () =>
        ToolRunner.run({
          tool,
          phase,
          input: checked.right,
          context,
          timeoutMs: tool.timeoutMs ?? setting.toolTimeoutMs,
          maxResultBytes: setting.maxResultBytes
        }),
      (exit) => (exit._tag === "Success" ? failureOf(exit.value) : undefined)
    )
    switch (outcome._tag) {
      case "Conflict":
        return yield* mailbox.offer(Emission.durable([conflict(outcome.message)]))
      case "InDoubt":
        // The call stays open: what to do about it is decided from the log, as after a crash.
        return undefined
      case "Settled": {
        if (phase === "preview" && outcome.ok) {
          return yield* mailbox.offer(Emission.durable([yield* ask(setting, call, "write", outcome.result)]))
        }
        if (phase === "execute" && outcome.ok) setting.remember(tool, call, outcome.result)
        const event = yield* result({
          ok: outcome.ok,
          state: stateOf(phase, outcome.ok, unsure),
          result: outcome.result
        })
        return yield* mailbox.offer(
          Emission.durable([event], {
            within: outcome.within,
            onConflict: (error) => conflict(error.message === "" ? undefined : error.message)
          })
        )
      }
    }
  }).pipe(Effect.asVoid)

/** The kind of failure that an outcome is, in a word. */
const failureOf = (outcome: ToolRunner.ToolOutcome): string | undefined => {
  switch (outcome._tag) {
    case "Conflict":
      return "conflict"
    case "InDoubt":
      return "in_doubt"
    case "Settled":
      return outcome.ok ? undefined : "tool_error"
  }
}

const stateOf = (phase: RunAct["phase"], ok: boolean, unsure: boolean): EventOf<"tool-call-result">["state"] => {
  if (!ok) return unsure ? "in_doubt" : "done"
  return phase === "commit" ? "applied" : "done"
}

/**
 * The request that a person must answer. Its hash binds the answer to exactly this tool, input and preview.
 *
 * @since 0.1.0
 * @category approvals
 */
export const ask = (
  setting: Pick<ToolSetting, "now" | "approvalTtlMs">,
  call: Call,
  reason: EventOf<"approval-request">["reason"],
  preview: unknown
): Effect.Effect<EventOf<"approval-request">, never, IdGenerator> =>
  Effect.gen(function* () {
    const ids = yield* IdGenerator
    const approvalId = yield* ids.approval
    const now = yield* setting.now
    const before = call.approval
    const input = call.input?.value ?? null
    const shown = preview ??
      (reason === "in_doubt" ? before?.request.preview : undefined) ?? { toolName: call.name, input }
    const cause = causeOf(call, reason)
    return {
      type: "approval-request",
      approvalId,
      toolCallId: call.id,
      toolName: call.name,
      reason,
      input,
      preview: shown,
      previewHash: Json.hash({ toolName: call.name, input, preview: shown }),
      expiresAt: now + setting.approvalTtlMs,
      ...(before !== undefined && { supersedes: before.request.approvalId }),
      ...(cause !== undefined && { cause })
    }
  })

const causeOf = (call: Call, reason: EventOf<"approval-request">["reason"]): EventOf<"approval-request">["cause"] => {
  if (call.conflict === true) return "conflict"
  if (reason === "in_doubt") return call.approval?.decision?.decision === "retry" ? "retry" : undefined
  return call.approval?.decision?.decision === "edited" ? "edit" : undefined
}
