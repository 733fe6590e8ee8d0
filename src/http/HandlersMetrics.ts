/**
 * The handler of the call for figures.
 *
 * @since 0.1.0
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import { RunEngine } from "../engine/RunEngine.js"
import * as Measuring from "./Measuring.js"
import { contentType } from "./Prometheus.js"
import { RunsApi } from "./RunsApi.js"

/**
 * The handler of the call for figures.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = HttpApiBuilder.group(RunsApi, "metrics", (handlers) =>
  Effect.gen(function* () {
    const measure = yield* Measuring.make(yield* RunEngine)
    return handlers.handleRaw("metrics", () =>
      Effect.map(measure, (text) =>
        HttpServerResponse.text(text, { contentType, headers: { "cache-control": "no-store" } })
      )
    )
  })
)
