/**
 * JSON Web Tokens (RFC 7519) that somebody else has issued: signed with a shared secret, or with keys that are published
 * as a set (RFC 7517).
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Jose from "jose"
import { Unavailable } from "../domain/RunError.js"
import type { Credentials } from "./Credentials.js"

/**
 * `issuer` and `audience`, when given, must be those of the token. `userClaim` names the claim that is the user's id
 * (`sub` by default).
 *
 * @since 0.1.0
 * @category models
 */
export type Options = {
  readonly issuer?: string | undefined
  readonly audience?: string | undefined
  readonly userClaim?: string | undefined
} & ({ readonly secret: Redacted.Redacted } | { readonly jwksUrl: string })

/** How much the clocks of the issuer and of this machine may differ, in seconds. */
const toleranceSeconds = 5

/** A cookie that is longer is thrown away by browsers, without a word. */
const maxCookie = 3900

/** A set of public keys is small, and one that hangs must not hold requests. */
const maxSetBytes = 1_048_576
const fetchMs = 5_000

/** Only these, whatever a token says of itself: a secret must never be taken for a public key, or the other way round. */
const symmetric = ["HS256"]
const asymmetric = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]

/** Codes of what is wrong with a token, as opposed to what is wrong with the way to its keys. */
const faults = new Set([
  "ERR_JWT_CLAIM_VALIDATION_FAILED",
  "ERR_JWT_EXPIRED",
  "ERR_JWT_INVALID",
  "ERR_JWS_INVALID",
  "ERR_JWS_SIGNATURE_VERIFICATION_FAILED",
  "ERR_JOSE_ALG_NOT_ALLOWED",
  "ERR_JOSE_NOT_SUPPORTED",
  "ERR_JWKS_NO_MATCHING_KEY",
  "ERR_JWKS_MULTIPLE_MATCHING_KEYS"
])

class NoKeys extends Data.TaggedError("NoKeys")<{ readonly cause: unknown }> {}

const unavailable = new Unavailable({
  message: "The keys that tokens are checked with can not be fetched. Try again in a moment.",
  retryAfterMs: 5000
})

const bounded: Jose.FetchImplementation = async (url, options) => {
  const response = await fetch(url, { ...options, redirect: "error" })
  const reader = response.body?.getReader()
  const pieces: Array<Uint8Array> = []
  let size = 0
  for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
    size += next.value.length
    if (size > maxSetBytes) throw new Error("The set of keys is too large")
    pieces.push(next.value)
  }
  return new Response(Buffer.concat(pieces), { status: response.status })
}

type Verify = (token: string, options: Jose.JWTVerifyOptions) => Promise<Jose.JWTVerifyResult>

const verifier = (options: Options): Verify => {
  if ("secret" in options) {
    const key = Buffer.from(Redacted.value(options.secret), "utf8")
    return (token, expected) => Jose.jwtVerify(token, key, expected)
  }
  // Keeps the keys for ten minutes, and asks again, twice a minute at most, when a token names one that is not there.
  const keys = Jose.createRemoteJWKSet(new URL(options.jwksUrl), {
    timeoutDuration: fetchMs,
    [Jose.customFetch]: bounded
  })
  return (token, expected) => Jose.jwtVerify(token, keys, expected)
}

interface Verified {
  readonly user: string
  /** For how long the token is still good, in milliseconds. */
  readonly forMs: number
}

/**
 * The users that valid tokens name. A token must say until when it is good.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<Credentials> =>
  Effect.sync(() => {
    const { audience, issuer, userClaim = "sub" } = options
    const jwtVerify = verifier(options)
    const expected: Jose.JWTVerifyOptions = {
      algorithms: "secret" in options ? symmetric : asymmetric,
      clockTolerance: toleranceSeconds,
      requiredClaims: ["exp", userClaim],
      ...(audience !== undefined && { audience }),
      ...(issuer !== undefined && { issuer })
    }

    const verify = (token: string): Effect.Effect<Option.Option<Verified>, Unavailable> =>
      Effect.gen(function* () {
        // What has not the form of one is another kind of token, and costs nothing to tell apart.
        if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return Option.none()
        const now = yield* Clock.currentTimeMillis
        const { payload } = yield* Effect.tryPromise({
          try: () => jwtVerify(token, { ...expected, currentDate: new Date(now) }),
          catch: (cause) => new NoKeys({ cause })
        })
        const user = payload[userClaim]
        const { exp } = payload
        return typeof user === "string" && user !== "" && user.length <= 256 && exp !== undefined
          ? Option.some({ user, forMs: Math.max(0, exp * 1000 - now) })
          : Option.none()
      }).pipe(
        Effect.catchTag("NoKeys", ({ cause }) =>
          cause instanceof Jose.errors.JOSEError && faults.has(cause.code)
            ? Effect.succeed(Option.none())
            : Effect.zipRight(
                Effect.annotateLogs(Effect.logWarning("The keys of tokens could not be fetched"), {
                  reason: cause instanceof Error ? cause.message : "unknown"
                }),
                unavailable
              )
        )
      )

    const user = (token: string) =>
      Effect.map(
        verify(token),
        Option.map((found) => found.user)
      )
    return {
      user,
      // The page keeps the token itself: it ends by itself, and whoever issued it can take it back.
      session: (token) =>
        Effect.map(
          verify(token),
          Option.flatMap(({ forMs }) =>
            token.length > maxCookie ? Option.none() : Option.some({ value: Redacted.make(token), forMs })
          )
        ),
      sessionUser: user
    }
  })
