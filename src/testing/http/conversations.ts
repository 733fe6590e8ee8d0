/**
 * Checks of conversations: the order of their runs, answering again, and removing.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as RunStatus from "../../domain/RunStatus.js"
import { ask, define, field, type HttpCheck, logOf, must, refused, snapshot, text, until } from "./Check.js"
import { finished, needsDemo, start } from "./Runs.js"
import { Session } from "./Session.js"

const unknown = "run_00000000-0000-7000-8000-000000000000"

/**
 * All of them.
 *
 * @since 0.1.0
 * @category checks
 */
export const conversations: ReadonlyArray<HttpCheck> = [
  define(
    "runs of a conversation come one after the other",
    Effect.gen(function* () {
      const { short } = yield* Session
      const first = yield* start(short)
      const second = yield* start(short, { conversationId: first.conversationId })
      yield* until(second.runId, ({ status }) => RunStatus.isEnded(status))
      const one = yield* logOf(first.runId)
      const two = yield* logOf(second.runId)
      const began = two.find(({ event }) => event.type === "run-status" && event.status === "running")?.createdAt ?? 0
      yield* must((one.at(-1)?.createdAt ?? 0) <= began, "the second began before the first was over")
    })
  ),
  define(
    "a busy conversation refuses a start that does not want to wait",
    Effect.gen(function* () {
      const { long, short } = yield* Session
      const { conversationId, runId } = yield* start(long)
      yield* refused(409, {
        method: "POST",
        path: "/chat",
        body: { message: short, conversationId, onBusy: "reject", background: true }
      })
      const next = yield* start(short, { conversationId, onBusy: "interrupt" })
      yield* until(next.runId, ({ status }) => RunStatus.isEnded(status))
      const { status } = yield* snapshot(runId)
      yield* must(status === "cancelled", `the interrupted run is ${status}`)
    })
  ),
  define(
    "a conversation holds its messages, and a later run knows them",
    Effect.gen(function* () {
      const { short } = yield* Session
      const { conversationId, snapshot } = yield* finished(short)
      const { json } = yield* ask(200, { method: "GET", path: `/conversations/${conversationId}` })
      const messages = field(json, "messages")
      const [question, answer] = Array.isArray(messages) ? messages : []
      yield* must(
        field(question, "role") === "user" && field(question, "content") === short,
        `the question is ${JSON.stringify(question)}`
      )
      yield* must(
        field(answer, "role") === "assistant" && field(answer, "content") === snapshot.text,
        `the answer is ${JSON.stringify(answer)?.slice(0, 120)}`
      )
      const title = "Renamed by a check"
      yield* ask(204, { method: "PATCH", path: `/conversations/${conversationId}`, body: { title } })
      const renamed = yield* ask(200, { method: "GET", path: `/conversations/${conversationId}` })
      yield* must(field(renamed.json, "title") === title, `its title is ${String(field(renamed.json, "title"))}`)
    })
  ),
  define(
    "the last message can be answered again, an earlier one not",
    Effect.gen(function* () {
      const { short } = yield* Session
      const first = yield* finished(short)
      const second = yield* finished(short, { conversationId: first.conversationId })
      const again = (runId: string) =>
        ({ method: "POST", path: `/runs/${runId}/regenerate`, headers: { prefer: "respond-async" }, body: {} }) as const
      yield* refused(409, again(first.runId))
      const runId = yield* text(yield* ask(202, again(second.runId)), "runId")
      const regenerated = yield* until(runId, ({ status }) => RunStatus.isEnded(status))
      yield* must(
        regenerated.regeneratedFrom === second.runId && regenerated.userMessageId === second.snapshot.userMessageId,
        "it does not say what it answers again"
      )
    })
  ),
  define(
    "a run that failed recoverably is resumed by a new attempt, once, and shows no text twice",
    Effect.gen(function* () {
      yield* needsDemo
      const { runId, snapshot: failed } = yield* finished("/cut /long 80")
      yield* must(
        failed.status === "failed" && failed.recoverable === true,
        `a cut model ends as ${failed.status}, recoverable ${failed.recoverable}`
      )
      const resume = ask(202, {
        method: "POST",
        path: `/runs/${runId}/resume`,
        headers: { prefer: "respond-async" },
        body: { lastAppliedSeq: failed.lastSeq }
      })
      yield* Effect.all(
        Array.from({ length: 10 }, () => resume),
        { concurrency: "unbounded" }
      )
      const ended = yield* until(runId, ({ status }) => status === "completed")
      const log = yield* logOf(runId)
      const attempts = log.filter(({ event }) => event.type === "run-resumed").length
      yield* must(attempts === 1 && ended.attempt === 2, `ten resumes made ${attempts} attempts`)
      const words = ended.text.split(/\s+/).filter((word) => word !== "").length
      yield* must(words === 80, `80 words were asked for, it has ${words}`)
    })
  ),
  define(
    "what goes on can not be removed, what is over is removed for good",
    Effect.gen(function* () {
      const { long } = yield* Session
      const { conversationId, runId } = yield* start(long)
      yield* refused(409, { method: "DELETE", path: `/runs/${runId}` })
      yield* refused(409, { method: "DELETE", path: `/conversations/${conversationId}` })
      yield* ask(200, { method: "POST", path: `/runs/${runId}/cancel` })
      yield* ask(204, { method: "DELETE", path: `/runs/${runId}` })
      yield* refused(404, { method: "GET", path: `/runs/${runId}` })
      yield* refused(404, { method: "GET", path: `/runs/${runId}/events` })
    })
  ),
  define(
    "what does not exist is refused as NotFound, and a wrong method as such",
    Effect.gen(function* () {
      const { specimen } = yield* Session
      for (const [method, path] of [
        ["GET", `/runs/${unknown}`],
        ["GET", `/runs/${unknown}/events`],
        ["GET", `/runs/${unknown}/trace`],
        ["GET", `/runs/${unknown}/checkpoints`],
        ["POST", `/runs/${unknown}/cancel`],
        ["POST", `/runs/${unknown}/resume`],
        ["POST", `/runs/${unknown}/regenerate`],
        ["DELETE", `/runs/${unknown}`],
        ["GET", "/no/such/path"]
      ] as const) {
        yield* refused(404, { method, path, ...(method === "POST" && { body: {} }) })
      }
      yield* refused(404, { method: "POST", path: "/chat", body: { resume: { runId: unknown, lastAppliedSeq: 0 } } })
      const wrong = yield* refused(405, { method: "PUT", path: `/runs/${specimen.runId}`, body: {} })
      yield* must(wrong.headers.allow?.includes("GET") === true, `allow is ${wrong.headers.allow}`)
    })
  )
]
