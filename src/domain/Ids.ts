/**
 * Names of runs, conversations, messages and approvals: a short prefix and a UUID version 7, so that they sort by
 * time of creation.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"
import { v7 } from "uuid"

const uuid = (version: string) => `[0-9a-f]{8}-[0-9a-f]{4}-${version}[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`

const id = <Prefix extends string>(prefix: Prefix, version = "7") =>
  Schema.String.pipe(Schema.pattern(new RegExp(`^${prefix}_${uuid(version)}$`)))

/**
 * Names one run: `run_` and a UUID version 7.
 *
 * @since 0.1.0
 * @category ids
 */
export const RunId = id("run").pipe(Schema.brand("RunId"))
/**
 * @since 0.1.0
 * @category ids
 */
export type RunId = typeof RunId.Type

/**
 * Names one thread of messages: `conv_` and a UUID version 7; or version 8 where it is made from the name that a client
 * gave the thread.
 *
 * @since 0.1.0
 * @category ids
 */
export const ConversationId = id("conv", "[78]").pipe(Schema.brand("ConversationId"))
/**
 * @since 0.1.0
 * @category ids
 */
export type ConversationId = typeof ConversationId.Type

/**
 * Names one message, of the user or of the assistant: `msg_` and a UUID version 7.
 *
 * @since 0.1.0
 * @category ids
 */
export const MessageId = id("msg").pipe(Schema.brand("MessageId"))
/**
 * @since 0.1.0
 * @category ids
 */
export type MessageId = typeof MessageId.Type

/**
 * Names one question to a person: `apr_` and a UUID version 7.
 *
 * @since 0.1.0
 * @category ids
 */
export const ApprovalId = id("apr").pipe(Schema.brand("ApprovalId"))
/**
 * @since 0.1.0
 * @category ids
 */
export type ApprovalId = typeof ApprovalId.Type

/**
 * Makes new ids. A service, so that a test with a seed gets the same ids each time.
 *
 * @since 0.1.0
 * @category services
 */
export class IdGenerator extends Context.Tag("runlet/IdGenerator")<
  IdGenerator,
  {
    readonly run: Effect.Effect<RunId>
    readonly conversation: Effect.Effect<ConversationId>
    readonly message: Effect.Effect<MessageId>
    readonly approval: Effect.Effect<ApprovalId>
    /** Any unique text, for ids that stay inside a run (part ids, calls without an id of their own). */
    readonly key: Effect.Effect<string>
  }
>() {}

/**
 * The id of the conversation that a user's client knows by a name of its own: always the same for the same two, and not
 * to be guessed from the id of another. `digest` is a SHA-256 in hex that is made of both.
 *
 * @since 0.1.0
 * @category ids
 */
export const namedConversation = (digest: string): ConversationId => {
  const variant = ((Number.parseInt(digest.slice(16, 18), 16) & 0x3f) | 0x80).toString(16)
  const bytes = [
    digest.slice(0, 8),
    digest.slice(8, 12),
    `8${digest.slice(13, 16)}`,
    `${variant}${digest.slice(18, 20)}`
  ]
  return ConversationId.make(`conv_${bytes.join("-")}-${digest.slice(20, 32)}`)
}

const seededUuid = Effect.gen(function* () {
  const msecs = yield* Clock.currentTimeMillis
  const random = new Uint8Array(16)
  for (let i = 0; i < 16; i += 4) {
    const word = yield* Random.nextIntBetween(0, 0x1_0000_0000)
    random.set([word & 255, (word >>> 8) & 255, (word >>> 16) & 255, (word >>> 24) & 255], i)
  }
  return v7({
    msecs,
    random,
    seq: ((random[6] ?? 0) << 24) | ((random[7] ?? 0) << 16) | ((random[8] ?? 0) << 8) | (random[9] ?? 0)
  })
})

const make = (uuidEffect: Effect.Effect<string>): IdGenerator["Type"] => ({
  run: Effect.map(uuidEffect, (_) => RunId.make(`run_${_}`, { disableValidation: true })),
  conversation: Effect.map(uuidEffect, (_) => ConversationId.make(`conv_${_}`, { disableValidation: true })),
  message: Effect.map(uuidEffect, (_) => MessageId.make(`msg_${_}`, { disableValidation: true })),
  approval: Effect.map(uuidEffect, (_) => ApprovalId.make(`apr_${_}`, { disableValidation: true })),
  key: uuidEffect
})

/**
 * Ids from the operating system's randomness: not guessable, monotonic within a process.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<IdGenerator> = Layer.succeed(IdGenerator, make(Effect.sync(() => v7())))

/**
 * Ids from the `Random` and `Clock` services: the same seed gives the same ids. For tests and replays only.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerSeeded: Layer.Layer<IdGenerator> = Layer.succeed(IdGenerator, make(seededUuid))
