import { describe, expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/TestClock"
import type { ToolKind, ToolPhase } from "../../src/domain/AgentEvent.js"
import {
  type Committed,
  type Tool,
  ToolConflict,
  type ToolContext,
  ToolFailure,
  ToolInDoubt
} from "../../src/tool/Tool.js"
import * as ToolRunner from "../../src/tool/ToolRunner.js"

const context = (phase: ToolPhase): ToolContext => ({
  user: "alice",
  runId: "run",
  conversationId: "conversation",
  toolCallId: "call",
  phase,
  idempotencyKey: "key",
  currentDocument: null,
  progress: () => Effect.void
})

/** Handlers as a program without types would write them. */
const tool = (kind: ToolKind, handler: (...args: ReadonlyArray<never>) => unknown, more: Partial<Tool> = {}): Tool => ({
  name: "probe",
  description: "",
  parameters: {},
  kind,
  check: Effect.succeed,
  execute: handler as Tool["execute"],
  preview: handler as Tool["preview"],
  commit: handler as Tool["commit"],
  ...more
})

const run = (tool: Tool, phase: ToolPhase, more: Partial<ToolRunner.RunOptions> = {}) =>
  ToolRunner.run({
    tool,
    phase,
    input: {},
    context: context(phase),
    timeoutMs: 1000,
    maxResultBytes: 10_000,
    ...more
  })

const circular = () => {
  const value: Record<string, unknown> = {}
  value.self = value
  return value
}

const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

const nasty: ReadonlyArray<readonly [string, () => unknown]> = [
  ["a string", () => "boom"],
  ["an empty string", () => ""],
  ["null", () => null],
  ["undefined", () => undefined],
  ["a number", () => 0],
  ["a circular object", circular],
  ["a BigInt", () => 10n],
  ["a Buffer", () => Buffer.from("x")],
  ["an error of 2 MB", () => new Error("m".repeat(2_000_000))],
  [
    "an error whose message throws",
    () =>
      Object.defineProperty(new Error("x"), "message", {
        get: () => {
          throw 1
        }
      })
  ],
  ["a revoked proxy", revoked],
  [
    "a toJSON trap",
    () => ({
      toJSON: () => {
        throw new Error("trap")
      }
    })
  ],
  ["a __proto__ key", () => JSON.parse('{"__proto__":{"polluted":1}}')],
  ["a function", () => () => 1],
  ["a half surrogate", () => "\ud83d"]
]

const phases: ReadonlyArray<readonly [ToolKind, ToolPhase, "fails" | "doubts"]> = [
  ["readonly", "execute", "fails"],
  ["write", "preview", "fails"],
  ["write", "commit", "doubts"],
  ["effectful", "execute", "doubts"]
]

const storable = (outcome: ToolRunner.ToolOutcome) => {
  const data = outcome._tag === "Settled" ? outcome.result : (outcome.message ?? "")
  const text = JSON.stringify(data)
  expect(text.length).toBeLessThanOrEqual(10_000)
  expect(JSON.stringify(JSON.parse(text))).toBe(text)
  expect(/\p{Surrogate}/u.test(text)).toBe(false)
  return outcome
}

describe("what a handler throws", () => {
  for (const [kind, phase, way] of phases) {
    for (const [name, value] of nasty) {
      const ways: ReadonlyArray<readonly [string, () => unknown]> = [
        [
          "thrown at once",
          () => {
            throw value()
          }
        ],
        ["as a defect", () => Effect.die(value())],
        ["as an untyped failure", () => Effect.fail(value() as ToolFailure)],
        ["as a rejected promise", () => Promise.reject(value())],
        [
          "later, in a promise",
          () =>
            Effect.promise(() =>
              Promise.resolve().then(() => {
                throw value()
              })
            )
        ],
        ["from tryPromise", () => Effect.tryPromise(() => Promise.reject(value()))]
      ]
      it.effect(`${phase} of ${kind}: ${name}`, () =>
        // Effect itself can not carry a value that answers no question at all.
        Effect.forEach(name === "a revoked proxy" ? ways.slice(0, 4) : ways, ([, handler]) =>
          Effect.map(run(tool(kind, handler), phase), (outcome) => {
            storable(outcome)
            expect(outcome._tag === "Settled" ? outcome.ok : outcome._tag).toBe(way === "fails" ? false : "InDoubt")
          })
        )
      )
    }
  }

  it.effect("the message reaches the model, cut", () =>
    Effect.gen(function* () {
      const short = yield* run(
        tool("readonly", () => Effect.die(new Error("disk is full"))),
        "execute"
      )
      expect(short).toEqual({ _tag: "Settled", ok: false, result: { error: "disk is full" } })
      const long = yield* run(
        tool("readonly", () => Effect.die(new Error("m".repeat(2_000_000)))),
        "execute"
      )
      expect(JSON.stringify(long).length).toBeLessThan(5_000)
      expect(JSON.stringify(long)).toContain("mmm")
    })
  )
})

describe("what a handler returns", () => {
  for (const [name, value] of nasty) {
    it.effect(`${name} is a result`, () =>
      Effect.forEach([() => value(), () => Effect.succeed(value()), () => Promise.resolve(value())], (handler) =>
        Effect.map(run(tool("readonly", handler), "execute"), (outcome) => {
          storable(outcome)
          if (name !== "a revoked proxy") {
            expect(outcome).toMatchObject({ _tag: "Settled", ok: true })
          }
        })
      )
    )
    it.effect(`${name} is a commit's result`, () =>
      Effect.map(
        run(
          tool("write", () => Effect.succeed({ result: value() })),
          "commit"
        ),
        (outcome) => {
          storable(outcome)
          expect(outcome).toMatchObject({ _tag: "Settled", ok: true })
        }
      )
    )
  }

  it.effect("falsy values are kept as they are, undefined is null", () =>
    Effect.forEach([false, 0, "", null, [], {}, undefined], (value) =>
      Effect.map(
        run(
          tool("readonly", () => Effect.succeed(value)),
          "execute"
        ),
        (outcome) => expect(outcome).toEqual({ _tag: "Settled", ok: true, result: value === undefined ? null : value })
      )
    )
  )

  it.effect("a promise nobody waits for does no harm", () =>
    Effect.gen(function* () {
      const outcome = yield* run(
        tool("readonly", () => Effect.succeed({ later: Promise.reject(new Error("unobserved")), a: 1 })),
        "execute"
      )
      expect(outcome).toEqual({ _tag: "Settled", ok: true, result: { a: 1 } })
    })
  )

  it.effect("a long result is cut and says so", () =>
    Effect.gen(function* () {
      const outcome = yield* run(
        tool("readonly", () => Effect.succeed(["x".repeat(100_000)])),
        "execute"
      )
      expect(outcome).toMatchObject({ ok: true, result: { truncated: true, text: expect.stringMatching(/^\["xxx/) } })
      expect(JSON.stringify(outcome).length).toBeLessThan(11_000)
    })
  )

  it.effect("a commit hands on what belongs into the transaction", () =>
    Effect.gen(function* () {
      const within = Effect.fail(new ToolConflict({}))
      const outcome = yield* run(
        tool("write", () => Effect.succeed<Committed>({ result: { id: 1 }, within })),
        "commit"
      )
      expect(outcome).toEqual({ _tag: "Settled", ok: true, result: { id: 1 }, within })
    })
  )
})

describe("what a handler says of itself", () => {
  it.effect("a failure is a failure in every phase", () =>
    Effect.forEach(phases, ([kind, phase]) =>
      Effect.map(
        run(
          tool(kind, () => Effect.fail(new ToolFailure({ message: "no", result: { code: 7 } }))),
          phase
        ),
        (outcome) =>
          expect(outcome).toEqual({ _tag: "Settled", ok: false, result: { error: "no", details: { code: 7 } } })
      )
    )
  )

  it.effect("a conflict is one only for a commit", () =>
    Effect.gen(function* () {
      const conflicting = tool("write", () => Effect.fail(new ToolConflict({ message: "moved" })))
      expect(yield* run(conflicting, "commit")).toEqual({ _tag: "Conflict", message: "moved" })
      expect(
        yield* run(
          tool("write", () => Effect.fail(new ToolConflict({}))),
          "commit"
        )
      ).toEqual({ _tag: "Conflict" })
      expect(yield* run(conflicting, "preview")).toMatchObject({ _tag: "Settled", ok: false })
    })
  )

  it.effect("doubt is doubt where there is an effect", () =>
    Effect.forEach(phases, ([kind, phase, way]) =>
      Effect.map(
        run(
          tool(kind, () => Effect.fail(new ToolInDoubt({ message: "lost" }))),
          phase
        ),
        (outcome) =>
          expect(outcome).toEqual(
            way === "doubts"
              ? { _tag: "InDoubt", message: "lost" }
              : { _tag: "Settled", ok: false, result: { error: "lost" } }
          )
      )
    )
  )

  it.effect("a write without a dry run shows its exact call", () =>
    Effect.map(
      run(
        tool("write", () => Effect.void, { preview: undefined }),
        "preview",
        { input: { a: 1 } }
      ),
      (outcome) =>
        expect(outcome).toEqual({ _tag: "Settled", ok: true, result: { toolName: "probe", input: { a: 1 } } })
    )
  )

  it.effect("a step that is not there is a failure", () =>
    Effect.map(
      run(
        tool("write", () => Effect.void, { commit: undefined }),
        "commit"
      ),
      (outcome) => expect(outcome).toMatchObject({ _tag: "Settled", ok: false })
    )
  )

  it("a kind that can not be told is a careful one", () => {
    const kind = (kindOf: () => unknown, more: Partial<Tool> = {}) =>
      ToolRunner.kindOf(
        tool("readonly", () => 1, { kindOf: kindOf as Tool["kindOf"], ...more }),
        {}
      )
    expect(kind(() => "readonly")).toBe("readonly")
    expect(kind(() => "nonsense")).toBe("write")
    expect(
      kind(
        () => {
          throw new Error()
        },
        { commit: undefined }
      )
    ).toBe("effectful")
  })
})

describe("time", () => {
  const deaf: ReadonlyArray<readonly [string, () => Effect.Effect<never> | Promise<never>]> = [
    ["never settles", () => Effect.never],
    ["is a promise that never settles", () => new Promise<never>(() => undefined)],
    ["can not be interrupted", () => Effect.uninterruptible(Effect.never)]
  ]
  for (const [kind, phase, way] of phases) {
    for (const [name, handler] of deaf) {
      it.effect(`${phase} of ${kind} that ${name} ends at the limit`, () =>
        Effect.gen(function* () {
          const fiber = yield* Effect.fork(run(tool(kind, handler), phase))
          yield* TestClock.adjust(Duration.millis(999))
          expect(fiber.unsafePoll()).toBe(null)
          yield* TestClock.adjust(Duration.millis(1))
          const outcome = yield* Fiber.join(fiber)
          expect(outcome._tag === "Settled" ? outcome.ok : outcome._tag).toBe(way === "fails" ? false : "InDoubt")
          expect(JSON.stringify(outcome)).toContain("1000 ms")
        })
      )
      it.effect(`${phase} of ${kind} that ${name} is left at once when interrupted`, () =>
        Effect.gen(function* () {
          const begun = yield* Deferred.make<void>()
          const running = tool(kind, () =>
            Deferred.succeed(begun, undefined).pipe(
              Effect.zipRight(
                Effect.suspend(() => {
                  const got = handler()
                  return Effect.isEffect(got) ? got : Effect.promise(() => got)
                })
              )
            )
          )
          const fiber = yield* Effect.fork(run(running, phase))
          yield* Deferred.await(begun)
          const exit = yield* Fiber.interrupt(fiber)
          expect(exit._tag).toBe("Failure")
        })
      )
    }
  }

  it.effect("the tool's own limit stands above the configured one", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.fork(
        run(
          tool("readonly", () => Effect.never, { timeoutMs: 50 }),
          "execute"
        )
      )
      yield* TestClock.adjust(Duration.millis(50))
      expect(yield* Fiber.join(fiber)).toMatchObject({ ok: false })
    })
  )

  it.effect("interruption reaches the handler and its signal", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const aborted = yield* Deferred.make<void>()
      const handler = () =>
        Effect.async<never>((_resume, signal) => {
          signal.addEventListener("abort", () => Deferred.unsafeDone(aborted, Effect.void))
          Deferred.unsafeDone(begun, Effect.void)
        })
      const fiber = yield* Effect.fork(run(tool("effectful", handler), "execute"))
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fiber)
      yield* Deferred.await(aborted)
    })
  )

  it.effect("progress without an end is shown up to the size of a result, whether its lines are long or empty", () =>
    Effect.gen(function* () {
      for (const line of ["", "x", "x".repeat(1_000), "x".repeat(1_000_000)]) {
        const shown: Array<string> = []
        const handler = (_: unknown, { progress }: ToolContext) =>
          Effect.as(Effect.repeatN(progress(line), 20_000), "done")
        const outcome = yield* run(tool("readonly", handler), "execute", {
          context: { ...context("execute"), progress: (delta) => Effect.sync(() => void shown.push(delta)) }
        })
        expect(outcome).toEqual({ _tag: "Settled", ok: true, result: "done" })
        expect(shown.length).toBeLessThan(100)
        expect(shown.join("").length).toBeLessThan(10_100)
        expect(shown.at(-1)).toMatch(/no more progress is shown\)$/)
      }
    })
  )

  it.effect("progress is shown while it runs and ignored afterwards", () =>
    Effect.gen(function* () {
      const shown: Array<string> = []
      let late: Effect.Effect<void> = Effect.void
      const handler = (_: unknown, { progress }: ToolContext) => {
        late = progress("late")
        return Effect.zipRight(
          progress("one"),
          Effect.suspend(() => Effect.never)
        )
      }
      const fiber = yield* Effect.fork(
        run(tool("readonly", handler), "execute", {
          context: { ...context("execute"), progress: (delta) => Effect.sync(() => void shown.push(delta)) }
        })
      )
      yield* TestClock.adjust(Duration.millis(1000))
      yield* Fiber.join(fiber)
      yield* late
      expect(shown).toEqual(["one"])
    })
  )
})

describe("probe", () => {
  const probed = (probe: () => unknown) =>
    ToolRunner.probe(
      tool("write", () => 1, { probe: probe as Tool["probe"] }),
      context("commit"),
      {
        timeoutMs: 1000,
        maxResultBytes: 10_000
      }
    )

  it.effect("answers what the tool says, and does not know otherwise", () =>
    Effect.gen(function* () {
      expect(yield* probed(() => Effect.succeed({ state: "applied", result: { a: 1n } }))).toEqual({
        state: "applied",
        result: { a: "1" }
      })
      expect(yield* probed(() => Effect.succeed({ state: "applied" }))).toEqual({ state: "applied" })
      expect(yield* probed(() => Effect.succeed({ state: "absent" }))).toEqual({ state: "absent" })
      const nonsense = [null, undefined, "applied", { state: "maybe" }, {}, revoked()]
      for (const value of nonsense) {
        expect(yield* probed(() => Effect.succeed(value))).toEqual({ state: "unknown" })
      }
      for (const [, value] of nasty) {
        expect(yield* probed(() => Effect.die(value()))).toEqual({ state: "unknown" })
        expect(
          yield* probed(() => {
            throw value()
          })
        ).toEqual({ state: "unknown" })
      }
    })
  )

  it.effect("does not wait longer than it may", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.fork(probed(() => Effect.uninterruptible(Effect.never)))
      yield* TestClock.adjust(Duration.millis(1000))
      expect(yield* Fiber.join(fiber)).toEqual({ state: "unknown" })
    })
  )
})
