/**
 * What every model must do, as data: run each case with the model in question. A case that needs a model to misbehave,
 * or to call a tool, says so in `needs`: it can be run where the subject knows a question that makes it do that.
 *
 * ```ts
 * import { describe, it } from "@effect/vitest"
 * import { Effect, Layer } from "effect"
 * import { Demo } from "runlet"
 * import { ModelContract } from "runlet/testing"
 *
 * const subject = Layer.succeed(ModelContract.Subject, {
 *   model: Demo.make({ pace: 0 }),
 *   questions: { answer: "/long 5", calls: "/call document_search {}", cut: "/cut /long 5" },
 *   tool: { name: "document_search", description: "Searches", kind: "readonly", parameters: { type: "object" } }
 * })
 *
 * describe("the demo model", () => {
 *   for (const { name, needs, run } of ModelContract.cases) {
 *     if (needs !== "fails" && needs !== "hangs") it.live(name, () => Effect.provide(run, subject))
 *   }
 * })
 * ```
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { OfferedTool } from "../domain/RunInput.js"
import {
  type Model,
  ModelError,
  type ModelFinish,
  type ModelMessage,
  type ModelPart,
  type ModelRequest
} from "../model/Model.js"
import * as Json from "../tool/Json.js"
import { refusals } from "./HistoryLaws.js"

/**
 * The model does not keep the rule of a case.
 *
 * @since 0.1.0
 * @category errors
 */
export class ModelBroken extends Schema.TaggedError<ModelBroken>()("ModelBroken", { message: Schema.String }) {}

/**
 * What a question makes a model do: `answer` in text, call the subject's tool, be cut off by its provider in the middle,
 * fail, or say nothing for ever.
 *
 * @since 0.1.0
 * @category models
 */
export type Situation = "answer" | "calls" | "cut" | "fails" | "hangs"

/**
 * The model in question.
 *
 * - `questions`: a user's message for each situation that it can be brought into
 * - `tool`: what is offered together with `questions.calls`
 * - `secrets`: what it was given and must not tell
 * - `samples`: with how many histories it is tried (default 20; fewer for one that costs money)
 *
 * @since 0.1.0
 * @category services
 */
export class Subject extends Context.Tag("runlet/testing/ModelContract/Subject")<
  Subject,
  {
    readonly model: Model
    readonly questions: { readonly answer: string } & { readonly [Name in Situation]?: string }
    readonly tool?: OfferedTool
    readonly secrets?: ReadonlyArray<string>
    readonly samples?: number
  }
>() {}

/**
 * A case: `run` fails when the model does not keep the rule that `name` states, or when its subject has no question for
 * the situation that it `needs`.
 *
 * @since 0.1.0
 * @category models
 */
export interface ModelCase {
  readonly name: string
  readonly needs: Situation
  readonly run: Effect.Effect<void, ModelBroken, Subject>
}

interface Turn {
  readonly parts: ReadonlyArray<ModelPart>
  readonly exit: Exit.Exit<void, ModelError>
}

const must = (holds: boolean, message: string): Effect.Effect<void, ModelBroken> =>
  holds ? Effect.void : new ModelBroken({ message })

/** Long enough for a slow provider, short enough for a test. */
const patience = "30 seconds"

const collect = (model: Model, request: ModelRequest): Effect.Effect<Turn, ModelBroken> => {
  const parts: Array<ModelPart> = []
  return Stream.suspend(() => model.stream(request)).pipe(
    Stream.runForEach((part) => Effect.sync(() => parts.push(part))),
    Effect.asVoid,
    Effect.exit,
    Effect.map((exit): Turn => ({ parts, exit })),
    Effect.timeoutFail({
      duration: patience,
      onTimeout: () => new ModelBroken({ message: `the turn has no end; it said ${brief(parts)}` })
    })
  )
}

const brief = (value: unknown): string => Json.cut(JSON.stringify(value) ?? "nothing", 300)

const finishOf = ({ parts }: Turn): ModelFinish | undefined => parts.find((part) => part.type === "finish")

const textOf = ({ parts }: Turn): string => parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join("")

interface MadeCall {
  readonly toolCallId: string | undefined
  readonly toolName: string
  argumentsText: string
}

/** The calls of a turn; what is wrong with how they came is a violation. */
const callsOf = ({ parts }: Turn): Effect.Effect<ReadonlyArray<MadeCall>, ModelBroken> =>
  Effect.gen(function* () {
    const calls = new Map<string, MadeCall>()
    for (const part of parts) {
      if (part.type === "tool-call-start") {
        yield* must(!calls.has(part.call), `the call ${part.call} begins twice`)
        calls.set(part.call, { toolCallId: part.toolCallId, toolName: part.toolName, argumentsText: "" })
      }
      if (part.type === "tool-call-delta") {
        const call = calls.get(part.call)
        if (call === undefined) return yield* new ModelBroken({ message: `arguments of ${part.call} before its start` })
        call.argumentsText += part.delta
      }
    }
    return [...calls.values()]
  })

const isCount = (value: number): boolean => Number.isSafeInteger(value) && value >= 0

/** What holds for every turn, however it went. */
const wellFormed = (turn: Turn, secrets: ReadonlyArray<string> = []): Effect.Effect<void, ModelBroken> =>
  Effect.gen(function* () {
    const { exit, parts } = turn
    const end = parts.findIndex((part) => part.type === "finish")
    yield* must(end === -1 || end === parts.length - 1, `behind its finish comes ${brief(parts[end + 1])}`)
    yield* must(end === -1 || Exit.isSuccess(exit), `it fails behind its finish: ${brief(exit)}`)
    if (Exit.isFailure(exit)) {
      const error = Option.getOrUndefined(Cause.failureOption(exit.cause))
      yield* must(error instanceof ModelError, `it ends with ${Cause.pretty(exit.cause)}, which is no ModelError`)
      yield* must(
        error !== undefined && /^[a-z_]+$/.test(error.code) && error.message.trim().split(/\s+/).length >= 3,
        `its error says ${brief(error)}`
      )
    }
    yield* callsOf(turn)
    const finish = finishOf(turn)
    if (finish !== undefined) {
      const { inputTokens, outputTokens, totalTokens } = finish.usage
      yield* must([inputTokens, outputTokens, totalTokens].every(isCount), `its usage is ${brief(finish.usage)}`)
      const side = finish.side === undefined ? null : finish.side
      yield* must(
        Json.canonical(JSON.parse(JSON.stringify(side))) === Json.canonical(side),
        `what goes back to the provider is no JSON: ${brief(side)}`
      )
    }
    const said = JSON.stringify([parts, exit])
    yield* must(!secrets.some((secret) => said.includes(secret)), "a secret is told")
  })

const freeze = <A>(value: A): A => {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) freeze(inner)
  }
  return value
}

const requestOf = (
  messages: ReadonlyArray<ModelMessage>,
  tools: ReadonlyArray<OfferedTool>,
  more: Partial<ModelRequest> = {}
): ModelRequest =>
  freeze({
    runId: "run_1",
    conversationId: "conv_1",
    attempt: 1,
    iteration: 1,
    messages,
    tools,
    enableThinking: false,
    continueDraft: false,
    ...more
  })

const define = (
  name: string,
  needs: Situation,
  check: (subject: Subject["Type"], request: ModelRequest, question: string) => Effect.Effect<void, ModelBroken>
): ModelCase => ({
  name,
  needs,
  run: Effect.gen(function* () {
    const subject = yield* Subject
    const question = subject.questions[needs]
    if (question === undefined) return yield* new ModelBroken({ message: `there is no question for "${needs}"` })
    const tools = subject.tool === undefined || needs !== "calls" ? [] : [subject.tool]
    yield* check(subject, requestOf([{ role: "user", content: question }], tools), question)
  })
})

const words = FastCheck.constantFrom("Hello", "What is it?", "語 😀", "a\nb", "</s> {}", "0")
const content = FastCheck.array(words, { minLength: 1, maxLength: 3 }).map((all) => all.join(" "))

/** A turn of the past: text, perhaps reasoning, perhaps calls with their answers. */
const past: FastCheck.Arbitrary<ReadonlyArray<ModelMessage>> = FastCheck.record({
  question: content,
  reasoning: FastCheck.option(content, { nil: undefined }),
  answer: content,
  results: FastCheck.array(
    FastCheck.record({ result: FastCheck.jsonValue({ maxDepth: 1 }), isError: FastCheck.boolean() }),
    {
      maxLength: 2
    }
  )
}).map(({ answer, question, reasoning, results }) => {
  const thought = reasoning === undefined ? [] : [{ type: "reasoning" as const, text: reasoning }]
  const ids = results.map((_, index) => `c${index}`)
  return [
    { role: "user", content: question },
    ...(ids.length === 0
      ? []
      : [
          {
            role: "assistant" as const,
            content: [
              ...thought,
              ...ids.map((toolCallId) => ({
                type: "tool-call" as const,
                toolCallId,
                toolName: "lookup",
                argumentsText: '{"q":"x"}'
              }))
            ]
          },
          ...results.map(({ isError, result }, index) => ({
            role: "tool" as const,
            toolCallId: `c${index}`,
            toolName: "lookup",
            result,
            isError
          }))
        ]),
    { role: "assistant", content: [...thought, { type: "text", text: answer }] }
  ]
})

/** Histories that a strict provider accepts, with a last message to come. Ids of calls are unique over all turns. */
const history: FastCheck.Arbitrary<ReadonlyArray<ModelMessage>> = FastCheck.record({
  system: FastCheck.option(content, { nil: undefined }),
  turns: FastCheck.array(past, { maxLength: 3 })
}).map(({ system, turns }) => [
  ...(system === undefined ? [] : [{ role: "system" as const, content: system }]),
  ...turns.flatMap((turn, n) => turn.map((message) => withPrefix(message, `t${n}.`)))
])

const withPrefix = (message: ModelMessage, prefix: string): ModelMessage => {
  if (message.role === "tool") return { ...message, toolCallId: `${prefix}${message.toolCallId}` }
  if (message.role !== "assistant") return message
  return {
    ...message,
    content: message.content.map((part) =>
      part.type === "tool-call" ? { ...part, toolCallId: `${prefix}${part.toolCallId}` } : part
    )
  }
}

const defaultSamples = 20

const finishes = (turn: Turn, secrets: ReadonlyArray<string> | undefined): Effect.Effect<ModelFinish, ModelBroken> =>
  Effect.gen(function* () {
    yield* wellFormed(turn, secrets)
    const finish = finishOf(turn)
    if (finish === undefined) {
      return yield* new ModelBroken({
        message: `it ends without a finish: ${brief(turn.exit)}, behind ${brief(turn.parts)}`
      })
    }
    return finish
  })

/**
 * The contract of `Model`.
 *
 * @since 0.1.0
 * @category contracts
 */
export const cases: ReadonlyArray<ModelCase> = [
  define("a turn is its parts and one finish, and says something", "answer", ({ model, secrets }, request) =>
    Effect.gen(function* () {
      const turn = yield* collect(model, request)
      const finish = yield* finishes(turn, secrets)
      yield* must(finish.reason === "stop" || finish.reason === "length", `it ends with ${finish.reason}`)
      yield* must(textOf(turn) !== "", "it says nothing")
      const pieces = turn.parts.filter((part) => part.type === "text-delta" || part.type === "reasoning-delta")
      yield* must(
        pieces.every((part) => part.id !== ""),
        "a part has no id"
      )
    })
  ),
  define("two requests at once have nothing to do with each other", "answer", ({ model, secrets }, request) =>
    Effect.gen(function* () {
      const turns = yield* Effect.all([collect(model, request), collect(model, request)], { concurrency: 2 })
      for (const turn of turns) {
        yield* finishes(turn, secrets)
        yield* must(textOf(turn) !== "", "one of two says nothing")
      }
    })
  ),
  define("every history that a strict provider accepts is accepted", "answer", (subject, _, question) =>
    Effect.gen(function* () {
      const { model, samples = defaultSamples, secrets } = subject
      for (const before of FastCheck.sample(history, { numRuns: samples, seed: 1 })) {
        const request = requestOf([...before, { role: "user", content: question }], [])
        yield* must(refusals(request).length === 0, `the contract itself is unsound: ${refusals(request).join("; ")}`)
        const turn = yield* collect(model, request)
        yield* Effect.mapError(
          finishes(turn, secrets),
          ({ message }) => new ModelBroken({ message: `${message}\nbehind ${JSON.stringify(before)}` })
        )
      }
    })
  ),
  define(
    "a draft is gone on with, where the model says that it can",
    "answer",
    ({ model, secrets }, request, question) =>
      Effect.gen(function* () {
        if (model.continuesDraft !== true) return
        const whole = yield* collect(model, request)
        yield* finishes(whole, secrets)
        const draft = textOf(whole).slice(0, Math.ceil(textOf(whole).length / 2))
        const messages: ReadonlyArray<ModelMessage> = [
          { role: "user", content: question },
          { role: "assistant", content: [{ type: "text", text: draft }] }
        ]
        const rest = yield* collect(model, requestOf(messages, [], { attempt: 2, continueDraft: true }))
        yield* finishes(rest, secrets)
        yield* must(draft.length < 8 || !textOf(rest).startsWith(draft), "it says the draft again")
      })
  ),
  define("a reader who leaves is let go at once", "answer", ({ model }, request) =>
    model.stream(request).pipe(
      Stream.take(1),
      Stream.runDrain,
      Effect.mapError(({ message }) => new ModelBroken({ message })),
      Effect.timeoutFail({ duration: patience, onTimeout: () => new ModelBroken({ message: "it does not stop" }) })
    )
  ),
  define(
    "calls have a name, ids that differ and a JSON object, and their answers are understood",
    "calls",
    (subject, request, question) =>
      Effect.gen(function* () {
        const { model, secrets } = subject
        const turn = yield* collect(model, request)
        const finish = yield* finishes(turn, secrets)
        const calls = yield* callsOf(turn)
        yield* must(calls.length > 0, `it calls nothing, it says ${brief(turn.parts)}`)
        yield* must(finish.reason === "tool_calls", `a turn with calls ends with ${finish.reason}`)
        const ids = calls.flatMap(({ toolCallId }) => (toolCallId === undefined ? [] : [toolCallId]))
        yield* must(new Set(ids).size === ids.length, `ids are given twice: ${ids.join(" ")}`)
        const answered: ReadonlyArray<ModelMessage> = [
          { role: "user", content: question },
          {
            role: "assistant",
            content: calls.map(({ argumentsText, toolCallId, toolName }, index) => ({
              type: "tool-call" as const,
              toolCallId: toolCallId ?? `own${index}`,
              toolName,
              argumentsText: argumentsText === "" ? "{}" : argumentsText
            })),
            ...(finish.side !== undefined && { side: JSON.parse(JSON.stringify(finish.side)) })
          },
          ...calls.map(({ toolCallId, toolName }, index) => ({
            role: "tool" as const,
            toolCallId: toolCallId ?? `own${index}`,
            toolName,
            result: { answer: "42" },
            isError: false
          }))
        ]
        const next = requestOf(answered, request.tools, { iteration: 2 })
        yield* must(refusals(next).length === 0, `what it called can not be sent back: ${refusals(next).join("; ")}`)
        yield* finishes(yield* collect(model, next), secrets)
      })
  ),
  define("a turn that the provider cuts off is a failure, and not an end", "cut", ({ model, secrets }, request) =>
    Effect.gen(function* () {
      const turn = yield* collect(model, request)
      yield* wellFormed(turn, secrets)
      yield* must(finishOf(turn) === undefined, `it ends as if it were complete, behind ${brief(turn.parts)}`)
    })
  ),
  define(
    "a provider that fails is told as a ModelError, in words for a person",
    "fails",
    ({ model, secrets }, request) =>
      Effect.gen(function* () {
        const turn = yield* collect(model, request)
        yield* wellFormed(turn, secrets)
        yield* must(Exit.isFailure(turn.exit), `it does not fail, it says ${brief(turn.parts)}`)
      })
  ),
  define("a silent provider is let go when nobody waits any more", "hangs", ({ model }, request) =>
    Stream.runDrain(model.stream(request)).pipe(
      Effect.ignore,
      Effect.timeoutOption("300 millis"),
      Effect.timeoutFail({ duration: patience, onTimeout: () => new ModelBroken({ message: "it does not stop" }) }),
      Effect.flatMap((ended) => must(Option.isNone(ended), "it was not silent"))
    )
  )
]
