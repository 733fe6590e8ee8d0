/**
 * Runs that the checks make, and meeting a server for the first time.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as RunStatus from "../../domain/RunStatus.js"
import * as Check from "./Check.js"
import { Session } from "./Session.js"
import { type Ask, make, type Options, Target, type Unreachable } from "./Target.js"

/**
 * What a start names.
 *
 * @since 0.1.0
 * @category models
 */
export interface Started {
  readonly runId: string
  readonly conversationId: string
  readonly assistantMessageId: string
}

type Refused = Check.Broken | Unreachable

const retryAfter = (value: string | undefined): number => Math.min(10, Math.max(1, Number(value) || 1))

const post = (body: object, more: Partial<Ask> = {}): Ask => ({ method: "POST", path: "/chat", body, ...more })

/** Starts in the background. Whoever has no place for one more run just now is asked again. */
const begin = (body: object, more?: Partial<Ask>): Effect.Effect<Started, Refused, Target> =>
  Effect.gen(function* () {
    const target = yield* Target
    const answer = yield* target.request(post({ ...body, background: true }, more))
    if (answer.status === 429) {
      yield* Effect.sleep(`${retryAfter(answer.headers["retry-after"])} seconds`)
      return yield* begin(body, more)
    }
    yield* Check.must(answer.status === 202, `a start in the background: 202 was expected, not ${Check.brief(answer)}`)
    return {
      runId: yield* Check.text(answer, "runId"),
      conversationId: yield* Check.text(answer, "conversationId"),
      assistantMessageId: yield* Check.text(answer, "assistantMessageId")
    }
  })

/**
 * Starts a run in the background; it is cancelled with the scope, if it still goes on then.
 *
 * @since 0.1.0
 * @category runs
 */
export const start = (
  message: string,
  body: object = {},
  more?: Partial<Ask>
): Effect.Effect<Started, Refused, Target | Session | Scope.Scope> =>
  Effect.gen(function* () {
    const { made } = yield* Session
    return yield* Effect.acquireRelease(begin({ message, ...body }, more), ({ conversationId, runId }) => {
      made.add(conversationId)
      return Effect.ignore(cancel(runId, more?.as))
    })
  })

const cancel = (runId: string, as?: Ask["as"]) =>
  Effect.flatMap(Target, ({ request }) => request({ method: "POST", path: `/runs/${runId}/cancel`, as }))

/**
 * Starts a run and waits for its end.
 *
 * @since 0.1.0
 * @category runs
 */
export const finished = (message: string, body?: object) =>
  Effect.flatMap(start(message, body), (run) =>
    Effect.map(
      Check.until(run.runId, ({ status }) => RunStatus.isEnded(status)),
      (snapshot) => ({ ...run, snapshot })
    )
  )

/**
 * For checks that steer the built-in model by words of its own.
 *
 * @since 0.1.0
 * @category requirements
 */
export const needsDemo: Effect.Effect<void, Check.Skipped, Session> = Effect.flatMap(Session, ({ demo }) =>
  demo ? Effect.void : new Check.Skipped({ message: "needs the demo model" })
)

const wordsOf = (text: string): number => text.split(/\s+/).filter((word) => word !== "").length

/** The built-in model takes its orders literally, again and again. */
const isDemo = (made: Set<string>) =>
  Effect.map(
    Effect.forEach(
      [1, 3, 4],
      (count) =>
        Effect.gen(function* () {
          const { conversationId, runId } = yield* begin({ message: `/long ${count}` })
          made.add(conversationId)
          const { text } = yield* Check.until(runId, ({ status }) => RunStatus.isEnded(status))
          return wordsOf(text) === count
        }),
      { concurrency: "unbounded" }
    ),
    (literal) => literal.every(Boolean)
  )

const specimenOf = (message: string) =>
  Effect.gen(function* () {
    const target = yield* Target
    const stream = yield* target.watch(post({ message }, { headers: { accept: "text/event-stream" } }))
    yield* Check.must(stream.status === 200, `POST /chat: a stream was expected, not ${Check.brief(stream)}`)
    const log = yield* Check.envelopes(stream.frames)
    const first = log[0]?.event
    if (first?.type !== "run-start") return yield* new Check.Broken({ message: "a log must begin with run-start" })
    const { conversationId, runId } = first
    return { runId, conversationId, stream, log, snapshot: yield* Check.snapshot(runId) }
  })

/** Conversations that the checks made are theirs to remove; a run that goes on keeps its own. */
const tidy = (made: ReadonlySet<string>) =>
  Effect.flatMap(Target, ({ request }) =>
    Effect.forEach(
      made,
      (conversationId) => Effect.ignore(request({ method: "DELETE", path: `/conversations/${conversationId}` })),
      { concurrency: 4, discard: true }
    )
  )

const session = Effect.gen(function* () {
  const { options } = yield* Target
  const made = new Set<string>()
  yield* Effect.addFinalizer(() => tidy(made))
  const demo = options.message === undefined && (yield* isDemo(made))
  const short = options.message ?? (demo ? "/long 40" : "What is an append-only log? Answer in two sentences.")
  const long = options.longMessage ?? (demo ? "/slow /long 900" : "Write the numbers from 1 to 500 as English words.")
  const specimen = yield* specimenOf(short)
  made.add(specimen.conversationId)
  return { demo, short, long, specimen, made }
})

/**
 * The server at an address, met for the first time. What the checks made there is removed with the scope.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options) =>
  Layer.scoped(Session, session).pipe(Layer.provideMerge(Layer.effect(Target, make(options))))

/**
 * A text of its own for a run, so that no two checks are taken for one.
 *
 * @since 0.1.0
 * @category runs
 */
export const unique: Effect.Effect<string> = Effect.map(Clock.currentTimeNanos, (now) => `k${now.toString(36)}`)
