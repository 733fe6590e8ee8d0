/**
 * Stores to run a simulation over: each opens one more store on the same data, as one more process does.
 *
 * ```ts
 * import { it } from "@effect/vitest"
 * import { Arbitraries, Cases, Stores } from "runlet/testing"
 *
 * it.prop("over SQLite", [Arbitraries.plan], ([plan]) => Cases.hold(plan, { store: Stores.sqlite }), 60_000)
 * ```
 *
 * One of your own is empty data, made anew for each case, and `open` for every process that is to have it:
 * `Effect.map(emptyFolder, (folder) => Stores.open(MyStore.layer({ folder })))`.
 *
 * @since 0.1.0
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as MemoryStore from "../store/MemoryStore.js"
import { RunStore } from "../store/RunStore.js"
import * as Sqlite from "../store/Sqlite.js"

/**
 * Opens the store of one process; it is closed with its scope.
 *
 * @since 0.1.0
 * @category models
 */
export type Open = Effect.Effect<RunStore["Type"], never, Scope.Scope>

/**
 * Empty data, and how to open it.
 *
 * @since 0.1.0
 * @category models
 */
export type Store = Effect.Effect<Open, never, Scope.Scope>

/**
 * A store that is a layer, as each process opens it: the layer is built afresh every time, over the data that it names.
 *
 * @since 0.1.0
 * @category constructors
 */
export const open = <E>(layer: Layer.Layer<RunStore, E>): Open =>
  Layer.build(Layer.fresh(layer)).pipe(
    Effect.map((context) => Context.get(context, RunStore)),
    Effect.orDie
  )

/**
 * One store in memory, shared by all processes.
 *
 * @since 0.1.0
 * @category stores
 */
export const memory: Store = Effect.map(MemoryStore.makeShared, (shared) =>
  Effect.provideService(MemoryStore.make, MemoryStore.Shared, shared)
)

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "runlet-testing-"))),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true }))
)

/** How often a process looks for what others have committed, in the time of the simulation. */
const pollMs = 200

/**
 * One SQLite file in a folder of its own, which goes with the scope; every process has connections of its own.
 *
 * @since 0.1.0
 * @category stores
 */
export const sqlite: Store = Effect.map(folder, (directory) =>
  open(Sqlite.layer({ filename: join(directory, "test.db"), synchronous: "normal", pollMs }))
)
