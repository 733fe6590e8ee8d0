/**
 * What every store must do, as data: run each case against an empty store of its own. A store is not supported until
 * all of them succeed.
 *
 * ```ts
 * import { describe, it } from "@effect/vitest"
 * import { Effect, Layer } from "effect"
 * import { MemoryStore } from "runlet"
 * import { StoreContract } from "runlet/testing"
 *
 * describe("my store", () => {
 *   for (const { name, run } of StoreContract.cases) {
 *     it.effect(name, () => Effect.provide(run, Layer.fresh(MemoryStore.layer)))
 *   }
 * })
 * ```
 *
 * @since 0.1.0
 */
import { appends } from "./store/appends.js"
import { claims } from "./store/claims.js"
import { creates } from "./store/creates.js"
import type { StoreCase } from "./store/fixtures.js"
import { reads } from "./store/reads.js"
import { retention } from "./store/retention.js"

export type {
  /**
   * A case: `run` fails with a readable error when the store does not keep the rule that `name` states. Its store must
   * be empty, and nobody else may use it meanwhile.
   *
   * @since 0.1.0
   * @category models
   */
  StoreCase
} from "./store/fixtures.js"

/**
 * The contract of `RunStore`.
 *
 * @since 0.1.0
 * @category contracts
 */
export const cases: ReadonlyArray<StoreCase> = [...creates, ...appends, ...claims, ...reads, ...retention]
