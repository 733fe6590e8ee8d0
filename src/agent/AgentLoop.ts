/**
 * One step of a run as emissions. It never forks a run, numbers an event or stores anything: it says what happens, in
 * order, and goes on when whoever listens has made it so.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { IdGenerator } from "../domain/Ids.js"
import type { RunInput } from "../domain/RunInput.js"
import type { RunState } from "../domain/RunState.js"
import type { Secrets } from "../domain/Secrets.js"
import type { Model, ModelMessage } from "../model/Model.js"
import * as Budget from "./Budget.js"
import type * as Emission from "./Emission.js"
import { type Options as ModelTurnOptions, modelTurn } from "./ModelTurn.js"
import type { Step } from "./NextStep.js"
import type { ToolCatalog } from "./ToolCatalog.js"
import { runTools, settle, type ToolSetting } from "./ToolTurn.js"

/**
 * What a step may use. `prompt` builds the messages for a state; with `draft` the open turn's text is the last one.
 *
 * @since 0.1.0
 * @category models
 */
export interface Setting extends ToolSetting {
  readonly model: Model
  readonly input: RunInput
  readonly catalog: ToolCatalog
  readonly secrets: Secrets["Type"]
  readonly prompt: (state: RunState, draft: boolean) => Effect.Effect<ReadonlyArray<ModelMessage>>
}

/**
 * The steps that produce events by themselves; the others are decisions about the state and are the engine's.
 *
 * @since 0.1.0
 * @category models
 */
export type ActiveStep = Extract<Step, { readonly _tag: "CallModel" | "RunTools" | "Settle" }>

/**
 * Carries a step out: everything that happens in it is given to `use`, one after the other.
 *
 * @since 0.1.0
 * @category running
 */
export const run = <E>(
  setting: Setting,
  step: ActiveStep,
  use: Emission.Use<E>
): Effect.Effect<void, E, IdGenerator> => {
  switch (step._tag) {
    case "Settle":
      return Stream.runForEach(settle(setting, step.settlements), use)
    case "RunTools":
      return Stream.runForEach(runTools(setting, step.acts), use)
    case "CallModel":
      return Effect.flatMap(turnOf(setting, step), (turn) =>
        isAffordable(setting, turn.request) ? modelTurn(turn, use) : use({ _tag: "Finish", reason: "budget" })
      )
  }
}

/** A turn that was begun before is gone on with: what it costs was decided when it began. */
const isAffordable = ({ input, model, state }: Setting, { messages }: ModelTurnOptions["request"]): boolean =>
  state.open !== undefined || !Budget.isTooMuch(state.usage, input.limits, messages, model.price)

const turnOf = (
  setting: Setting,
  step: Extract<Step, { readonly _tag: "CallModel" }>
): Effect.Effect<ModelTurnOptions> =>
  Effect.gen(function* () {
    const { catalog, input, model, secrets, state } = setting
    const draft = step.continueDraft && model.continuesDraft === true
    const messages = yield* setting.prompt(state, draft)
    const maxOutputTokens = Budget.leftForOutput(state.usage, input.limits, messages, model.price)
    return {
      state,
      model,
      catalog,
      secrets,
      request: {
        runId: state.runId,
        conversationId: state.start?.conversationId ?? "",
        attempt: state.attempt,
        iteration: step.iteration,
        messages,
        tools: input.tools.filter((tool) => catalog.has(tool.name)),
        enableThinking: input.enableThinking,
        continueDraft: draft,
        ...(maxOutputTokens !== undefined && { maxOutputTokens })
      }
    }
  })
