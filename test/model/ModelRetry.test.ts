import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { ModelError } from "../../src/model/Model.js"
import * as ModelRetry from "../../src/model/ModelRetry.js"

const error = (more: { readonly retryable?: boolean; readonly retryAfterMs?: number } = {}) =>
  new ModelError({ code: "overloaded", message: "busy", retryable: true, recoverable: true, ...more })

describe("retryDelayMs", () => {
  it("grows, and spreads over its upper half", () => {
    expect([1, 2, 3].map((retry) => ModelRetry.retryDelayMs(error(), retry, 0))).toEqual([250, 500, 1_000])
    expect(ModelRetry.retryDelayMs(error(), 1, 0.999_999)).toBe(500)
  })

  it("ends after the configured number, and never begins for what can not help", () => {
    expect(ModelRetry.retryDelayMs(error(), 4, 0.5)).toBeUndefined()
    expect(ModelRetry.retryDelayMs(error(), 1, 0.5, { ...ModelRetry.defaults, retries: 0 })).toBeUndefined()
    expect(ModelRetry.retryDelayMs(error({ retryable: false }), 1, 0.5)).toBeUndefined()
  })

  it("waits as long as the server asks, up to a bound", () => {
    expect(ModelRetry.retryDelayMs(error({ retryAfterMs: 7_000 }), 1, 0.5)).toBe(7_000)
    expect(ModelRetry.retryDelayMs(error({ retryAfterMs: 1 }), 1, 0)).toBe(250)
    expect(ModelRetry.retryDelayMs(error({ retryAfterMs: 30_001 }), 1, 0.5)).toBeUndefined()
  })

  it.prop(
    "is never below what was asked nor above the bounds",
    [
      FastCheck.nat(60_000),
      FastCheck.integer({ min: 1, max: 30 }),
      FastCheck.double({ min: 0, max: 0.999, noNaN: true })
    ],
    ([retryAfterMs, retry, random]) => {
      const options = { ...ModelRetry.defaults, retries: 30 }
      const delay = ModelRetry.retryDelayMs(error({ retryAfterMs }), retry, random, options)
      if (retryAfterMs > options.maxRetryAfterMs) expect(delay).toBeUndefined()
      else {
        expect(delay).toBeGreaterThanOrEqual(retryAfterMs)
        expect(delay).toBeLessThanOrEqual(Math.max(options.maxMs, options.maxRetryAfterMs))
      }
    }
  )
})
