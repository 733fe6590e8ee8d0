/** Providers with an interface of their own, as a configuration names them and the built server speaks to them. */
import { afterAll, beforeAll, expect, test } from "vitest"
import * as ScriptedUpstream from "../../src/testing/ScriptedUpstream.js"
import type * as Script from "../../src/testing/UpstreamScript.js"
import * as Messages from "../model/wire/Messages.js"
import * as Responses from "../model/wire/Responses.js"
import { ofType } from "./support/Client.js"
import { eventually } from "./support/Waiting.js"
import * as World from "./support/World.js"

type Upstream = Awaited<ReturnType<typeof ScriptedUpstream.start>>

let openai: Upstream
let anthropic: Upstream
let world: World.World

/** Whether the last thing that the model was told is the result of a call. */
const isAnswered = (request: Script.UpstreamRequest): boolean =>
  /function_call_output|tool_result/.test(
    JSON.stringify([...Responses.inputOf(request), ...Messages.messagesOf(request)].at(-1))
  )

const gpt: Script.Script = Responses.strict((request) => {
  const said = Responses.lastUserText(request)
  if (said.includes("[down]") && !isAnswered(request)) return Responses.refusal(503, null, "server_error")
  if (said.includes("[stall]")) return Responses.begun([{ text: ["Half "] }], () => [], { end: "open" })
  if (isAnswered(request)) return Responses.turn([{ text: ["GPT has it."] }])
  return Responses.turn([
    { reasoning: ["I look it up."], encrypted: "encrypted-thought" },
    { call: "call_1", name: "lookup", args: ['{"q":', '"tide"}'] },
    { call: "call_2", name: "no_such_tool", args: ["{}"] }
  ])
})

const claude: Script.Script = Messages.strict((request) => {
  const said = Messages.lastUserText(request)
  if (said.includes("[stall]")) return Messages.begun([{ text: ["Half "] }], [Messages.ping], { end: "open" })
  if (isAnswered(request)) return Messages.turn([{ text: ["Claude has it."] }])
  return Messages.turn([
    { thinking: ["I look it up."], signature: "sig:I look it up." },
    { call: "toolu_1", name: "lookup", args: ['{"q":', '"tide"}'] },
    { call: "toolu_2", name: "lookup", args: ['{"q":'] }
  ])
})

beforeAll(async () => {
  openai = await ScriptedUpstream.start({ script: gpt })
  anthropic = await ScriptedUpstream.start({ script: claude })
  const price = { input: 1, output: 10, cachedInput: 0.5 }
  world = await World.start({
    models: {
      gpt: { provider: "openai", model: "gpt-5", baseUrl: openai.url, apiKey: World.apiKey, price, fallback: "claude" },
      claude: {
        provider: "anthropic",
        model: "claude-sonnet-4-5",
        baseUrl: anthropic.url,
        apiKey: World.apiKey,
        price: { input: 3, output: 30, cachedInput: 0.3 }
      }
    }
  })
})
afterAll(async () => {
  await world.stop()
  await Promise.all([openai.stop(), anthropic.stop()])
})

const run = async (message: string, modelId: string) => {
  const started = await world.client.start({ message, modelId, enableThinking: true })
  const end = await world.client.settled(started.runId)
  const log = await world.client.log(started.runId)
  expect(end.status, JSON.stringify(end.error)).toBe("completed")
  return { runId: started.runId, end, log }
}

const asked = (upstream: Upstream, message: string) =>
  upstream.requests.filter(({ text }) => text.includes(JSON.stringify(message).slice(1, -1)))

test("a run with OpenAI's Responses interface: tools, reasoning, usage and cost; the rest goes back to the provider alone", async () => {
  const { end, log } = await run("The tide?", "gpt")
  expect([end.text, end.reasoning]).toEqual(["GPT has it.", "I look it up."])
  expect(end.toolCalls.map(({ state, toolCallId }) => [toolCallId, state])).toEqual([
    ["call_1", "done"],
    ["call_2", "invalid"]
  ])
  expect(end.usage).toEqual({
    inputTokens: 240,
    cachedInputTokens: 128,
    outputTokens: 80,
    reasoningTokens: 32,
    totalTokens: 320,
    costUsd: expect.closeTo((112 * 1 + 128 * 0.5 + 80 * 10) / 1e6, 9)
  })
  expect(JSON.stringify(log)).not.toContain("encrypted-thought")
  expect(asked(openai, "The tide?")[1]?.text).toContain("encrypted-thought")
})

test("a run with Anthropic's Messages interface: tools, signed reasoning, usage and cost", async () => {
  const { end, log } = await run("The ebb?", "claude")
  expect([end.text, end.reasoning]).toEqual(["Claude has it.", "I look it up."])
  expect(end.toolCalls.map(({ state, toolCallId }) => [toolCallId, state])).toEqual([
    ["toolu_1", "done"],
    ["toolu_2", "invalid"]
  ])
  expect(end.usage).toMatchObject({
    inputTokens: 240,
    cachedInputTokens: 128,
    outputTokens: 80,
    costUsd: expect.closeTo((112 * 3 + 128 * 0.3 + 80 * 30) / 1e6, 9)
  })
  expect(JSON.stringify(log)).not.toContain("sig:")
  expect(asked(anthropic, "The ebb?")[1]?.text).toContain("sig:I look it up.")
})

test("a chain goes over to another provider and back, and each gets its own things back alone", async () => {
  const message = "The flood? [down]"
  const first = await run(message, "gpt")
  // The first turn is Claude's; the second one is GPT's again.
  expect(first.end.text).toBe("GPT has it.")
  expect(asked(anthropic, message)).toHaveLength(1)
  const [, second] = asked(openai, message)
  expect(second?.text).not.toContain("sig:")
  expect(first.end.usage.costUsd).toBeCloseTo((56 * 3 + 64 * 0.3 + 40 * 30 + 56 * 1 + 64 * 0.5 + 40 * 10) / 1e6, 9)

  const conversationId = first.end.conversationId
  const next = await world.client.start({
    message: "And now?",
    modelId: "claude",
    enableThinking: true,
    conversationId
  })
  expect((await world.client.settled(next.runId)).status).toBe("completed")
  expect(asked(anthropic, "And now?")[0]?.text).not.toContain("encrypted-thought")
})

test.each(["gpt", "claude"])("cancelling a run closes the socket to the provider: %s", async (modelId) => {
  const upstream = modelId === "gpt" ? openai : anthropic
  const message = `Never ends ${modelId} [stall]`
  const { runId } = await world.client.start({ message, modelId })
  await world.client.until(runId, "in the middle of its text", ({ text }) => text === "Half ")
  await world.client.cancel(runId)
  await eventually("the socket to be closed", () => asked(upstream, message)[0]?.aborted === true || undefined)
  const end = await world.client.snapshot(runId)
  expect([end.status, end.text]).toEqual(["cancelled", "Half "])
  expect(ofType(await world.client.log(runId), "cancelled")).toHaveLength(1)
})
