/**
 * Tokens that the configuration lists. All of them are compared, each in constant time, so that neither the time nor the
 * answer says how near a guess was.
 *
 * @since 0.1.0
 */
import { createHash, timingSafeEqual } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { Credentials } from "./Credentials.js"

const hash = (text: string) => createHash("sha256").update(text, "utf8").digest()

/** Not the token itself, so that what a browser keeps is of no use elsewhere, and gone when the token is revoked. */
const sessionOf = (token: string) => createHash("sha256").update(`runlet session\0${token}`, "utf8").digest("base64url")

const monthMs = 30 * 86_400_000

/**
 * The users of these tokens.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  tokens: ReadonlyArray<{ readonly token: Redacted.Redacted; readonly user: string }>
): Credentials => {
  const known = tokens.map(({ token, user }) => {
    const session = sessionOf(Redacted.value(token))
    return { user, session, tokenHash: hash(Redacted.value(token)), sessionHash: hash(session) }
  })
  type Known = (typeof known)[number]

  const find = (text: string, of: (known: Known) => Buffer): Option.Option<Known> => {
    const wanted = hash(text)
    let found: Known | undefined
    for (const each of known) {
      if (timingSafeEqual(of(each), wanted)) found = each
    }
    return Option.fromNullable(found)
  }
  const byToken = (token: string) => find(token, (_) => _.tokenHash)
  const bySession = (value: string) => find(value, (_) => _.sessionHash)

  return {
    user: (token) => Effect.sync(() => Option.map(byToken(token), (_) => _.user)),
    session: (token) =>
      Effect.sync(() => Option.map(byToken(token), (_) => ({ value: Redacted.make(_.session), forMs: monthMs }))),
    sessionUser: (value) => Effect.sync(() => Option.map(bySession(value), (_) => _.user))
  }
}
