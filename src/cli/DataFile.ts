/**
 * Runs in a database, beside whoever serves it. What is read is read only; what is written is one transaction,
 * which a server that executes the run finds out by itself.
 *
 * @since 0.1.0
 */
import { existsSync } from "node:fs"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Envelope } from "../domain/Envelope.js"
import { splice } from "../domain/Envelope.js"
import * as Ids from "../domain/Ids.js"
import { CurrentUser } from "../domain/Owner.js"
import * as RunStatus from "../domain/RunStatus.js"
import * as Snapshot from "../domain/Snapshot.js"
import * as Offline from "../engine/Offline.js"
import * as Reading from "../engine/Reading.js"
import * as RunLog from "../engine/RunLog.js"
import * as NodeProcess from "../node/NodeProcess.js"
import * as ListCursor from "../store/ListCursor.js"
import * as Postgres from "../store/Postgres.js"
import { type RunRow, RunStore, type StoreError } from "../store/RunStore.js"
import * as Sqlite from "../store/Sqlite.js"
import { Failure, ofCode } from "./Failure.js"
import type { Source } from "./Source.js"

/**
 * A database file or the address of a PostgreSQL database, and whose runs are looked at: those of `user` alone.
 *
 * @since 0.1.0
 * @category models
 */
export interface DataFile {
  readonly data: string
  readonly user: string
}

const pageSize = 500
/** How often a run that has not ended is looked at again. */
const pollMs = 100

const explain =
  (file: DataFile) =>
  (error: unknown): Failure => {
    if (error instanceof Failure) return error
    const data = Postgres.nameOf(file.data)
    if (Predicate.hasProperty(error, "_tag") && error._tag === "StoreError") {
      const failure = error as StoreError
      const known = failure.reason === "newer" ? undefined : Postgres.reasonOf(failure)
      if (known !== undefined) return ofCode(1, `The database ${data} ${known}`)
      switch (failure.reason) {
        case "newer":
          return ofCode(1, `The database ${data} was changed by a newer version of Runlet. Use that version`)
        case "corrupt":
          return ofCode(1, `The database ${data} is damaged, or none of Runlet. See what \`runlet doctor\` says`)
        case "unavailable":
          return ofCode(
            1,
            `The database ${data} can not be used: it is locked, may not be read, or is of another version. See what \`runlet doctor\` says`
          )
      }
    }
    return Predicate.hasProperty(error, "message") && Predicate.hasProperty(error, "_tag")
      ? new Failure({ message: String(error.message), exitCode: 1, refusal: String(error._tag) })
      : ofCode(1, `The database ${data} can not be read. See what \`runlet doctor\` says`)
  }

const opened = (file: DataFile, readonly: boolean): Effect.Effect<RunStore["Type"], Failure, Scope.Scope> =>
  Effect.suspend(() => {
    const { data } = file
    const isAddress = Postgres.isAddress(data)
    if (!isAddress && !existsSync(data)) {
      return Effect.fail(ofCode(1, `There is no database ${data}. Choose one with --data`))
    }
    const existing = isAddress
      ? Postgres.layerExisting({ url: Redacted.make(data) })
      : Sqlite.layerExisting({ filename: data, readonly })
    return Layer.build(existing).pipe(
      Effect.flatMap((context) => Effect.provide(RunStore, context)),
      Effect.mapError(explain(file))
    )
  })

const removed = new Failure({
  message: "The events of this run were removed for their age. `runlet runs show` tells what is left of it",
  exitCode: 1,
  refusal: "Compacted"
})

const badCursor = ofCode(2, "--cursor must be the nextCursor of the page before")

/**
 * The runs of a database file.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (file: DataFile): Effect.Effect<Source, Failure, Scope.Scope> =>
  Effect.gen(function* () {
    const { user } = file
    const data = Postgres.nameOf(file.data)
    const told = explain(file)
    const store = yield* opened(file, true)
    const noRun = new Failure({
      message: `There is no such run of the user ${user} in ${data}. Check the id, or name the user with --user`,
      exitCode: 1,
      refusal: "NotFound"
    })
    const find = (runId: string): Effect.Effect<RunRow, Failure> =>
      Effect.flatMap(Effect.mapError(store.find({ runId, userId: user }), told), (found) =>
        Option.isSome(found) ? Effect.succeed(found.value) : Effect.fail(noRun)
      )
    const change = <A, E>(what: (offline: Offline.Offline) => Effect.Effect<A, E>): Effect.Effect<A, Failure> =>
      Effect.scoped(
        Effect.flatMap(opened(file, false), (writable) =>
          Effect.flatMap(Offline.make, what).pipe(
            Effect.provideService(RunStore, writable),
            Effect.provide(Layer.provide(NodeProcess.layer, Ids.layer)),
            Effect.provideService(CurrentUser, user)
          )
        )
      ).pipe(Effect.mapError(told))

    /** Pages of the log behind a seq; with `live` until the run has ended, otherwise what there is now. */
    const log = (runId: string, from: number): Stream.Stream<Envelope, Failure> =>
      Stream.unwrap(
        Effect.map(find(runId), ({ compactedSeq, key }) => {
          if (compactedSeq > from) return Stream.fail(removed)
          const look = (
            after: number
          ): Effect.Effect<Option.Option<readonly [Chunk.Chunk<Envelope>, number]>, StoreError> =>
            Effect.gen(function* () {
              // Whether it has ended is asked first: what is written between the two questions is not missed then.
              const row = Option.getOrUndefined(yield* store.row(key))
              const page = yield* store.envelopes({ key, runId, after, limit: pageSize })
              const last = page.at(-1)
              if (last !== undefined) return Option.some([Chunk.unsafeFromArray([...page]), last.seq] as const)
              if (row === undefined || RunStatus.isEnded(row.status)) return Option.none()
              yield* Effect.sleep(pollMs)
              return Option.some([Chunk.empty<Envelope>(), after] as const)
            })
          return Stream.mapError(Stream.unfoldChunkEffect(from, look), told)
        })
      )

    const trace = (runId: string): Stream.Stream<string, Failure> =>
      Stream.unwrap(
        Effect.gen(function* () {
          const { compactedSeq, key, lastSeq, ...row } = yield* find(runId)
          if (compactedSeq > 0) return yield* removed
          const state = yield* Effect.mapError(RunLog.load(store, { key, runId }, lastSeq), told)
          const run = Snapshot.header(Snapshot.of(state))
          const events = Stream.paginateChunkEffect(0, (after: number) =>
            Effect.map(store.events({ key, after, limit: Math.min(pageSize, lastSeq - after) }), (page) => {
              const last = page.at(-1)?.seq ?? lastSeq
              return [
                Chunk.unsafeFromArray(page.map(({ createdAt, json, seq }) => splice(row.runId, seq, json, createdAt))),
                last < lastSeq ? Option.some(last) : Option.none<number>()
              ] as const
            })
          )
          return Stream.concat(
            Stream.make(JSON.stringify({ format: "runlet-trace", version: 1, run })),
            Stream.mapError(events, told)
          )
        })
      )

    return {
      list: (query) =>
        query.cursor !== undefined && Option.isNone(ListCursor.runs.decode(query.cursor))
          ? badCursor
          : Effect.map(
              Effect.mapError(store.list({ userId: user, ...query, limit: query.limit ?? 50 }), told),
              (page) => ({ ...page, items: page.items.map(Reading.summary) })
            ),
      snapshot: (runId) =>
        Effect.gen(function* () {
          const row = yield* find(runId)
          const shown = Snapshot.of(yield* Effect.mapError(RunLog.load(store, row), told))
          if (row.status !== "queued") return shown
          const position = yield* Effect.mapError(store.queuePosition(row.key), told)
          return { ...shown, ...(Option.isSome(position) && { queuePosition: position.value }) }
        }),
      events: log,
      trace,
      cancel: (runId, reason) => change((offline) => offline.cancel(runId, reason)),
      decide: (runId, approvalId, request) => change((offline) => offline.decide(runId, approvalId, request)),
      resume: () =>
        Effect.fail(ofCode(2, "Only a server goes on with a run. Start one with `runlet serve`, and use --url"))
    }
  })
