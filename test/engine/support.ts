import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as Agent from "../../src/agent/Agent.js"
import type { AgentEvent } from "../../src/domain/AgentEvent.js"
import * as Ids from "../../src/domain/Ids.js"
import type { Snapshot } from "../../src/domain/Snapshot.js"
import * as Engine from "../../src/engine/Engine.js"
import * as Process from "../../src/engine/Process.js"
import { RunEngine } from "../../src/engine/RunEngine.js"
import * as ResumePolicy from "../../src/resume/ResumePolicy.js"
import * as MemoryStore from "../../src/store/MemoryStore.js"
import type { RunStore } from "../../src/store/RunStore.js"
import type * as Script from "../../src/testing/ScriptedModel.js"
import { type Tool, ToolFailure } from "../../src/tool/Tool.js"

export interface StackOptions {
  readonly model: Script.ScriptedModel
  readonly tools?: ReadonlyArray<Tool>
  readonly limits?: Parameters<typeof Agent.make>[0]["limits"]
  readonly resume?: Parameters<typeof Agent.make>[0]["resume"]
  readonly modelId?: string
  /** Further models. */
  readonly models?: Record<string, Script.ScriptedModel>
  readonly pollMs?: number
  readonly policy?: Layer.Layer<ResumePolicy.ResumePolicy>
  readonly engine?: Engine.EngineOptions
  readonly store?: Layer.Layer<RunStore, never, MemoryStore.Shared>
}

/** One process on the shared memory store. */
export const node = (options: StackOptions) =>
  Layer.fresh(
    Engine.layerWith({ commitWindowMs: 0, pollMs: options.pollMs ?? 20, ...options.engine }).pipe(
      Layer.provide(Process.layer),
      Layer.provideMerge(options.store ?? MemoryStore.layerProcess),
      Layer.provide([
        Ids.layer,
        options.policy ?? ResumePolicy.layerRestartIteration,
        Agent.layer({
          models: { ...options.models, [options.modelId ?? "m"]: options.model },
          defaultModel: options.modelId ?? "m",
          tools: options.tools,
          limits: options.limits,
          resume: options.resume
        })
      ])
    )
  )

export const alone = (options: StackOptions) => node(options).pipe(Layer.provideMerge(MemoryStore.layerShared))

export const log = (runId: string) =>
  Effect.flatMap(RunEngine, (engine) =>
    Effect.map(Stream.runCollect(engine.events(runId)), (all) => [...all].map((envelope) => envelope.event))
  )

export const types = (events: ReadonlyArray<AgentEvent>) => events.map((event) => event.type)

/** Waits until the snapshot is as wanted. */
export const until = (runId: string, wanted: (snapshot: Snapshot) => boolean) =>
  Effect.flatMap(RunEngine, (engine) =>
    engine.snapshot(runId).pipe(
      Effect.filterOrFail(wanted, (snapshot) => ({ _tag: "NotYet" as const, snapshot })),
      Effect.retry(Schedule.spaced("10 millis").pipe(Schedule.upTo("5 seconds")))
    )
  )

/** Tools whose results hold a word that must not get out of a run. `lookup` fails when its input says so. */
export const telling = (secret: string): { readonly lookup: Tool; readonly save: Tool } => {
  const tool = { parameters: { type: "object" }, check: Effect.succeed } as const
  return {
    lookup: {
      ...tool,
      name: "lookup",
      description: "Looks a word up",
      kind: "readonly",
      execute: (input) =>
        JSON.stringify(input).includes("fail")
          ? Effect.fail(new ToolFailure({ message: `No ${secret}` }))
          : Effect.succeed({ found: input, secret })
    },
    save: {
      ...tool,
      name: "save",
      description: "Saves",
      kind: "write",
      preview: () => Effect.succeed({ will: secret }),
      commit: () => Effect.succeed({ result: secret })
    }
  }
}
