import { expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as Postgres from "../../src/store/Postgres.js"
import { type Change, type CreateRun, RunStore, type StoreError } from "../../src/store/RunStore.js"
import { append, begin, claim, create, request, started, text, texts } from "../../src/testing/store/fixtures.js"
import { WriteClient } from "../../src/tool/SqlClients.js"
import { database, describePostgres, query, schema } from "./support/Database.js"
import * as Wire from "./support/Wire.js"

/** The store of one more process on a database. */
const opened = (url: string) =>
  Effect.map(Layer.build(Layer.fresh(Postgres.layer({ url: Redacted.make(url) }))), (context) => {
    const use = <A, E>(effect: Effect.Effect<A, E, RunStore | WriteClient>) => Effect.provide(effect, context)
    return Object.assign(use, { store: Context.get(context, RunStore) })
  })

type Replica = Effect.Effect.Success<ReturnType<typeof opened>>

/** As many processes on one empty database, the first of them, and one after the other. */
const replicas = (count: number) =>
  Effect.gen(function* () {
    const url = yield* schema
    const one: Replica = yield* opened(url)
    const all = [one, ...(yield* Effect.replicateEffect(opened(url), count - 1))]
    return { all, one, at: (index: number): Replica => all[index % count] ?? one }
  })

interface Heard {
  readonly changes: ReadonlyArray<Change>
}

/** What a process hears, from when it listens. */
const heardBy = (one: Replica) =>
  Effect.gen(function* () {
    const changes: Array<Change> = []
    yield* one.store.changes.pipe(
      Stream.runForEach((change) => Effect.sync(() => changes.push(change))),
      Effect.forkScoped
    )
    const heard: Heard = { changes }
    yield* until(() => changes.some(({ lost }) => lost === true))
    return heard
  })

const until = (isSo: () => boolean) =>
  Effect.repeat(Effect.sync(isSo), { schedule: Schedule.spaced("5 millis"), until: (so) => so })

const tags = (outcomes: ReadonlyArray<{ readonly _tag: string }>) => outcomes.map(({ _tag }) => _tag).sort()

const running = { status: "running" } as const

describePostgres("a store in PostgreSQL", () => {
  it.scopedLive("keeps every character of every text, also the one that the database can not hold", () =>
    Effect.gen(function* () {
      const { one } = yield* replicas(1)
      const odd = "\u0000 \u0001 \u00010 \u00011 \u0001\u0000 '\" \\ %_ \u{1f600} \u2028"
      yield* one(
        Effect.gen(function* () {
          const store = yield* RunStore
          const run = yield* request({ title: odd, userId: odd, idempotency: { key: odd, bodyHash: odd } })
          const created = yield* store.create({ ...run, input: { ...run.input, userMessage: odd } })
          expect(created._tag).toBe("Created")
          const found = yield* store.conversation({ conversationId: run.conversationId, userId: odd, limit: 10 })
          const { conversation, messages } = Option.getOrThrow(found)
          expect([conversation.title, messages[0]?.content]).toEqual([odd, odd])
          expect((yield* store.create({ ...run, runId: "another" }))._tag).toBe("Duplicate")
          expect(Option.isNone(yield* store.find({ runId: "\u0000", userId: odd }))).toBe(true)
        })
      )
    })
  )

  it.scopedLive("one key makes one run, wherever it is used at once", () =>
    Effect.gen(function* () {
      const { at } = yield* replicas(3)
      const run = yield* request({ idempotency: { key: "k", bodyHash: "h" } })
      const again = (index: number): CreateRun => ({
        ...run,
        runId: `run_${index}`,
        conversationId: `conv_${index}`,
        userMessageId: `msg_${index}a`,
        assistantMessageId: `msg_${index}b`
      })
      const outcomes = yield* Effect.all(
        Array.from({ length: 9 }, (_, index) => at(index).store.create(again(index))),
        { concurrency: "unbounded" }
      )
      expect(tags(outcomes)).toEqual(["Created", ...Array.from({ length: 8 }, () => "Duplicate")])
    })
  )

  const conversationId = "conv_of_many"
  it.scopedLive.each<{ readonly what: string; readonly limits: Partial<CreateRun> }>([
    { what: "the queue is as long", limits: { maxQueued: 5, maxConcurrent: 0 } },
    { what: "a user has as many runs", limits: { maxStored: 5 } },
    { what: "a user has as many conversations", limits: { maxConversations: 5 } },
    { what: "a conversation has as many runs", limits: { maxInConversation: 5, conversationId } }
  ])("$what as may be, and no more, whoever adds to it at once", ({ limits }) =>
    Effect.gen(function* () {
      const { at } = yield* replicas(3)
      const runs = yield* Effect.forEach(Array.from({ length: 12 }), () => request(limits))
      const outcomes = yield* Effect.forEach(
        runs,
        (run, index) => at(index).store.create({ ...run, existing: false }),
        {
          concurrency: "unbounded"
        }
      )
      expect(outcomes.filter(({ _tag }) => _tag === "Created").length).toBe(5)
      expect(outcomes.filter(({ _tag }) => _tag.endsWith("Full")).length).toBe(7)
    })
  )

  it.scopedLive.each([
    { what: "execute", maxConcurrent: 7, maxPerUser: null },
    { what: "of one user execute", maxConcurrent: 100, maxPerUser: 7 }
  ])("so many runs $what as may, and none of them twice, whoever takes them", ({ maxConcurrent, maxPerUser }) =>
    Effect.gen(function* () {
      const { at, one } = yield* replicas(3)
      yield* Effect.forEach(Array.from({ length: 10 }), () => one(create()))
      const claims = yield* Effect.forEach(
        Array.from({ length: 15 }),
        (_, index) =>
          at(index).store.claimQueued({ owner: `p${index % 3}`, ttlMs: 60_000, maxConcurrent, maxPerUser, started }),
        { concurrency: "unbounded" }
      )
      const taken = claims.flatMap(Option.toArray)
      expect(new Set(taken.map(({ key }) => key)).size).toBe(7)
      expect(taken.length).toBe(7)
    })
  )

  // The clock of the test stands at the beginning of 1970.
  it.scoped("measures leases by the clock of the server, whatever the program's says", () =>
    Effect.gen(function* () {
      const { at, one } = yield* replicas(2)
      const other = at(1)
      expect(yield* one.store.now).toBeGreaterThan(Date.UTC(2020, 0))
      const run = yield* one(create())
      yield* one.store.claimQueued({ owner: "p1", ttlMs: 600_000, maxConcurrent: 9, maxPerUser: null, started })
      expect(yield* other.store.claimAbandoned({ owner: "p2", ttlMs: 1, limit: 9 })).toEqual([])
      yield* one.store.renew({ owner: "p1", ttlMs: -1 })
      const [taken] = yield* other.store.claimAbandoned({ owner: "p2", ttlMs: 600_000, limit: 9 })
      expect([taken?.key, taken?.owner, taken?.epoch]).toEqual([run.key, "p2", 2])
      expect((taken?.leaseExpiresAt ?? 0) - (yield* one.store.now)).toBeGreaterThan(500_000)
      expect(yield* one(append({ key: run.key, epoch: 1, events: texts(1) }))).toEqual({ _tag: "Fenced" })
    })
  )

  it.scopedLive("tells the others which runs have grown when that is committed, and not its own process", () =>
    Effect.gen(function* () {
      const url = yield* database
      const [one, other] = [yield* opened(url), yield* opened(url)]
      const heard = yield* Deferred.make<void>()
      const changes = yield* other.store.changes.pipe(
        Stream.tap((change) => (change.keys === undefined ? Deferred.succeed(heard, undefined) : Effect.void)),
        Stream.filter((change) => change.keys !== undefined),
        Stream.take(2),
        Stream.runCollect,
        Effect.fork
      )
      yield* Deferred.await(heard)
      const { key } = yield* one(begin())
      const seen = Chunk.toReadonlyArray(yield* Fiber.join(changes))
      expect(seen.flatMap(({ keys = [] }) => keys)).toContain(key)
      expect(seen[0]?.work).toBe(true)
    })
  )

  it.scopedLive("tells those who listen what was added, or that it is too much to be told, and what was removed", () =>
    Effect.gen(function* () {
      const url = yield* schema
      const [one, other] = [yield* opened(url), yield* opened(url)]
      const near = yield* heardBy(one)
      const far = yield* heardBy(other)
      const run = yield* one(begin())
      // Nothing is told to nobody, so somebody has to have been heard of.
      yield* until(() => near.changes.some(({ keys }) => keys === undefined))
      const add = (events: CreateRun["events"]) => one(append({ key: run.key, epoch: run.epoch, events, set: running }))
      const told = () => far.changes.flatMap(({ appended = [] }) => appended).filter(({ key }) => key === run.key)
      yield* Effect.repeat(add([text("一句"), text("话")]), { until: () => told().length > 0 })
      const stored = yield* one.store.events({ key: run.key, after: 0, limit: 1000 })
      for (const { count, events, first } of told()) {
        expect(events()).toEqual(stored.slice(first - 1, first - 1 + count))
      }
      const silently = () => far.changes.filter(({ keys }) => keys?.includes(run.key)).length
      const before = silently()
      yield* add([text("漢".repeat(3000))])
      yield* until(() => silently() > before)
      yield* one(
        append({
          key: run.key,
          epoch: run.epoch,
          events: texts(1),
          set: { status: "cancelled", lease: null }
        })
      )
      const last = silently()
      expect(yield* one.store.remove({ runId: run.runId, userId: run.userId })).toBe("deleted")
      yield* until(() => silently() > last)
    })
  )

  it.scopedLive("stores that share a database, each in a schema of its own, do not hear each other", () =>
    Effect.gen(function* () {
      const urls = [yield* schema, yield* schema]
      const [one, other, stranger] = [
        yield* opened(urls[0] ?? ""),
        yield* opened(urls[0] ?? ""),
        yield* opened(urls[1] ?? "")
      ]
      const far = yield* heardBy(other)
      const strange = yield* heardBy(stranger)
      const run = yield* one(begin())
      const keys = (heard: Heard) =>
        heard.changes.flatMap((change) => [...(change.keys ?? []), ...(change.appended ?? []).map(({ key }) => key)])
      yield* until(() => keys(far).includes(run.key))
      expect(keys(strange)).toEqual([])
    })
  )

  it.scopedLive("listens again when the connection that listens is ended, and counts all as changed", () =>
    Effect.gen(function* () {
      const url = yield* database
      const [one, other] = [yield* opened(url), yield* opened(url)]
      const far = yield* heardBy(other)
      const lost = () => far.changes.filter((change) => change.lost === true).length
      expect(lost()).toBe(1)
      // A connection that listens greets when it does, and does nothing else.
      const ended = yield* query<{ readonly ended: boolean }>(
        url,
        `SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity
         WHERE datname = current_database() AND query LIKE 'NOTIFY runlet%'`
      )
      expect(ended).toEqual([{ ended: true }])
      yield* until(() => lost() === 2)
      expect(far.changes.findLast((change) => change.lost === true)).toMatchObject({ work: true, left: true })
      const run = yield* one(create())
      yield* until(() => far.changes.some(({ keys }) => keys?.includes(run.key)))
    })
  )

  it.scopedLive("goes on when the server ends all its connections", () =>
    Effect.gen(function* () {
      const url = yield* database
      const one = yield* opened(url)
      const run = yield* one(begin())
      for (let round = 0; round < 3; round++) {
        yield* query(
          url,
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid()`
        )
        expect((yield* one(append({ key: run.key, epoch: run.epoch, events: texts(2) })))._tag).toBe("Appended")
        expect(Option.isSome(yield* one.store.row(run.key))).toBe(true)
      }
      expect((yield* one.store.events({ key: run.key, after: 0, limit: 100 })).map(({ seq }) => seq)).toEqual(
        Array.from({ length: 3 + 6 }, (_, index) => index + 1)
      )
    })
  )

  it.scopedLive("an append whose connection was lost before the commit is done once", () =>
    Effect.gen(function* () {
      const wire = yield* Wire.make(yield* database)
      const one = yield* opened(wire.url)
      const run = yield* one(begin())
      wire.loseAnswerTo("INSERT INTO events")
      const outcome = yield* one(
        append({ key: run.key, epoch: run.epoch, expectedSeq: run.lastSeq, events: texts(3), set: running })
      )
      expect(outcome).toEqual({ _tag: "Appended", lastSeq: run.lastSeq + 3, epoch: run.epoch })
    })
  )

  it.scopedLive("two transactions that stand in each other's way both come to their end", () =>
    Effect.gen(function* () {
      const { at, one } = yield* replicas(2)
      const runs = yield* Effect.forEach(Array.from({ length: 6 }), () => one(begin()))
      const batch = (keys: ReadonlyArray<{ readonly key: number }>) =>
        keys.map(({ key }) => ({ key, events: texts(1), set: running }))
      const outcomes = yield* Effect.forEach(
        Array.from({ length: 30 }),
        (_, index) => at(index).store.append(batch(index % 2 === 0 ? runs : runs.toReversed())),
        { concurrency: "unbounded" }
      )
      expect(outcomes.flat().every(({ _tag }) => _tag === "Appended")).toBe(true)
      const rows = yield* Effect.forEach(runs, ({ key }) => one.store.row(key))
      expect(rows.map((row) => Option.getOrThrow(row).lastSeq)).toEqual(runs.map(({ lastSeq }) => lastSeq + 30))
    })
  )

  it.scopedLive("a statement that failed inside a transaction takes all of it back, and says so", () =>
    Effect.gen(function* () {
      const { one } = yield* replicas(1)
      const run = yield* one(begin())
      const careless = one(
        Effect.flatMap(WriteClient, (sql) =>
          append({
            key: run.key,
            epoch: run.epoch,
            events: texts(1),
            within: Effect.ignore(sql`SELECT nothing FROM nowhere`)
          })
        )
      )
      expect(yield* Effect.flip(careless)).toMatchObject({ _tag: "StoreError" })
      expect((yield* one.store.events({ key: run.key, after: 0, limit: 100 })).length).toBe(run.lastSeq)
    })
  )

  it.scopedLive("says why it can not be opened, and never the password", () =>
    Effect.gen(function* () {
      const url = new URL(yield* schema)
      const failure = (change: (address: URL) => void) => {
        const address = new URL(url)
        change(address)
        return Effect.map(
          Effect.flip(Effect.scoped(Layer.build(Layer.fresh(Postgres.layer({ url: Redacted.make(address.href) }))))),
          (error) => ({ error, said: `${Postgres.reasonOf(error)} ${JSON.stringify(error)} ${String(error)}` })
        )
      }
      const wrong = yield* failure((address) => {
        address.password = "not-the-password"
      })
      // A server that trusts its own machine asks nobody for a password.
      expect(wrong.said).not.toContain("not-the-password")
      const missing = yield* failure((address) => {
        address.pathname = "/no_such_database"
      })
      expect(missing.said).toContain("does not exist")
      expect(missing.said).not.toContain(url.password)
      const absent = yield* failure((address) => {
        address.port = "1"
      })
      expect(absent.said).toContain("can not be reached")
      expect(absent.error).toMatchObject({ reason: "unavailable" } satisfies Partial<StoreError>)
      expect(Postgres.nameOf(url.href)).not.toContain(url.password)
    })
  )

  it.scopedLive("many that start at once make the tables once", () =>
    Effect.gen(function* () {
      const { all } = yield* replicas(5)
      yield* Effect.forEach(all, (one) => one(Effect.zipRight(create(), claim())))
    })
  )
})
