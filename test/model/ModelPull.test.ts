import { describe, expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FastCheck from "effect/FastCheck"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ModelError, type ModelPart } from "../../src/model/Model.js"
import * as ModelPull from "../../src/model/ModelPull.js"

const failure = new ModelError({ code: "overloaded", message: "Busy.", retryable: true, recoverable: true })

/** What a pull may give: chunks, and an error at the end or none; or one that is not even opened. */
const script = FastCheck.record({
  opens: FastCheck.boolean(),
  chunks: FastCheck.array(FastCheck.array(FastCheck.string({ maxLength: 3 }), { maxLength: 3 }), { maxLength: 5 }),
  fails: FastCheck.boolean()
})

const make = ({ chunks, fails, opens }: typeof script extends FastCheck.Arbitrary<infer A> ? A : never) => {
  const counts = { opened: 0, released: 0 }
  const stream = ModelPull.stream(
    Effect.gen(function* () {
      yield* Effect.acquireRelease(
        Effect.sync(() => counts.opened++),
        () => Effect.sync(() => counts.released++)
      )
      if (!opens) return yield* failure
      const left = chunks.map((deltas) =>
        Chunk.fromIterable(deltas.map((delta): ModelPart => ({ type: "text-delta", id: "0", delta })))
      )
      return Effect.suspend(() => {
        const next = left.shift()
        return next !== undefined ? Effect.succeed(next) : fails ? Effect.fail(failure) : Effect.succeed(undefined)
      })
    })
  )
  return { counts, stream }
}

/** All that a pull gives, piece by piece, and how it ended. */
const drained = (stream: Stream.Stream<ModelPart, ModelError>) =>
  Effect.gen(function* () {
    const out: Array<ModelPart> = []
    const exit = yield* Effect.exit(
      Effect.scoped(
        Effect.gen(function* () {
          const pull = yield* ModelPull.of(stream)
          for (let parts = yield* pull; parts !== undefined; parts = yield* pull) out.push(...parts)
        })
      )
    )
    return { out, exit }
  })

describe("a stream that is pulled", () => {
  it.effect.prop("gives the same as a stream and as a pull, each time anew, and lets go", [script], ([plan]) =>
    Effect.gen(function* () {
      const { counts, stream } = make(plan)
      const ends = !plan.opens || plan.fails ? Exit.fail(failure) : Exit.void
      const expected = plan.opens ? plan.chunks.flat() : []
      const texts = (parts: ReadonlyArray<ModelPart>) => parts.map((part) => part.type === "text-delta" && part.delta)
      for (let time = 1; time <= 2; time++) {
        const pulled = yield* drained(stream)
        expect(texts(pulled.out)).toEqual(expected)
        expect(pulled.exit).toEqual(ends)
        const run: Array<ModelPart> = []
        const exit = yield* Effect.exit(Stream.runForEach(stream, (part) => Effect.sync(() => run.push(part))))
        expect(texts(run)).toEqual(expected)
        expect(exit).toEqual(ends)
        // A stream that was made of it is pulled as well.
        const mapped = yield* drained(Stream.map(stream, (part) => part))
        expect(texts(mapped.out)).toEqual(expected)
        expect(mapped.exit).toEqual(ends)
        expect(counts).toEqual({ opened: time * 3, released: time * 3 })
      }
    })
  )

  it.effect("holds what it has opened until the scope is closed", () =>
    Effect.gen(function* () {
      const { counts, stream } = make({ opens: true, chunks: [["a"], ["b"]], fails: false })
      const scope = yield* Scope.make()
      const pull = yield* Scope.extend(ModelPull.of(stream), scope)
      expect(yield* pull).toEqual(Chunk.of({ type: "text-delta", id: "0", delta: "a" }))
      expect(counts).toEqual({ opened: 1, released: 0 })
      yield* Scope.close(scope, Exit.void)
      expect(counts).toEqual({ opened: 1, released: 1 })
    })
  )
})
