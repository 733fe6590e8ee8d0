/**
 * Checks of who may see what, and of what nobody may see.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { ask, define, field, type HttpCheck, must, refused, Skipped } from "./Check.js"
import { finished, start } from "./Runs.js"
import { Session } from "./Session.js"
import { type Ask, Target } from "./Target.js"

const unknown = "run_00000000-0000-7000-8000-000000000000"

/** Everything that can be asked about a run. */
const about = (runId: string): ReadonlyArray<Ask> => [
  { method: "GET", path: `/runs/${runId}` },
  { method: "GET", path: `/runs/${runId}/events` },
  { method: "GET", path: `/runs/${runId}/events?after=1` },
  { method: "GET", path: `/runs/${runId}/trace` },
  { method: "GET", path: `/runs/${runId}/checkpoints` },
  { method: "GET", path: `/runs/${runId}/checkpoints/3` },
  { method: "POST", path: `/runs/${runId}/cancel` },
  { method: "POST", path: `/runs/${runId}/resume`, body: { lastAppliedSeq: 0 } },
  { method: "POST", path: `/runs/${runId}/regenerate`, body: {} },
  {
    method: "POST",
    path: `/runs/${runId}/approvals/apr_00000000-0000-7000-8000-000000000000`,
    body: { decision: "approve" }
  },
  { method: "POST", path: "/chat", body: { resume: { runId, lastAppliedSeq: 0 } } },
  { method: "DELETE", path: `/runs/${runId}` }
]

const needsToken = Effect.flatMap(Target, ({ options }) =>
  options.token === undefined ? new Skipped({ message: "needs --token" }) : Effect.void
)

const needsOther = Effect.flatMap(Target, ({ options }) =>
  options.token === undefined || options.otherToken === undefined
    ? new Skipped({ message: "needs --token and --other-token" })
    : Effect.void
)

/**
 * All of them.
 *
 * @since 0.1.0
 * @category checks
 */
export const ownership: ReadonlyArray<HttpCheck> = [
  define(
    "without a credential, or with a wrong one, nothing is answered",
    Effect.gen(function* () {
      yield* needsToken
      const { specimen } = yield* Session
      const all: ReadonlyArray<Ask> = [
        ...about(specimen.runId),
        { method: "GET", path: "/runs" },
        { method: "GET", path: "/conversations" },
        { method: "POST", path: "/chat", body: { message: "Hello" } }
      ]
      for (const one of all) {
        yield* refused(401, { ...one, as: "nobody" })
        yield* refused(401, { ...one, as: "nobody", headers: { authorization: "Bearer wrong" } })
      }
    })
  ),
  define(
    "what belongs to somebody else is refused just as what does not exist",
    Effect.gen(function* () {
      yield* needsOther
      const { long, specimen } = yield* Session
      const live = yield* start(long)
      for (const runId of [specimen.runId, live.runId]) {
        const foreign = about(runId)
        const missing = about(unknown)
        for (const [index, one] of foreign.entries()) {
          const theirs = yield* refused(404, { ...one, as: "other" })
          const nobodys = yield* refused(404, { ...(missing[index] ?? one), as: "other" })
          yield* must(
            theirs.text.replaceAll(runId, unknown) === nobodys.text,
            `${one.method} ${one.path}: ${theirs.text} is not ${nobodys.text}`
          )
        }
      }
      const conversation = `/conversations/${specimen.conversationId}`
      yield* refused(404, { method: "GET", path: conversation, as: "other" })
      yield* refused(404, { method: "PATCH", path: conversation, body: { title: "Mine" }, as: "other" })
      yield* refused(404, { method: "DELETE", path: conversation, as: "other" })
      yield* refused(404, {
        method: "POST",
        path: "/chat",
        body: { message: "Hello", conversationId: specimen.conversationId },
        as: "other"
      })
    })
  ),
  define(
    "lists hold the caller's own alone",
    Effect.gen(function* () {
      yield* needsOther
      const { short, specimen } = yield* Session
      yield* finished(short)
      for (const [path, name, id] of [
        ["/runs?limit=200", "runId", specimen.runId],
        ["/conversations?limit=200", "conversationId", specimen.conversationId]
      ] as const) {
        const ids = (as: "owner" | "other") =>
          Effect.map(ask(200, { method: "GET", path, as }), ({ json }) => {
            const items = field(json, "items")
            return new Set((Array.isArray(items) ? items : []).map((item) => field(item, name)))
          })
        const mine = yield* ids("owner")
        const theirs = yield* ids("other")
        yield* must(mine.has(id), `${path} does not show what was made`)
        yield* must(![...mine].some((one) => theirs.has(one)), `${path} shows two users the same`)
      }
    })
  ),
  define(
    "the server says that it lives, that it takes work, and what it can do",
    Effect.gen(function* () {
      yield* ask(200, { method: "GET", path: "/healthz", as: "nobody" })
      yield* ask(200, { method: "GET", path: "/readyz", as: "nobody" })
      const { json } = yield* ask(200, { method: "GET", path: "/openapi.json" })
      yield* must(typeof field(json, "paths") === "object", "/openapi.json describes no paths")
    })
  )
]

/**
 * The check that looks back on what all others have received.
 *
 * @since 0.1.0
 * @category checks
 */
export const last: HttpCheck = define(
  "no credential stands in anything that the server has sent",
  Effect.gen(function* () {
    yield* needsToken
    const { options, received } = yield* Target
    const secrets = [options.token, options.otherToken].flatMap((token) =>
      token === undefined ? [] : [Redacted.value(token)]
    )
    yield* must(
      received().every((text) => secrets.every((secret) => !text.includes(secret))),
      "one does"
    )
  })
)
