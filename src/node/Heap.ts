/**
 * What V8 is told of how a server uses memory.
 *
 * @since 0.1.0
 */
import { setFlagsFromString } from "node:v8"
import * as Effect from "effect/Effect"

/**
 * Has V8 no longer choose places of the code whose objects are made in the old generation at once. By itself it chooses
 * those whose objects survive. A burst of runs is enough for that, and what is made for every piece of an answer, and
 * forgotten a moment later, is then left to the collections that stop the program for longest: with 200 runs of 50 pieces
 * a second they came every four seconds, and held up all answers by some 100 ms. Told not to choose, V8 had none in ten.
 *
 * `runlet serve` does it. It concerns all of a process, so a program that embeds the engine has to decide it: first
 * thing, before it serves. With the flag `--no-allocation-site-pretenuring`, `node` does the same.
 *
 * @example
 * import * as Effect from "effect/Effect"
 * import { Heap } from "runlet/node"
 *
 * const main = Effect.zipRight(Heap.tune, Effect.log("ready"))
 *
 * @since 0.1.0
 * @category tuning
 */
export const tune: Effect.Effect<void> = Effect.sync(() => setFlagsFromString("--no-allocation-site-pretenuring"))
