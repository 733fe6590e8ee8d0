/**
 * Tools of one's own in a simulation: what their handlers are asked to do is written down, so that the laws of calls,
 * approvals and effects hold for them too.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Tool, ToolContext } from "../tool/Tool.js"
import * as ToolRunner from "../tool/ToolRunner.js"
import type { LedgerEntry } from "./Observed.js"

/**
 * What the tools of one process know of it: its name, whether it is still there, and where a run stands.
 *
 * @since 0.1.0
 * @category models
 */
export interface Host {
  readonly name: string
  readonly alive: () => boolean
  readonly standing: (run: {
    readonly runId: string
    readonly userId: string
  }) => Effect.Effect<{ readonly seq: number; readonly held: boolean }>
}

type Context = Omit<ToolContext, "progress">

/**
 * Writes an entry, as of now. The fibers of a process that is gone do nothing any more.
 *
 * @since 0.1.0
 * @category recording
 */
export const note = (
  entries: Array<LedgerEntry>,
  host: Host,
  tool: Tool,
  what: LedgerEntry["what"],
  input: unknown,
  context: Context
): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (!host.alive()) return yield* Effect.die(new Error("The process is gone."))
    const { held, seq } = yield* host.standing({ runId: context.runId, userId: context.user })
    entries.push({
      what,
      at: yield* Clock.currentTimeMillis,
      process: host.name,
      runId: context.runId,
      toolCallId: context.toolCallId,
      toolName: tool.name,
      kind: ToolRunner.kindOf(tool, input),
      keyed: tool.idempotent === true || tool.probe !== undefined,
      unattended: tool.unattended === true,
      phase: context.phase,
      key: context.idempotencyKey,
      input,
      seq,
      held
    })
  })

/**
 * A handler at work, with its beginning and its end written down. A process that is gone writes no end.
 *
 * @since 0.1.0
 * @category recording
 */
export const handling = <A, E, R>(
  entries: Array<LedgerEntry>,
  host: Host,
  tool: Tool,
  input: unknown,
  context: Context,
  handler: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    note(entries, host, tool, "begin", input, context),
    () => handler,
    () => (host.alive() ? note(entries, host, tool, "end", input, context) : Effect.void)
  )

/**
 * The tool, recorded. That an act succeeded, or is said by `probe` to have been applied, counts as its effect: what
 * else became of the world only the tool's own laws can know.
 *
 * @since 0.1.0
 * @category recording
 */
export const record = (entries: Array<LedgerEntry>, host: Host, tool: Tool): Tool => {
  const { commit, execute, preview, probe } = tool
  const begin = <A, E, R>(input: unknown, context: Context, handler: Effect.Effect<A, E, R>) =>
    handling(entries, host, tool, input, context, handler)
  const effect = (input: unknown, context: Context) => note(entries, host, tool, "effect", input, context)
  return {
    ...tool,
    ...(preview !== undefined && {
      preview: (input: unknown, context: ToolContext) => begin(input, context, preview(input, context))
    }),
    ...(execute !== undefined && {
      execute: (input: unknown, context: ToolContext) =>
        begin(input, context, execute(input, context)).pipe(
          Effect.tap(() => (ToolRunner.kindOf(tool, input) === "readonly" ? Effect.void : effect(input, context)))
        )
    }),
    ...(commit !== undefined && {
      commit: (input: unknown, context: ToolContext) =>
        begin(input, context, commit(input, context)).pipe(
          Effect.flatMap((committed) =>
            committed.within === undefined
              ? Effect.as(effect(input, context), committed)
              : Effect.succeed({ ...committed, within: Effect.zipLeft(committed.within, effect(input, context)) })
          )
        )
    }),
    ...(probe !== undefined && {
      probe: (context: Context) =>
        Effect.zipRight(note(entries, host, tool, "probe", undefined, context), probe(context)).pipe(
          Effect.tap(({ state }) => (state === "applied" ? effect(undefined, context) : Effect.void))
        )
    })
  }
}
