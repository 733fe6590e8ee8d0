import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as AiSdk from "../../src/adapters/AiSdk.js"
import type * as Chunks from "../../src/adapters/AiSdkChunks.js"
import * as Messages from "../../src/adapters/AiSdkMessages.js"
import type * as Envelope from "../../src/domain/Envelope.js"
import { RunId } from "../../src/domain/Ids.js"
import * as RunState from "../../src/domain/RunState.js"
import * as EventArbitraries from "../../src/testing/EventArbitraries.js"
import { check, messageOf } from "./support/AiSdkClient.js"
import { golden, type Log, restored, stateOf } from "./support/Logs.js"

type Version = Chunks.Version

interface Said {
  readonly state: AiSdk.State
  readonly chunks: ReadonlyArray<Chunks.Chunk>
}

/** What a client is told that comes at `seq`, and comes again whenever it has to. */
const told = (log: Log, seq: number, version: Version): Said => {
  let [state, first] = AiSdk.replay(restored(stateOf(log, seq)), version)
  let chunks = [...first]
  for (const envelope of log.slice(seq)) {
    const [next, more] = AiSdk.step(state, envelope)
    state = next
    chunks.push(...more)
    if (state.broken) {
      const [again, from] = AiSdk.replay(restored(state.run), version)
      state = again
      chunks = [...from]
    }
  }
  return { state, chunks: [...chunks, ...AiSdk.close(state)] }
}

interface Shown {
  readonly parts: ReadonlyArray<{ readonly type: string }>
}

/** The message, without the steps in which nothing stands: those of an attempt that left nothing. */
const shown = async (said: Said, version: Version): Promise<unknown> => {
  const { message, error } = await messageOf(said.chunks, version)
  if (message === undefined) return { message, error }
  const { parts, ...rest } = message as Shown
  const empty = (index: number) =>
    parts[index]?.type === "step-start" && (parts[index + 1]?.type ?? "step-start") === "step-start"
  return { ...rest, parts: parts.filter((_, index) => !empty(index)), error }
}

/** A log and places to cut it. */
const cuts = EventArbitraries.log.chain((log) =>
  FastCheck.tuple(FastCheck.constant(log), FastCheck.array(FastCheck.nat(log.length), { minLength: 1, maxLength: 3 }))
)

describe("a run as a UI message stream", () => {
  for (const version of [6, 7] as const) {
    it.effect.prop(
      `is the same message wherever it is cut and taken up again, for version ${version}`,
      [cuts],
      ([[log, places]]) =>
        Effect.promise(async () => {
          const whole = await shown(told(log, 0, version), version)
          for (const place of places) expect(await shown(told(log, place, version), version)).toEqual(whole)
        }),
      { fastCheck: { numRuns: 100 } }
    )
  }

  it.effect.prop(
    "shows each call once, and the text of the run",
    [EventArbitraries.log],
    ([log]) =>
      Effect.promise(async () => {
        const { message } = await messageOf(told(log, 0, 6).chunks)
        const run = stateOf(log, log.length)
        const parts =
          (
            message as
              | { readonly parts: ReadonlyArray<{ type: string; text?: string; toolCallId?: string }> }
              | undefined
          )?.parts ?? []
        const text = (type: string) =>
          parts
            .filter((part) => part.type === type)
            .map((part) => part.text)
            .join("")
        expect(text("text")).toBe(RunState.text(run))
        expect(text("reasoning")).toBe(RunState.text(run, "reasoning"))
        const calls = RunState.turns(run).flatMap((turn) => turn.calls.map(({ id }) => id))
        expect(parts.flatMap(({ toolCallId }) => (toolCallId === undefined ? [] : [toolCallId]))).toEqual(calls)
      }),
    { fastCheck: { numRuns: 100 } }
  )

  it.effect.prop(
    "is in the history as the client would have made it",
    [EventArbitraries.log],
    ([log]) =>
      Effect.promise(async () => {
        const run = stateOf(log, log.length)
        if (run.end === undefined) return
        const [state, chunks] = AiSdk.replay(run)
        const { message } = await messageOf([...chunks, ...AiSdk.close(state)])
        expect(JSON.parse(JSON.stringify(Messages.messageOf(run)))).toEqual(message)
      }),
    { fastCheck: { numRuns: 100 } }
  )

  it.effect.prop(
    "says nothing that its client refuses, whatever events come",
    [FastCheck.array(EventArbitraries.event)],
    ([events]) =>
      Effect.promise(async () => {
        for (const version of [6, 7] as const) {
          let state = AiSdk.behind(RunState.empty("run"), version)
          for (const [index, event] of events.entries()) {
            const [next, chunks] = AiSdk.step(state, { ...first, seq: index + 1, event })
            state = next
            for (const chunk of [...chunks, ...AiSdk.close(state)]) await check(chunk, version)
          }
        }
      })
  )

  it("sends version 6 nothing that only 7 knows", () => {
    const types = new Set(golden.flatMap(([, log]) => told(log, 0, 6).chunks.map(({ type }) => type)))
    expect([...types].filter((type) => type === "reset-step" || type === "tool-approval-response")).toEqual([])
  })

  it.each(golden)("looks as it always did: %s", async (name, log) => {
    for (const version of [6, 7] as const) {
      const { chunks } = told(log, 0, version)
      const file = join(__dirname, "golden", `${name}.ai-sdk-${version}.jsonl`)
      const text = chunks.map((chunk) => `${JSON.stringify(chunk)}\n`).join("")
      if (process.env.RUNLET_GOLDEN === "update") writeFileSync(file, text)
      expect(text).toBe(readFileSync(file, "utf8"))
      const { message } = await messageOf(chunks, version)
      expect(JSON.stringify(message)).toContain(
        log[0]?.event.type === "run-start" ? log[0].event.assistantMessageId : ""
      )
    }
  })
})

const first: Envelope.Envelope = {
  runId: RunId.make("run_01890000-0000-7000-8000-000000000001"),
  seq: 1,
  createdAt: 0,
  event: { type: "run-status", status: "queued" }
}
