/**
 * What every server of the protocol must do, as data: checks that are run over HTTP against any server that is running.
 * `runlet conformance <url>` runs all of them.
 *
 * ```ts
 * import { NodeHttpClient } from "@effect/platform-node"
 * import { Console, Effect } from "effect"
 * import { HttpContract } from "runlet/testing"
 *
 * const program = HttpContract.run({ url: "http://127.0.0.1:4747" }).pipe(
 *   Effect.flatMap((report) => Console.log(HttpContract.print(report))),
 *   Effect.provide(NodeHttpClient.layerUndici)
 * )
 * ```
 *
 * The checks make runs and conversations of their own, and remove them in the end. With the built-in demo model they
 * also write some documents named "Conformance …", to see that approvals are kept; these stay.
 *
 * @since 0.1.0
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { approvals } from "./http/approvals.js"
import type { HttpCheck } from "./http/Check.js"
import { Broken } from "./http/Check.js"
import { conversations } from "./http/conversations.js"
import { cursors } from "./http/cursors.js"
import { living } from "./http/living.js"
import { logs } from "./http/logs.js"
import { last, ownership } from "./http/ownership.js"
import * as Runs from "./http/Runs.js"
import type { Session } from "./http/Session.js"
import { starting } from "./http/starting.js"
import type { Options, Target } from "./http/Target.js"

export type {
  /**
   * A check: `check` fails with `Broken` when the server does not keep the rule that `name` states, with `Skipped` when
   * the server has not what the check needs, and with `Unreachable` when it does not answer.
   *
   * @since 0.1.0
   * @category models
   */
  HttpCheck
} from "./http/Check.js"
export type {
  /**
   * Which server, and what may be asked of it.
   *
   * @since 0.1.0
   * @category models
   */
  Options
} from "./http/Target.js"

/**
 * The contract of a server.
 *
 * @since 0.1.0
 * @category contracts
 */
export const checks: ReadonlyArray<HttpCheck> = [
  ...living,
  ...starting,
  ...logs,
  ...cursors,
  ...conversations,
  ...approvals,
  ...ownership
]

/**
 * What came of a check. `message`: what was broken, or why it was skipped.
 *
 * @since 0.1.0
 * @category models
 */
export interface Result {
  readonly name: string
  readonly outcome: "passed" | "broken" | "skipped"
  readonly message?: string
  readonly durationMs: number
}

/**
 * What came of all of them. `passed`: whether nothing was broken.
 *
 * @since 0.1.0
 * @category models
 */
export interface Report {
  readonly url: string
  readonly passed: boolean
  readonly results: ReadonlyArray<Result>
}

const defaultPatienceMs = 90_000

/** So many at once: the longest ones wait for a heartbeat most of the time. */
const concurrency = 8

const failedBy = (
  cause: Cause.Cause<{ readonly _tag: string; readonly message: string }>
): Pick<Result, "outcome" | "message"> =>
  Option.match(Cause.failureOption(cause), {
    onNone: () => ({ outcome: "broken", message: `the check itself failed: ${Cause.pretty(cause)}` }),
    onSome: ({ _tag, message }) => ({ outcome: _tag === "Skipped" ? "skipped" : "broken", message })
  })

const runOne = ({ check, name }: HttpCheck, patienceMs: number): Effect.Effect<Result, never, Target | Session> =>
  Effect.gen(function* () {
    const began = yield* Clock.currentTimeMillis
    const exit = yield* check.pipe(
      Effect.timeoutFail({
        duration: patienceMs,
        onTimeout: () => new Broken({ message: `it did not come to an end within ${patienceMs} ms` })
      }),
      Effect.exit
    )
    const durationMs = (yield* Clock.currentTimeMillis) - began
    return Exit.match(exit, {
      onSuccess: (): Result => ({ name, outcome: "passed", durationMs }),
      onFailure: (cause): Result => ({ name, ...failedBy(cause), durationMs })
    })
  })

const met = "a run can be started, watched to its end, and read"

/**
 * Runs the checks whose names hold a text (by default all), and says what came of each. `onResult` hears of each as it
 * comes.
 *
 * @since 0.1.0
 * @category running
 */
export const run = (
  options: Options & {
    readonly only?: string | undefined
    readonly onResult?: ((result: Result) => Effect.Effect<void>) | undefined
  }
): Effect.Effect<Report, never, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const { onResult = () => Effect.void, only = "", patienceMs = defaultPatienceMs } = options
    const chosen = checks.filter(({ name }) => name.includes(only))
    const tell = (check: HttpCheck) => Effect.tap(runOne(check, patienceMs), onResult)
    const began = yield* Clock.currentTimeMillis
    const all = Effect.gen(function* () {
      const first: Result = { name: met, outcome: "passed", durationMs: (yield* Clock.currentTimeMillis) - began }
      yield* onResult(first)
      const results = yield* Effect.forEach(chosen, tell, { concurrency })
      return [first, ...results, yield* tell(last)]
    })
    const results = yield* all.pipe(
      Effect.provide(Runs.layer(options)),
      Effect.timeoutFail({
        duration: patienceMs * (checks.length + 2),
        onTimeout: () => new Broken({ message: "it did not come to an end" })
      }),
      Effect.catchAllCause((cause) =>
        Effect.gen(function* () {
          const first: Result = { name: met, ...failedBy(cause), durationMs: (yield* Clock.currentTimeMillis) - began }
          yield* onResult(first)
          return [first]
        })
      )
    )
    return { url: options.url, passed: results.every(({ outcome }) => outcome !== "broken"), results }
  })

const signs = { passed: "ok     ", broken: "BROKEN ", skipped: "skipped" }

/**
 * A result as one line, or two when there is more to say.
 *
 * @since 0.1.0
 * @category printing
 */
export const printResult = ({ durationMs, message, name, outcome }: Result): string =>
  `${signs[outcome]}  ${name}  (${(durationMs / 1000).toFixed(1)} s)${message === undefined ? "" : `\n         ${message}`}`

/**
 * How it came out, in one line.
 *
 * @since 0.1.0
 * @category printing
 */
export const printSummary = ({ passed, results, url }: Report): string => {
  const count = (outcome: Result["outcome"]) => results.filter((result) => result.outcome === outcome).length
  return `${passed ? "Conforms" : "DOES NOT CONFORM"}: ${url}: ${count("passed")} passed, ${count("broken")} broken, ${count("skipped")} skipped`
}

/**
 * A report for people.
 *
 * @since 0.1.0
 * @category printing
 */
export const print = (report: Report): string =>
  [...report.results.map(printResult), "", printSummary(report)].join("\n")
