/**
 * The whole stack as one layer: SQLite or PostgreSQL, ids, leases, resume policy and engine, for programs that run on Node.
 *
 * @since 0.1.0
 */
import { mkdirSync } from "node:fs"
import { dirname } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Agent } from "../agent/Agent.js"
import * as Ids from "../domain/Ids.js"
import type { ResumeOptions } from "../domain/Limits.js"
import * as Engine from "../engine/Engine.js"
import type { RunEngine } from "../engine/RunEngine.js"
import * as ResumePolicy from "../resume/ResumePolicy.js"
import * as Postgres from "../store/Postgres.js"
import { type RunStore, StoreError } from "../store/RunStore.js"
import * as Sqlite from "../store/Sqlite.js"
import type { ReadClient, WriteClient } from "../tool/SqlClients.js"
import * as NodeProcess from "./NodeProcess.js"

/**
 * - `data`: the address of a PostgreSQL database (`postgres://…`), or an SQLite file (default `./.runlet/runlet.db`),
 *   whose directory is created, readable by its owner alone
 * - `filename`: an SQLite file, whatever its name looks like
 * - `synchronous`: see `Sqlite.SqliteOptions`
 * - `policy`: how runs go on after a crash (default: restart the iteration)
 *
 * @since 0.1.0
 * @category models
 */
export interface Options extends Engine.EngineOptions {
  readonly data?: string | undefined
  readonly filename?: string | undefined
  readonly synchronous?: "full" | "normal" | undefined
  readonly policy?: Layer.Layer<ResumePolicy.ResumePolicy> | undefined
}

const defaultFilename = "./.runlet/runlet.db"

/**
 * The policy of this name.
 *
 * @since 0.1.0
 * @category policies
 */
export const policyOf = (name: ResumeOptions["policy"]): Layer.Layer<ResumePolicy.ResumePolicy> => {
  switch (name) {
    case "restart-iteration":
      return ResumePolicy.layerRestartIteration
    case "continue-draft":
      return ResumePolicy.layerContinueDraft
    case "manual":
      return ResumePolicy.layerManual
  }
}

/**
 * The store, and the clients that tools may use for exactly-once writes. `leaseTtlMs`: that of the agent (default 10 s).
 *
 * @since 0.1.0
 * @category layers
 */
export const layerStore = (
  options: Pick<Options, "data" | "filename" | "synchronous"> & { readonly leaseTtlMs?: number | undefined }
): Layer.Layer<RunStore | WriteClient | ReadClient, StoreError> => {
  const { data = defaultFilename, leaseTtlMs } = options
  if (options.filename === undefined && Postgres.isAddress(data)) {
    return Postgres.layer({ url: Redacted.make(data), leaseTtlMs })
  }
  const filename = options.filename ?? data
  const directory = Effect.try({
    try: () => mkdirSync(dirname(filename), { recursive: true, mode: 0o700 }),
    catch: (cause) => new StoreError({ reason: "unavailable", method: "open", cause })
  })
  return Layer.unwrapEffect(Effect.as(directory, Sqlite.layer({ filename, synchronous: options.synchronous })))
}

/**
 * The engine on a store that is there already.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerEngine = (options: Options): Layer.Layer<RunEngine, never, Agent | RunStore> =>
  Engine.layerWith(options).pipe(
    Layer.provide(NodeProcess.layer),
    Layer.provide([Ids.layer, options.policy ?? ResumePolicy.layerRestartIteration])
  )

/**
 * Everything but the agent.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  options: Options = {}
): Layer.Layer<RunEngine | RunStore | WriteClient | ReadClient, StoreError, Agent> =>
  Layer.provideMerge(
    layerEngine(options),
    Layer.unwrapEffect(Effect.map(Agent, ({ resume }) => layerStore({ ...options, leaseTtlMs: resume.leaseTtlMs })))
  )
