/**
 * Sends what begins work, so that however often it is sent it begins once: the same words go under the same key until
 * their fate is known.
 *
 * @since 0.1.0
 */
import { RunletError } from "../../client/RunletError.js"

/**
 * `tries` is how often a request is sent before its sender is told that there is no answer; `pause` waits between two
 * tries, `newKey` makes idempotency keys.
 *
 * @since 0.1.0
 * @category options
 */
export interface SenderOptions {
  readonly tries: number
  readonly pause: (milliseconds: number) => Promise<void>
  readonly newKey: () => string
}

/**
 * - `what`: the request in words; the same words are the same request
 * - `call`: sends it under a key
 * - `wanted`: whether somebody still waits for it
 * - `waiting`: is told when there was no answer and it will be sent again
 *
 * @since 0.1.0
 * @category models
 */
export interface Sending<A> {
  readonly what: string
  readonly call: (key: string) => Promise<A>
  readonly wanted: () => boolean
  readonly waiting: () => void
}

/**
 * Gives the answer, or nothing when nobody waits for it any more. Rejects with the server's refusal, or with the last
 * failure when there was no answer; the same request may then be sent again.
 *
 * @since 0.1.0
 * @category models
 */
export type Send = <A>(sending: Sending<A>) => Promise<A | undefined>

/**
 * A sender of its own memory.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeSender = ({ newKey, pause, tries }: SenderOptions): Send => {
  let unsure: { readonly what: string; readonly key: string } | undefined
  return async ({ call, waiting, wanted, what }) => {
    const mine = unsure?.what === what ? unsure : { what, key: newKey() }
    unsure = mine
    for (let tried = 1; ; tried++) {
      try {
        const answer = await call(mine.key)
        if (unsure === mine) unsure = undefined
        return wanted() ? answer : undefined
      } catch (error) {
        const lost = error instanceof RunletError && error.transient
        if (!lost && unsure === mine) unsure = undefined
        if (!wanted()) return undefined
        if (!lost || error.status === 429 || tried >= tries) throw error
        waiting()
        await pause(500 * 2 ** tried)
        if (!wanted()) return undefined
      }
    }
  }
}
