import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/TestClock"
import * as ScriptedModel from "../../src/testing/ScriptedModel.js"
import * as TestStack from "../../src/testing/TestStack.js"
import * as VirtualClient from "../../src/testing/VirtualClient.js"

const { sleep, text, turn } = ScriptedModel

it.scoped("the whole stack is one layer, under a test clock, with a client that comes and goes", () =>
  Effect.gen(function* () {
    const { archive, processes, requests } = yield* TestStack.TestStack
    yield* Effect.forEach(processes, (process) => process.start)
    const [process] = processes
    const running = yield* Effect.fromNullable(process?.running())
    const { runId } = yield* running.engine.start({ message: "hello" })
    const client = VirtualClient.make({
      runId,
      visits: [{ take: 3, pauseMs: 1_000 }],
      connect: () => process?.running(),
      stored: Effect.succeed(Number.POSITIVE_INFINITY)
    })
    const watching = yield* Effect.fork(client.run)
    yield* TestClock.adjust("2 minutes")
    yield* watching.await
    expect(yield* archive.find({ runId, userId: "local" })).toMatchObject({ value: { status: "completed" } })
    expect(client.observed().sessions.map(({ after, ended }) => [after, ended])).toEqual([
      [0, false],
      [3, true]
    ])
    expect(client.state()).toMatchObject({ status: "completed", textLength: "Wait for it.".length })
    expect(requests.map(({ text }) => text)).toEqual(["Wait for it."])
  }).pipe(Effect.provide(TestStack.layer({ script: [turn(text("Wait"), sleep(50_000), text(" for it."))] })))
)
