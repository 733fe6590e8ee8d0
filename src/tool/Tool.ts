/**
 * The port to a tool. A tool says what it may do to the world (`kind`), checks its own input, and never decides by
 * itself whether it may run: the loop asks a person where the kind demands it.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { ToolKind, ToolPhase } from "../domain/AgentEvent.js"
import type { CurrentDocument } from "../domain/RunInput.js"

/**
 * The tool failed. `message` goes to the model and to the person; it holds no secret.
 *
 * @since 0.1.0
 * @category errors
 */
export class ToolFailure extends Schema.TaggedError<ToolFailure>()("ToolFailure", {
  message: Schema.String,
  result: Schema.optional(Schema.Unknown)
}) {}

/**
 * The target of a commit changed since its preview, and nothing was applied.
 *
 * @since 0.1.0
 * @category errors
 */
export class ToolConflict extends Schema.TaggedError<ToolConflict>()("ToolConflict", {
  message: Schema.optional(Schema.String)
}) {}

/**
 * The outcome of a commit or an execution is unknown: it may have happened.
 *
 * @since 0.1.0
 * @category errors
 */
export class ToolInDoubt extends Schema.TaggedError<ToolInDoubt>()("ToolInDoubt", { message: Schema.String }) {}

/**
 * What a handler knows about its call. `idempotencyKey` is the same for every try of the same act; look at it before
 * anything else. `preview` is, for a commit, what the person was shown. `progress` shows a line to the
 * person, up to as much of them as a result may have.
 *
 * @since 0.1.0
 * @category models
 */
export interface ToolContext {
  readonly user: string
  readonly runId: string
  readonly conversationId: string
  readonly toolCallId: string
  readonly phase: ToolPhase
  readonly idempotencyKey: string
  readonly currentDocument: CurrentDocument | null
  readonly preview?: unknown
  readonly progress: (delta: string) => Effect.Effect<void>
}

/**
 * What a commit did. `within` is run inside the transaction that stores its result: the effect and its record happen
 * together or not at all. It may fail with `ToolConflict` and must use the store's own database.
 *
 * @since 0.1.0
 * @category models
 */
export interface Committed {
  readonly result: unknown
  readonly within?: Effect.Effect<void, ToolConflict> | undefined
}

/**
 * What a tool answers about an act whose outcome is unknown.
 *
 * @since 0.1.0
 * @category models
 */
export type Probed = { readonly state: "applied"; readonly result?: unknown } | { readonly state: "absent" | "unknown" }

/**
 * A tool.
 *
 * - `parameters`: JSON Schema of the input, shown to the model
 * - `kindOf`: the kind for a complete input, where it depends on it; otherwise `kind`
 * - `check`: validates the model's or a person's input; the failure is a readable message. The value is what handlers
 *   receive
 * - `execute`: for `readonly` and `effectful` kinds; `preview` (a dry run) and `commit` for `write`. A `write` tool
 *   without `preview` shows its exact input
 * - `probe`: whether the act with this key has happened
 * - `idempotent`: the same key again does not repeat the effect, so an unknown outcome may be tried again
 * - `unattended`: an `effectful` tool that needs no approval
 * - `cacheable`: equal calls may share a result beyond recovery
 * - `timeoutMs`: bound of one phase; absent: the configured default
 *
 * @since 0.1.0
 * @category models
 */
export interface Tool {
  readonly name: string
  readonly description: string
  readonly title?: string | undefined
  readonly parameters: unknown
  readonly kind: ToolKind
  readonly kindOf?: ((input: unknown) => ToolKind) | undefined
  readonly check: (input: unknown) => Effect.Effect<unknown, string>
  readonly execute?:
    | ((input: unknown, context: ToolContext) => Effect.Effect<unknown, ToolFailure | ToolInDoubt>)
    | undefined
  readonly preview?: ((input: unknown, context: ToolContext) => Effect.Effect<unknown, ToolFailure>) | undefined
  readonly commit?:
    | ((input: unknown, context: ToolContext) => Effect.Effect<Committed, ToolFailure | ToolConflict | ToolInDoubt>)
    | undefined
  readonly probe?: ((context: Omit<ToolContext, "progress">) => Effect.Effect<Probed>) | undefined
  readonly idempotent?: boolean | undefined
  readonly unattended?: boolean | undefined
  readonly cacheable?: boolean | undefined
  readonly timeoutMs?: number | undefined
}
