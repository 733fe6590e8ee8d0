/**
 * What a check of a server is, and what checks are made of.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { Envelope } from "../../domain/Envelope.js"
import type * as Snapshot from "../../domain/Snapshot.js"
import * as Schemas from "../../http/RunsSchemas.js"
import type { Law } from "../Law.js"
import { nothing, type Observed } from "../Observed.js"
import type { Session } from "./Session.js"
import { type Answer, type Ask, Target, type Unreachable, type Watched, type Watching } from "./Target.js"
import type { Frame } from "./Wire.js"

/**
 * The server does not keep the rule of a check.
 *
 * @since 0.1.0
 * @category errors
 */
export class Broken extends Schema.TaggedError<Broken>()("Broken", { message: Schema.String }) {}

/**
 * The check can not be made with this server: what it needs is not there. `message` says what.
 *
 * @since 0.1.0
 * @category errors
 */
export class Skipped extends Schema.TaggedError<Skipped>()("Skipped", { message: Schema.String }) {}

type Failure = Broken | Skipped | Unreachable

/**
 * A check of a running server. `check` fails with `Broken` when the server does not keep the rule that `name` states.
 *
 * @since 0.1.0
 * @category models
 */
export interface HttpCheck {
  readonly name: string
  readonly check: Effect.Effect<void, Failure, Target | Session>
}

/**
 * A check out of a program; what it makes goes with its scope.
 *
 * @since 0.1.0
 * @category constructors
 */
export const define = (
  name: string,
  body: Effect.Effect<void, Failure, Target | Session | Scope.Scope>
): HttpCheck => ({ name, check: Effect.scoped(body) })

/**
 * Fails with `Broken` unless something holds.
 *
 * @since 0.1.0
 * @category assertions
 */
export const must = (holds: boolean, message: string): Effect.Effect<void, Broken> =>
  holds ? Effect.void : new Broken({ message })

/**
 * The laws, on what was observed over HTTP.
 *
 * @since 0.1.0
 * @category assertions
 */
export const mustKeep = (laws: ReadonlyArray<Law>, observed: Partial<Observed>): Effect.Effect<void, Broken> =>
  Effect.suspend(() => {
    const all: Observed = { ...nothing, ...observed }
    const violations = laws.flatMap((law) => law.check(all).map((text) => `${law.name}: ${text}`))
    return must(violations.length === 0, violations.slice(0, 3).join("; "))
  })

/**
 * What a value holds under a name, if it is an object.
 *
 * @since 0.1.0
 * @category reading
 */
export const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined

/**
 * A field that must be text.
 *
 * @since 0.1.0
 * @category reading
 */
export const text = (answer: Answer, name: string): Effect.Effect<string, Broken> => {
  const value = field(answer.json, name)
  return typeof value === "string"
    ? Effect.succeed(value)
    : new Broken({ message: `${name} is missing in ${brief(answer)}` })
}

/**
 * An answer in few words.
 *
 * @since 0.1.0
 * @category printing
 */
export const brief = ({ status, text }: Pick<Answer, "status" | "text">): string =>
  `the answer ${status} ${text.length > 160 ? `${text.slice(0, 160)}…` : text}`

/**
 * Asks, and must be answered with this status.
 *
 * @since 0.1.0
 * @category requests
 */
export const ask = (status: number, what: Ask): Effect.Effect<Answer, Broken | Unreachable, Target> =>
  Effect.gen(function* () {
    const target = yield* Target
    const answer = yield* target.request(what)
    yield* must(answer.status === status, `${what.method} ${what.path}: ${status} was expected, not ${brief(answer)}`)
    return answer
  })

/**
 * Asks, and must be refused with this status: as JSON that has a `_tag` and says something, without anything of how the
 * server is made.
 *
 * @since 0.1.0
 * @category requests
 */
export const refused = (status: number, what: Ask): Effect.Effect<Answer, Broken | Unreachable, Target> =>
  Effect.tap(ask(status, what), (answer) => {
    const tag = field(answer.json, "_tag")
    const message = field(answer.json, "message")
    const where = `${what.method} ${what.path}`
    return typeof tag === "string" && typeof message === "string" && message !== ""
      ? must(
          !/\n\s+at |node_modules|\bselect\b.*\bfrom\b/i.test(message),
          `${where}: the inside of the server shows in ${brief(answer)}`
        )
      : new Broken({ message: `${where}: a refusal needs _tag and message, not ${brief(answer)}` })
  })

/**
 * Watches a stream that must begin.
 *
 * @since 0.1.0
 * @category requests
 */
export const watch = (what: Ask, how?: Watching): Effect.Effect<Watched, Broken | Unreachable, Target> =>
  Effect.gen(function* () {
    const target = yield* Target
    const watched = yield* target.watch(what, how)
    yield* must(watched.status === 200, `${what.method} ${what.path}: a stream was expected, not ${brief(watched)}`)
    yield* must(watched.strange.length === 0, `${what.method} ${what.path}: ${watched.strange.join("; ")}`)
    return watched
  })

const decodeEnvelope = Schema.decodeUnknownEither(Schema.parseJson(Envelope))
const decodeSnapshot = Schema.decodeUnknownEither(Schemas.Snapshot)

/**
 * The envelopes of frames, without the control frames. Each must be one, under its own seq.
 *
 * @since 0.1.0
 * @category reading
 */
export const envelopes = (frames: ReadonlyArray<Frame>): Effect.Effect<ReadonlyArray<Envelope>, Broken> =>
  Effect.forEach(
    frames.filter(({ data }) => !isControl(data)),
    ({ data, id }) =>
      Either.match(decodeEnvelope(data), {
        onLeft: () => Effect.fail(new Broken({ message: `this is no envelope: ${data.slice(0, 160)}` })),
        onRight: (envelope) =>
          Effect.as(
            must(id === undefined || id === String(envelope.seq), `the frame of ${envelope.seq} has the id ${id}`),
            envelope
          )
      })
  )

const isControl = (data: string): boolean => /^\{"type":"resume-(start|unavailable)"/.test(data)

/**
 * The control frames among frames. They must not move a cursor, so they have no id.
 *
 * @since 0.1.0
 * @category reading
 */
export const controls = (frames: ReadonlyArray<Frame>): Effect.Effect<ReadonlyArray<unknown>, Broken> =>
  Effect.forEach(
    frames.filter(({ data }) => isControl(data)),
    ({ data, id }) => Effect.as(must(id === undefined, `a control frame has the id ${id}`), JSON.parse(data))
  )

/**
 * The run as it stands now.
 *
 * @since 0.1.0
 * @category runs
 */
export const snapshot = (runId: string): Effect.Effect<Snapshot.Snapshot, Broken | Unreachable, Target> =>
  Effect.flatMap(ask(200, { method: "GET", path: `/runs/${runId}` }), (answer) =>
    Either.match(decodeSnapshot(answer.json), {
      onLeft: () => Effect.fail(new Broken({ message: `this is no snapshot: ${brief(answer)}` })),
      onRight: Effect.succeed
    })
  )

/**
 * Waits until a run is as wanted. How long that may take is up to the one who runs the check.
 *
 * @since 0.1.0
 * @category runs
 */
export const until = (
  runId: string,
  wanted: (snapshot: Snapshot.Snapshot) => boolean
): Effect.Effect<Snapshot.Snapshot, Broken | Unreachable, Target> =>
  Effect.flatMap(snapshot(runId), (now) =>
    wanted(now) ? Effect.succeed(now) : Effect.delay(until(runId, wanted), "50 millis")
  )

/**
 * The whole log of a run that has ended, or what is stored of it so far.
 *
 * @since 0.1.0
 * @category runs
 */
export const logOf = (runId: string, after = 0): Effect.Effect<ReadonlyArray<Envelope>, Broken | Unreachable, Target> =>
  Effect.flatMap(snapshot(runId), ({ lastSeq }) =>
    lastSeq <= after
      ? Effect.succeed([])
      : Effect.flatMap(
          watch(
            { method: "GET", path: `/runs/${runId}/events?after=${after}` },
            { until: ({ frames }) => frames.length >= lastSeq - after }
          ),
          ({ frames }) => envelopes(frames)
        )
  )

/**
 * The terminal events.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isTerminal = (type: string): boolean => type === "finish" || type === "cancelled" || type === "error"
