/**
 * The tools of one run: which are offered, what is known of them, and what a call's arguments come to.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { RunMode, ToolKind } from "../domain/AgentEvent.js"
import type { OfferedTool } from "../domain/RunInput.js"
import type { Call, RunState } from "../domain/RunState.js"
import * as Fold from "../domain/RunState.js"
import * as Json from "../tool/Json.js"
import * as JsonText from "../tool/JsonText.js"
import type { Tool } from "../tool/Tool.js"
import * as ToolRunner from "../tool/ToolRunner.js"
import type { Reusable, ToolFacts } from "./NextStep.js"

/**
 * The tools that a run may call, by name. A `Map`, so that no inherited name (`constructor`) is taken for a tool.
 *
 * @since 0.1.0
 * @category models
 */
export type ToolCatalog = ReadonlyMap<string, Tool>

/**
 * What is offered to a run of this mode: in `plan` the read-only tools alone.
 *
 * @since 0.1.0
 * @category constructors
 */
export const offered = (tools: ReadonlyArray<Tool>, mode: RunMode): ReadonlyArray<OfferedTool> =>
  tools
    .filter((tool) => mode === "chat" || tool.kind === "readonly")
    .map(({ description, kind, name, parameters }) => ({ name, description, kind, parameters }))

/**
 * The tools that were offered when the run was created and still exist.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (tools: ReadonlyArray<Tool>, of: ReadonlyArray<OfferedTool>): ToolCatalog => {
  const names = new Set(of.map((tool) => tool.name))
  return new Map(tools.filter((tool) => names.has(tool.name)).map((tool) => [tool.name, tool]))
}

/**
 * The facts that decide about a call. In `plan` mode a tool whose kind depends on its input is refused for inputs that
 * are more than reading.
 *
 * @since 0.1.0
 * @category reading
 */
export const facts =
  (catalog: ToolCatalog, mode: RunMode) =>
  (name: string, input: unknown): ToolFacts | undefined => {
    const tool = catalog.get(name)
    if (tool === undefined) return undefined
    const kind = ToolRunner.kindOf(tool, input)
    if (mode === "plan" && kind !== "readonly") return undefined
    return {
      kind,
      dryRun: tool.preview !== undefined,
      keyed: tool.idempotent === true || tool.probe !== undefined,
      unattended: tool.unattended === true
    }
  }

/**
 * The kind that is shown when a call of this name begins; an unknown tool can do nothing.
 *
 * @since 0.1.0
 * @category reading
 */
export const shownKind = (catalog: ToolCatalog, name: string): ToolKind => catalog.get(name)?.kind ?? "readonly"

/**
 * The arguments of a call: a JSON object that the tool accepts, or why not, in words for the model. Blank text counts
 * as `{}`.
 *
 * @since 0.1.0
 * @category arguments
 */
export const readArguments = (
  catalog: ToolCatalog,
  name: string,
  text: string
): Effect.Effect<{ readonly input: unknown; readonly checked: unknown }, string> =>
  Effect.suspend(() => {
    const tool = catalog.get(name)
    if (tool === undefined) {
      const names = [...catalog.keys()]
      return Effect.fail(
        names.length === 0
          ? `There is no tool named ${JSON.stringify(Json.cut(name, 100))}, and no other.`
          : `There is no tool named ${JSON.stringify(Json.cut(name, 100))}. The tools are: ${names.join(", ")}.`
      )
    }
    return Effect.flatMap(parseObject(text), (input) =>
      Effect.map(check(tool, input), (checked) => ({ input, checked }))
    )
  })

/**
 * What a tool makes of an input. A check that throws counts as a refusal.
 *
 * @since 0.1.0
 * @category arguments
 */
export const check = (tool: Tool, input: unknown): Effect.Effect<unknown, string> =>
  Effect.suspend(() => tool.check(input)).pipe(
    Effect.catchAllDefect(() => Effect.fail("The tool could not check these arguments."))
  )

const parseObject = (text: string): Effect.Effect<unknown, string> =>
  Effect.suspend(() => {
    if (text.trim() === "") return Effect.succeed({})
    if (Json.isTooDeep(text)) return Effect.fail(`The arguments may be nested ${Json.maxDepth} levels deep at most.`)
    try {
      const value: unknown = JSON.parse(text)
      const loss = JsonText.lossOf(text)
      if (loss !== undefined) return Effect.fail(`${JsonText.pathText(loss.path)}: ${loss.message}.`)
      if (typeof value === "object" && value !== null && !Array.isArray(value))
        return Effect.succeed(Json.toJson(value))
      return Effect.fail(`The arguments must be a JSON object, not ${kindOfValue(value)}. Send the call again.`)
    } catch {
      return Effect.fail("The arguments are not valid JSON. Send the call again with one complete JSON object.")
    }
  })

const kindOfValue = (value: unknown): string =>
  value === null ? "null" : Array.isArray(value) ? "an array" : `a ${typeof value}`

/**
 * A result of an equal call of this run that an earlier attempt completed, unless a write was applied since. Calls are
 * equal when their tool and the canonical JSON of their arguments are.
 *
 * @since 0.1.0
 * @category reuse
 */
export const reuseFromRun = (state: RunState, call: Call): Reusable | undefined => {
  if (state.resumedSeq === 0 || call.input === undefined) return undefined
  const wanted = Json.canonical(call.input.value)
  const turns = Fold.turns(state)
  // The times tell, not the order of the calls: a write that had to be approved is applied after the reads beside it.
  let appliedAt = Number.NEGATIVE_INFINITY
  for (const turn of turns) {
    for (const { result, settledAt } of turn.calls) {
      if (result?.state === "applied") appliedAt = Math.max(appliedAt, settledAt ?? Number.POSITIVE_INFINITY)
    }
  }
  let found: Reusable | undefined
  for (const turn of turns) {
    for (const other of turn.calls) {
      if (turn.seq0 >= state.resumedSeq || other.id === call.id || other.name !== call.name) continue
      if (other.result?.state !== "done" || other.result.ok !== true || other.input === undefined) continue
      if (other.settledAt === undefined || other.settledAt <= appliedAt) continue
      if (Json.canonical(other.input.value) !== wanted) continue
      found = { ok: true, result: other.result.result, source: "run" }
    }
  }
  return found
}
