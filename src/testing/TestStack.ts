/**
 * The whole system in memory: one store, and as many processes on it as wanted, each with an engine that can be
 * crashed and started again.
 *
 * It uses the `Clock` and `Random` of its surroundings, so it can be run under a test clock, or in `VirtualTime`.
 *
 * ```ts
 * import { expect, it } from "@effect/vitest"
 * import { Effect, TestClock } from "effect"
 * import { ScriptedModel, TestStack } from "runlet/testing"
 *
 * const { sleep, text, turn } = ScriptedModel
 * const stack = TestStack.layer({ script: [turn(text("Wait"), sleep(50_000), text(" for it."))] })
 *
 * it.effect("most of a minute takes no time", () =>
 *   Effect.gen(function* () {
 *     const { archive, processes } = yield* TestStack.TestStack
 *     yield* Effect.forEach(processes, (process) => process.start)
 *     const { runId } = yield* Effect.fromNullable(processes[0]?.running()?.engine).pipe(
 *       Effect.flatMap((engine) => engine.start({ message: "hello" }))
 *     )
 *     yield* TestClock.adjust("2 minutes")
 *     expect(yield* archive.find({ runId, userId: "local" })).toMatchObject({ value: { status: "completed" } })
 *   }).pipe(Effect.provide(stack))
 * )
 * ```
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Agent from "../agent/Agent.js"
import * as Ids from "../domain/Ids.js"
import * as Engine from "../engine/Engine.js"
import { Process } from "../engine/Process.js"
import { RunEngine } from "../engine/RunEngine.js"
import type { Model } from "../model/Model.js"
import * as ResumePolicy from "../resume/ResumePolicy.js"
import { RunStore } from "../store/RunStore.js"
import type { Tool } from "../tool/Tool.js"
import * as FaultyStore from "./FaultyStore.js"
import type { ObservedRequest } from "./Observed.js"
import type * as Recorder from "./Recorder.js"
import * as RecordingTools from "./RecordingTools.js"
import * as ScriptedModel from "./ScriptedModel.js"
import * as Stores from "./Stores.js"

/**
 * - `processes`: how many (default 1); none is running before it is started
 * - `faults`: of the store, by process
 * - `tools`: of one process; by default the recording ones
 * - `store`: what all processes share (default: a store in memory)
 * - `neighbours`: whether processes know when another one has died (default true), as they do on one host
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly script: ScriptedModel.Script
  readonly store?: Stores.Store | undefined
  readonly processes?: number | undefined
  readonly faults?: ReadonlyArray<ReadonlyArray<FaultyStore.Fault>> | undefined
  readonly tools?: ((ledger: RecordingTools.Ledger, host: Recorder.Host) => ReadonlyArray<Tool>) | undefined
  readonly policy?: Layer.Layer<ResumePolicy.ResumePolicy> | undefined
  readonly limits?: Parameters<typeof Agent.make>[0]["limits"]
  readonly resume?: Parameters<typeof Agent.make>[0]["resume"]
  readonly model?: Partial<Pick<Model, "contextWindow" | "continuesDraft" | "price">> | undefined
  readonly engine?: Engine.EngineOptions | undefined
  readonly neighbours?: boolean | undefined
}

/**
 * One process. `running` is its engine with the name that stands in its leases, and a latch that opens when it dies;
 * absent while it is down. `crash` ends it as a power cut does: nothing more is stored, nothing is given up. `stop`
 * drains it first.
 *
 * @since 0.1.0
 * @category models
 */
export interface TestProcess {
  readonly index: number
  readonly control: FaultyStore.Control
  readonly running: () => Running | undefined
  readonly start: Effect.Effect<void>
  readonly crash: Effect.Effect<void>
  readonly stop: Effect.Effect<void>
}

/**
 * A living process of the stack.
 *
 * @since 0.1.0
 * @category models
 */
export interface Running {
  readonly name: string
  readonly engine: RunEngine["Type"]
  readonly dead: Deferred.Deferred<void>
}

/**
 * `archive` is the store without faults, for looking at what is really stored; `arrivals` tells when each run came into it.
 *
 * @since 0.1.0
 * @category services
 */
export class TestStack extends Context.Tag("runlet/testing/TestStack")<
  TestStack,
  {
    readonly processes: ReadonlyArray<TestProcess>
    readonly archive: RunStore["Type"]
    readonly arrivals: ReadonlyMap<string, number>
    readonly ledger: RecordingTools.Ledger
    readonly requests: ReadonlyArray<ObservedRequest>
  }
>() {}

interface Life {
  readonly name: string
  readonly dead: Deferred.Deferred<void>
  engine?: RunEngine["Type"]
}

interface Recorded extends ObservedRequest {
  text: string
  finished: boolean
  side?: unknown
}

/** The model as one process calls it, with what it gives out written down. */
const recorded = (model: Model, requests: Array<ObservedRequest>, alive: () => boolean): Model => ({
  ...model,
  stream: (request) =>
    Stream.suspend(() => {
      if (!alive()) return Stream.never
      const entry: Recorded = { request, text: "", finished: false }
      requests.push(entry)
      return model.stream(request).pipe(
        Stream.map((part) => {
          if (part.type === "text-delta") entry.text += part.delta
          if (part.type === "finish") {
            entry.finished = true
            entry.side = part.side
          }
          return part
        })
      )
    })
})

/** A store of which it is written down when each run came into it. */
const noting = (store: RunStore["Type"], arrivals: Map<string, number>): RunStore["Type"] => ({
  ...store,
  create: (run) =>
    Effect.tap(store.create(run), (outcome) =>
      outcome._tag === "Created"
        ? Effect.map(Clock.currentTimeMillis, (now) => arrivals.set(outcome.row.runId, now))
        : Effect.void
    )
})

const make = (options: Options): Effect.Effect<TestStack["Type"], never, Scope.Scope | Ids.IdGenerator> =>
  Effect.gen(function* () {
    const ids = yield* Ids.IdGenerator
    const open = yield* options.store ?? Stores.memory
    const archive = yield* open
    const arrivals = new Map<string, number>()
    const ledger = new RecordingTools.Ledger()
    const requests: Array<ObservedRequest> = []
    const script = ScriptedModel.make(options.script, options.model)
    const living = new Set<string>()

    const process = (index: number): TestProcess => {
      let life:
        | { readonly name: string; readonly dead: Deferred.Deferred<void>; engine?: RunEngine["Type"] }
        | undefined
      let generation = 0
      const control = new FaultyStore.Control(options.faults?.[index] ?? [], () => {
        if (life === undefined) return
        living.delete(life.name)
        Deferred.unsafeDone(life.dead, Effect.void)
        life = undefined
      })
      const running = (): Running | undefined =>
        life?.engine === undefined ? undefined : { name: life.name, engine: life.engine, dead: life.dead }

      const start = Effect.gen(function* () {
        if (life !== undefined) return
        generation++
        const name = `p${index}.${generation}`
        const mine: Life = { name, dead: yield* Deferred.make<void>() }
        const scope = yield* Scope.make()
        living.add(name)
        life = mine
        control.revive()
        // What is left of a process that has died is swept away; its store is closed to it already.
        yield* Effect.forkDaemon(Effect.zipRight(Deferred.await(mine.dead), Scope.close(scope, Exit.void)))
        const alive = () => living.has(name)
        const standing: Recorder.Host["standing"] = (run) =>
          Effect.gen(function* () {
            const row = Option.getOrUndefined(yield* Effect.orDie(archive.find(run)))
            const now = yield* Clock.currentTimeMillis
            return { seq: row?.lastSeq ?? 0, held: row?.owner === name && (row.leaseExpiresAt ?? 0) > now }
          })
        const tools = (options.tools ?? RecordingTools.make)(ledger, { name, alive, standing })
        const store = yield* Scope.extend(open, scope)
        const layer = Engine.layerWith({ commitWindowMs: 0, pollMs: 1_000, limitUsers: false, ...options.engine }).pipe(
          Layer.provide([
            Layer.succeed(RunStore, FaultyStore.make(noting(store, arrivals), control)),
            Layer.succeed(Ids.IdGenerator, ids),
            Layer.succeed(Process, {
              owner: name,
              isGone: (owner) => Effect.sync(() => options.neighbours !== false && !living.has(owner)),
              turn: Effect.yieldNow()
            }),
            options.policy ?? ResumePolicy.layerRestartIteration,
            Agent.layer({
              models: { m: recorded(script, requests, alive) },
              instructions: "Be brief.",
              tools,
              limits: options.limits,
              resume: options.resume
            })
          ])
        )
        const built = yield* Layer.buildWithScope(Layer.fresh(layer), scope)
        mine.engine = Context.get(built, RunEngine)
      })

      const crash = Effect.sync(() => control.crash())

      const stop = Effect.suspend(() => {
        const now = running()
        if (now === undefined) return crash
        const exit = Effect.suspend(() => (life?.name === now.name ? crash : Effect.void))
        return Effect.zipRight(now.engine.drain, exit)
      })

      return { index, control, running, start, crash, stop }
    }

    const processes = Array.from({ length: options.processes ?? 1 }, (_, index) => process(index))
    yield* Effect.addFinalizer(() => Effect.forEach(processes, (one) => one.crash, { discard: true }))
    return { processes, archive, arrivals, ledger, requests }
  })

/**
 * A stack of its own, with no process running yet.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<TestStack> =>
  Layer.scoped(TestStack, make(options)).pipe(Layer.provide(Ids.layerSeeded))
