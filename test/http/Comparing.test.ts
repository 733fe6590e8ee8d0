/** How long a comparison of tokens takes, or how many there are, tells nothing of the tokens. */
import type * as Crypto from "node:crypto"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { vi } from "vitest"
import * as TokenCredentials from "../../src/http/TokenCredentials.js"

const compared = vi.hoisted(() => {
  const sizes: Array<readonly [number, number]> = []
  return sizes
})

vi.mock("node:crypto", async (original) => {
  const real = await original<typeof Crypto>()
  return {
    ...real,
    timingSafeEqual: (a: NodeJS.ArrayBufferView, b: NodeJS.ArrayBufferView) => {
      compared.push([a.byteLength, b.byteLength])
      return real.timingSafeEqual(a, b)
    }
  }
})

const tokens = ["first-0123456789", "second-0123456789", "a", "another-".repeat(200)].map((token, n) => ({
  token: Redacted.make(token),
  user: `user-${n}`
}))

it.effect(
  "every token is compared with every request, in constant time, wherever it stands and however alike they are",
  () =>
    Effect.gen(function* () {
      const { session, sessionUser, user } = TokenCredentials.make(tokens)
      const whole = tokens.map(() => [32, 32])
      for (const [text, expected] of [
        ["first-0123456789", "user-0"],
        ["another-".repeat(200), "user-3"],
        ["first-012345678", undefined],
        ["first-0123456789x", undefined],
        ["", undefined],
        ["x".repeat(10_000), undefined]
      ] as const) {
        compared.length = 0
        expect(Option.getOrUndefined(yield* user(text))).toBe(expected)
        expect([text.slice(0, 20), compared]).toEqual([text.slice(0, 20), whole])
        compared.length = 0
        const made = yield* session(text)
        expect(Option.isSome(made)).toBe(expected !== undefined)
        expect(compared).toEqual(whole)
        compared.length = 0
        const value = Option.match(made, { onNone: () => text, onSome: (one) => Redacted.value(one.value) })
        expect(Option.getOrUndefined(yield* sessionUser(value))).toBe(expected)
        expect(compared).toEqual(whole)
      }
    })
)
