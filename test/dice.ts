/**
 * Before the tests of each file: properties that name no seed throw the same dice each time, so that a change is judged
 * by itself. `RUNLET_SEED` throws others, and `npm run soak` new ones each time.
 */
import * as FastCheck from "effect/FastCheck"

FastCheck.configureGlobal({ ...FastCheck.readConfigureGlobal(), seed: Number(process.env.RUNLET_SEED ?? 1) })
