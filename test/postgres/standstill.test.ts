/**
 * A process that is stopped in the middle of a transaction, or waits in one: what the others, and the rest of itself, can
 * do meanwhile, and how long what it has locked stays locked.
 */
import { expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Postgres from "../../src/store/Postgres.js"
import { type RunRow, RunStore, type StoreError } from "../../src/store/RunStore.js"
import { append, begin, create, request, started, texts } from "../../src/testing/store/fixtures.js"
import { describePostgres, query, schema } from "./support/Database.js"
import * as Server from "./support/Server.js"
import * as Wire from "./support/Wire.js"

type Options = Omit<Postgres.PostgresOptions, "url">
type Act = Effect.Effect<unknown, StoreError, RunStore>

/** The store of one more process on a database. */
const opened = (url: string, options: Options = {}) =>
  Effect.map(Layer.build(Layer.fresh(Postgres.layer({ url: Redacted.make(url), ...options }))), (context) => {
    const use = <A, E>(effect: Effect.Effect<A, E, RunStore>) => Effect.provide(effect, context)
    return Object.assign(use, { store: Context.get(context, RunStore) })
  })

const claim = (owner: string) =>
  Effect.flatMap(RunStore, (store) =>
    store.claimQueued({ owner, ttlMs: 60_000, maxConcurrent: 1000, maxPerUser: null, started })
  )

const keyOf = Option.map((run: { readonly key: number }) => run.key)

/** Less than the five seconds after which a lock is given up that nobody gives back, and much more than anything takes. */
const atOnce = Effect.timeoutFail({
  duration: "4 seconds",
  onTimeout: () => new Error("It has waited for somebody who stands still")
})

/** A run of somebody, and what another process has begun with it, or with another one, when it is stopped. */
interface Standstill {
  readonly before?: (run: RunRow) => Act
  readonly act: (run: RunRow) => Act
}

/** A process that is stopped before the commit of what it does, and the process whose run it is. */
const stoppedAt = ({ act, before = () => Effect.void }: Standstill, options: Options = {}) =>
  Effect.gen(function* () {
    const url = yield* schema
    const wire = yield* Wire.make(url)
    const other = yield* opened(url, options)
    const one = yield* opened(wire.url, options)
    const run = yield* other(begin())
    yield* other(before(run))
    const still = wire.standStillAt("COMMIT")
    yield* Effect.forkScoped(Effect.ignore(one(act(run))))
    // At the end nobody waits for what will never be answered.
    yield* Effect.addFinalizer(() => Effect.sync(wire.cut))
    yield* still
    return { other, run }
  })

const added = (key: number, epoch: number) => append({ key, epoch, events: texts(1), set: { status: "running" } })

describePostgres("a process that stands still in the middle of a transaction", () => {
  it.scopedLive.each<Standstill & { readonly what: string }>([
    { what: "accepts a run", act: () => create() },
    { what: "accepts a run under a key", act: () => create({ idempotency: { key: "k", bodyHash: "h" } }) },
    { what: "takes a run", before: () => create(), act: () => claim("still") },
    { what: "adds to a run", act: ({ epoch, key }) => added(key, epoch) },
    {
      what: "takes over a run",
      before: (run) => Effect.flatMap(RunStore, (store) => store.release(run)),
      act: () => Effect.flatMap(RunStore, (store) => store.claimAbandoned({ owner: "still", ttlMs: 60_000, limit: 9 }))
    }
  ])("as it $what, holds up nothing that others do with other runs", (standstill) =>
    Effect.gen(function* () {
      const { other, run } = yield* stoppedAt(standstill)
      yield* other(
        Effect.gen(function* () {
          const store = yield* RunStore
          const mine = yield* create({ idempotency: { key: "mine", bodyHash: "h" } })
          expect(keyOf(yield* claim("p2"))).toEqual(Option.some(mine.key))
          expect((yield* added(mine.key, 1))._tag).toBe("Appended")
          yield* store.release({ key: mine.key, epoch: 1 })
          const taken = yield* store.claimAbandoned({ owner: "p3", ttlMs: 60_000, limit: 9 })
          expect(taken.map(({ key }) => key)).toEqual([mine.key])
          expect(mine.key).not.toBe(run.key)
        })
      ).pipe(atOnce)
    })
  )

  it.scopedLive("and has locked a run of another one, keeps it for no more than half a lease", () =>
    Effect.gen(function* () {
      const { other, run } = yield* stoppedAt({ act: ({ epoch, key }) => added(key, epoch) }, { leaseTtlMs: 1000 })
      // As its owner does, whose other events and leases wait behind it.
      const outcome = yield* other(added(run.key, run.epoch)).pipe(atOnce)
      expect(outcome).toEqual({ _tag: "Appended", lastSeq: run.lastSeq + 1, epoch: run.epoch })
      yield* other.store.renew({ owner: "p1", ttlMs: 60_000 }).pipe(atOnce)
    })
  )

  it.scopedLive("and has locked its own run, keeps it for no longer than its lease", () =>
    Effect.gen(function* () {
      const { other, run } = yield* stoppedAt({ act: ({ epoch, key }) => added(key, epoch) }, { leaseTtlMs: 1000 })
      const over = other.store.claimAbandoned({ owner: "p2", ttlMs: 60_000, dead: [run.owner ?? ""], limit: 9 })
      const taken = yield* Effect.repeat(Effect.delay(over, "20 millis"), { until: (rows) => rows.length > 0 }).pipe(
        atOnce
      )
      expect(taken.map(({ key }) => key)).toEqual([run.key])
    })
  )

  it.scopedLive("requests that wait for each other hold up neither what is to be begun nor what was left behind", () =>
    Effect.gen(function* () {
      const url = yield* schema
      const one = yield* opened(url)
      const first = yield* one(create())
      const [next, left] = [yield* one(create()), yield* one(begin())]
      // Somebody else is busy with the conversation.
      const waiting = `SELECT COUNT(*) AS n FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()`
      const held = yield* Deferred.make<void>()
      const holder = yield* Effect.fork(
        Effect.promise((signal) =>
          Server.connected(url, async (client) => {
            await client.query("SELECT pg_advisory_lock(hashtextextended($1, 0))", [first.conversationId])
            Deferred.unsafeDone(held, Effect.void)
            await new Promise((over) => signal.addEventListener("abort", over))
          })
        )
      )
      yield* Deferred.await(held)
      const run = yield* request({ conversationId: first.conversationId })
      for (let n = 0; n < 9; n++) {
        yield* Effect.forkScoped(
          Effect.ignore(
            one.store.create({ ...run, runId: `run_${n}`, userMessageId: `m_${n}`, assistantMessageId: `a_${n}` })
          )
        )
      }
      yield* Effect.repeat(Effect.delay(query<{ readonly n: number | string }>(url, waiting), "10 millis"), {
        until: ([found]) => Number(found?.n) > 0
      })
      yield* Effect.gen(function* () {
        yield* one.store.release(left)
        const [over] = yield* one.store.claimAbandoned({ owner: "p2", ttlMs: 60_000, limit: 9 })
        expect(over?.key).toBe(left.key)
        const taken = [keyOf(yield* one(claim("p2"))), keyOf(yield* one(claim("p2")))]
        expect(taken).toContainEqual(Option.some(next.key))
      }).pipe(atOnce)
      yield* Fiber.interrupt(holder)
    })
  )
})
