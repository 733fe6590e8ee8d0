/**
 * The model that needs no key: it looks things up with the tools it is offered, and quotes them. It remembers nothing;
 * what it does follows from the request alone, so a resumed run gets the same answer.
 *
 * Words in the user's message steer it (`/help` lists them), so that everything a run can go through can be seen.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Usage } from "../domain/AgentEvent.js"
import * as DemoPlan from "./DemoPlan.js"
import * as Text from "./DemoText.js"
import { type Model, ModelError, type ModelMessage, type ModelPart, type ModelRequest } from "./Model.js"

/**
 * `pace`: the time for one word, 35 ms unless said. With zero, a turn comes in one piece.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly pace?: Duration.DurationInput | undefined
}

const textsOf = (message: ModelMessage): ReadonlyArray<string> => {
  switch (message.role) {
    case "system":
    case "user":
      return [message.content]
    case "assistant":
      return message.content.map((part) => (part.type === "tool-call" ? part.argumentsText : part.text))
    case "tool":
      return [JSON.stringify(message.result ?? null)]
  }
}

/** Words, for want of tokens. */
const spoken = (request: ModelRequest): number =>
  request.messages.flatMap(textsOf).reduce((sum, text) => sum + Text.words(text).length, 0)

const draftOf = (request: ModelRequest): string | undefined => {
  const last = request.messages.at(-1)
  return request.continueDraft && last?.role === "assistant"
    ? last.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("")
    : undefined
}

/** What is still to be said after a draft. A draft that is not the beginning of the answer is left standing. */
const behind = (text: string, draft: string): string =>
  text.startsWith(draft) ? text.slice(draft.length) : `\n\n${text}`

const deltas = (type: "text-delta" | "reasoning-delta", text: string): ReadonlyArray<ModelPart> =>
  Text.words(text).map((delta) => ({ type, id: type === "text-delta" ? "text" : "thought", delta }))

const callParts = (calls: DemoPlan.Plan["calls"]): ReadonlyArray<ModelPart> =>
  calls.flatMap(({ input, name }, index): ReadonlyArray<ModelPart> => {
    const call = String(index)
    return [
      { type: "tool-call-start", call, toolName: name },
      ...Text.words(JSON.stringify(input)).map((delta): ModelPart => ({ type: "tool-call-delta", call, delta }))
    ]
  })

const cutOff = new ModelError({
  code: "truncated",
  message: "The demo model broke off, as /cut asked for. Resume the run to go on.",
  retryable: false,
  recoverable: true
})

interface Turn {
  readonly parts: ReadonlyArray<ModelPart>
  readonly cut: boolean
  readonly slow: number
}

/** The whole turn, before any of it is said. */
const turn = (request: ModelRequest): Turn => {
  const draft = draftOf(request)
  const plan = DemoPlan.plan(draft === undefined ? request : { ...request, messages: request.messages.slice(0, -1) })
  const thought = draft === undefined ? deltas("reasoning-delta", plan.thought) : []
  const text = deltas("text-delta", draft === undefined ? plan.text : behind(plan.text, draft))
  if (plan.cut) {
    return { parts: [...thought, ...text.slice(0, Math.ceil(text.length / 2))], cut: true, slow: plan.slow }
  }
  const calls = callParts(plan.calls)
  const inputTokens = spoken(request)
  const outputTokens = thought.length + text.length + calls.length
  const usage: Usage = {
    inputTokens,
    outputTokens,
    ...(thought.length > 0 ? { reasoningTokens: thought.length } : {}),
    totalTokens: inputTokens + outputTokens
  }
  return {
    parts: [
      ...thought,
      ...text,
      ...calls,
      { type: "finish", reason: plan.calls.length > 0 ? "tool_calls" : "stop", usage }
    ],
    cut: false,
    slow: plan.slow
  }
}

/**
 * The demo model. Deterministic; waits only through the `Clock`. It always thinks aloud for a moment, asked for or not.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options = {}): Model => {
  const pace = Duration.decode(options.pace ?? "35 millis")
  return {
    continuesDraft: true,
    provider: "runlet",
    stream: (request) =>
      Stream.suspend(() => {
        const { cut, parts, slow } = turn(request)
        const pause = Duration.times(pace, slow)
        const said = Stream.fromIterable(parts)
        const paced = Duration.equals(pause, Duration.zero)
          ? said
          : said.pipe(
              Stream.rechunk(1),
              Stream.tap((part) => (part.type === "finish" ? Effect.void : Effect.sleep(pause)))
            )
        return cut ? Stream.concat(paced, Stream.fail(cutOff)) : paced
      })
  }
}
