import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type { Serving } from "../../src/http/Serving.js"

/** Keeps how to end each reader of a log in a set, for as long as it reads. */
export const knowing = (readers: Set<() => void>): Pick<Serving["Type"], "reading"> => ({
  reading: (end) =>
    Effect.flatMap(Effect.scope, (scope) => {
      readers.add(end)
      return Scope.addFinalizer(
        scope,
        Effect.sync(() => void readers.delete(end))
      )
    })
})
