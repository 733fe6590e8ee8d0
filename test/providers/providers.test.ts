/** Google and Amazon Bedrock as models of a run: their libraries behind the bridge, against their own wire formats. */
import * as AmazonBedrockClient from "@effect/ai-amazon-bedrock/AmazonBedrockClient"
import * as AmazonBedrockLanguageModel from "@effect/ai-amazon-bedrock/AmazonBedrockLanguageModel"
import * as GoogleClient from "@effect/ai-google/GoogleClient"
import * as GoogleLanguageModel from "@effect/ai-google/GoogleLanguageModel"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { describe, expect, it } from "@effect/vitest"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { AiAgent } from "../../src/ai.js"
import { EffectTool, Engine, Ids, MemoryStore, Process, ResumePolicy, RunEngine } from "../../src/index.js"
import * as ScriptedUpstream from "../../src/testing/ScriptedUpstream.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import * as Bedrock from "./Bedrock.js"
import * as Google from "./Google.js"
import * as BedrockWire from "./wire/Bedrock.js"
import * as GoogleWire from "./wire/Google.js"

const lookup = EffectTool.make({
  name: "lookup",
  description: "Looks a word up",
  kind: "readonly",
  parameters: Schema.Struct({ q: Schema.String }),
  execute: ({ q }) => Effect.succeed(`the meaning of ${q}`)
})

const thinking = {
  google: { generationConfig: { thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 } } },
  bedrock: { additionalModelRequestFields: { thinking: { type: "enabled", budget_tokens: 1024 } } }
}

const google = (url: string) =>
  GoogleLanguageModel.layer({ model: "gemini-2.5-flash", config: { toolConfig: {}, ...thinking.google } }).pipe(
    Layer.provide(Google.layerComplete),
    Layer.provide(GoogleClient.layer({ apiKey: Redacted.make("AIza-canary"), apiUrl: url }))
  )

const bedrock = (url: string) =>
  AmazonBedrockLanguageModel.layer({
    model: "anthropic.claude-sonnet-4-20250514-v1:0",
    config: thinking.bedrock
  }).pipe(
    Layer.provide(Bedrock.layerUsageFirst),
    Layer.provide(
      AmazonBedrockClient.layer({
        apiUrl: url,
        accessKeyId: "AKIDEXAMPLE",
        secretAccessKey: Redacted.make("wJalr-canary"),
        region: "eu-central-1"
      })
    )
  )

type Provider = typeof google | typeof bedrock

/** An engine in memory whose model is the provider's, at a server that answers like this. */
const engineAt = (provider: Provider, script: ReadonlyArray<Script.Reply>) =>
  Effect.gen(function* () {
    const upstream = yield* ScriptedUpstream.make({ script })
    const agent = AiAgent.layer({ name: "m", tools: [lookup], price: { input: 2, output: 10, cachedInput: 1 } })
    const layer = Engine.layerWith({ commitWindowMs: 0 }).pipe(
      Layer.provide(Process.layer),
      Layer.provide([Ids.layer, ResumePolicy.layerRestartIteration, MemoryStore.layer]),
      Layer.provide(agent),
      Layer.provide(provider(upstream.url.replace("/v1", ""))),
      Layer.provide(NodeHttpClient.layerUndici)
    )
    const engine = yield* Effect.provide(RunEngine.RunEngine, yield* Layer.build(layer))
    return { engine, upstream }
  })

/** A run from its beginning to its end. */
const ask = (provider: Provider, script: ReadonlyArray<Script.Reply>) =>
  Effect.gen(function* () {
    const { engine, upstream } = yield* engineAt(provider, script)
    const log = Chunk.toReadonlyArray(yield* Stream.runCollect(engine.stream({ message: "What is a tide?" })))
    const run = yield* engine.snapshot(log[0]?.runId ?? "")
    return { log, run, requests: upstream.requests }
  })

const usage = { inputTokens: 120, cachedInputTokens: 64, totalTokens: 160 }

const providers: ReadonlyArray<{
  readonly name: string
  readonly provider: Provider
  readonly secret: string
  readonly script: ReadonlyArray<Script.Reply>
  readonly usage: { readonly [key: string]: number }
  readonly endless: Script.Reply
  readonly cut: Script.Reply
  readonly faulty: Script.Reply
  readonly busy: Script.Reply
  readonly unknown: Script.Reply
  readonly toldOfUnknown: boolean
}> = [
  {
    name: "Google",
    provider: google,
    secret: "AIza-canary",
    script: [
      Script.reply([
        GoogleWire.thought("Let me "),
        GoogleWire.thought("see."),
        GoogleWire.text("I look "),
        GoogleWire.text("it up."),
        GoogleWire.call("lookup", { q: "tide" }, "c2lnbmVk"),
        GoogleWire.end()
      ]),
      Script.reply([GoogleWire.text("The tide "), GoogleWire.text("turns. 語"), GoogleWire.end()], { pieceBytes: 7 })
    ],
    usage: { ...usage, outputTokens: 30, reasoningTokens: 10 },
    endless: Script.reply([GoogleWire.text("on"), Script.gate("never")]),
    cut: Script.reply([GoogleWire.text("Half")]),
    // Of what is read together with the fault, its library gives out nothing.
    faulty: Script.reply([GoogleWire.text("Half"), Script.wait(100), Script.raw("data: {]\r\n\r\n")]),
    busy: GoogleWire.refused(503, "UNAVAILABLE"),
    unknown: Script.reply([GoogleWire.call("delete_all", {}), GoogleWire.end()]),
    // A call comes whole there, and its library gives out nothing of one that it can not read.
    toldOfUnknown: false
  },
  {
    name: "Amazon Bedrock",
    provider: bedrock,
    secret: "wJalr-canary",
    script: [
      BedrockWire.turn([
        { thinking: ["Let me ", "see."], signature: "c2lnbmVk" },
        { text: ["I look ", "it up."] },
        { call: "tooluse_1", name: "lookup", args: ['{"q":', '"tide"}'] }
      ]),
      BedrockWire.turn([{ text: ["The tide ", "turns. 語"] }], { pieceBytes: 7 })
    ],
    usage: { ...usage, outputTokens: 40 },
    endless: BedrockWire.begun([{ text: ["on"] }], [Script.gate("never")]),
    cut: BedrockWire.begun([{ text: ["Half"] }], []),
    faulty: BedrockWire.begun([{ text: ["Half"] }], [BedrockWire.exception("throttlingException")]),
    busy: BedrockWire.refused(503, "ServiceUnavailableException"),
    unknown: BedrockWire.turn([{ call: "tooluse_1", name: "delete_all", args: ["{}"] }]),
    toldOfUnknown: true
  }
]

describe.each(providers)("a model of $name", (given) => {
  const { provider, secret } = given

  it.scopedLive("thinks, says, calls a tool, and is told its result, with usage and cost", () =>
    Effect.gen(function* () {
      const { log, requests, run } = yield* ask(provider, given.script)
      expect([run.status, run.text, run.reasoning]).toEqual([
        "completed",
        "I look it up.The tide turns. 語",
        "Let me see."
      ])
      expect(run.toolCalls).toMatchObject([
        { toolName: "lookup", input: { q: "tide" }, state: "done", result: "the meaning of tide" }
      ])
      const turns = log.flatMap(({ event }) => (event.type === "model-end" ? [event] : []))
      expect(turns.map(({ finishReason }) => finishReason)).toEqual(["tool_calls", "stop"])
      const cost = (56 * 2 + 64 * 1 + (given.usage.outputTokens ?? 0) * 10) / 1e6
      for (const turn of turns) {
        expect(turn.usage).toMatchObject(given.usage)
        expect(turn.usage.costUsd).toBeCloseTo(cost, 10)
      }
      expect(requests).toHaveLength(2)
      // The signature went back with the turn that it belongs to, and into no event.
      expect(requests[1]?.text).toContain("c2lnbmVk")
      expect(requests[1]?.text).toContain("the meaning of tide")
      expect(JSON.stringify(log)).not.toContain("c2lnbmVk")
      expect(JSON.stringify([log, requests[1]?.body])).not.toContain(secret)
    })
  )

  it.scopedLive("closes its connection when the run is cancelled", () =>
    Effect.gen(function* () {
      const { engine, upstream } = yield* engineAt(provider, [given.endless])
      const { runId } = yield* engine.start({ message: "Go on" })
      yield* Stream.runDrain(Stream.takeUntil(engine.events(runId), ({ event }) => event.type === "text-delta"))
      const cancelled = yield* engine.cancel(runId)
      const request = yield* upstream.closed(0)
      expect([cancelled.status, request.aborted, (yield* engine.snapshot(runId)).text]).toEqual([
        "cancelled",
        true,
        "on"
      ])
    })
  )

  it.scopedLive("that breaks off, or tells a fault in its stream, fails the run, which can be resumed", () =>
    Effect.gen(function* () {
      for (const reply of [given.cut, given.faulty]) {
        const { run } = yield* ask(provider, [reply])
        expect([run.status, run.recoverable, run.text]).toEqual(["failed", true, "Half"])
        expect(JSON.stringify(run)).not.toContain(secret)
      }
    })
  )

  it.scopedLive("that is busy is asked again before anything was said", () =>
    Effect.gen(function* () {
      const { log, run } = yield* ask(provider, [given.busy, ...given.script.slice(1)])
      expect([run.status, run.text]).toEqual(["completed", "The tide turns. 語"])
      expect(log.filter(({ event }) => event.type === "model-retry")).toHaveLength(1)
      expect(JSON.stringify(log)).not.toContain(secret)
    })
  )

  it.scopedLive("may call a tool that nobody offered: it is told so, or asked again", () =>
    Effect.gen(function* () {
      const { log, run } = yield* ask(provider, [given.unknown, ...given.script.slice(1)])
      expect([run.status, run.text]).toEqual(["completed", "The tide turns. 語"])
      expect(run.toolCalls.map(({ state, toolName }) => [toolName, state])).toEqual(
        given.toldOfUnknown ? [["delete_all", "invalid"]] : []
      )
      expect(log.filter(({ event }) => event.type === "model-retry")).toHaveLength(given.toldOfUnknown ? 0 : 1)
    })
  )
})

describe("Google", () => {
  it.scopedLive("is asked in its own words, and its key goes into a header alone", () =>
    Effect.gen(function* () {
      const { requests } = yield* ask(google, providers[0]?.script ?? [])
      const [first, second] = requests
      expect(first?.path).toBe("/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse")
      expect(first?.headers["x-goog-api-key"]).toBe("AIza-canary")
      expect(first?.body).toMatchObject({
        contents: [{ role: "user", parts: [{ text: "What is a tide?" }] }],
        tools: { functionDeclarations: [{ name: "lookup", description: "Looks a word up" }] },
        ...thinking.google
      })
      // Results are objects there, whatever the tool said.
      expect(JSON.stringify(second?.body)).toContain('"response":{"output":"the meaning of tide"}')
    })
  )

  it.scopedLive("that will not answer has ended the turn, without content", () =>
    Effect.gen(function* () {
      const { run } = yield* ask(google, [Script.reply([GoogleWire.text("I "), GoogleWire.blocked])])
      expect([run.status, run.finishReason]).toEqual(["completed", "content_filter"])
    })
  )
})

describe("Amazon Bedrock", () => {
  it.scopedLive("is asked in its own words, with a signature made of the key", () =>
    Effect.gen(function* () {
      const { requests } = yield* ask(bedrock, providers[1]?.script ?? [])
      const [first] = requests
      expect(first?.path).toBe("/model/anthropic.claude-sonnet-4-20250514-v1:0/converse-stream")
      expect(first?.headers.authorization).toMatch(
        /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-central-1\/bedrock\/aws4_request, /
      )
      expect(first?.body).toMatchObject({
        messages: [{ role: "user", content: [{ text: "What is a tide?" }] }],
        toolConfig: { tools: [{ toolSpec: { name: "lookup" } }] },
        ...thinking.bedrock
      })
    })
  )
})
