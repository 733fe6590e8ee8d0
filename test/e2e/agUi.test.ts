import { HttpAgent } from "@ag-ui/client"
import { afterAll, beforeAll, expect, test } from "vitest"
import { resumableFetch } from "../../src/adapters/index.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { eventually } from "./support/Waiting.js"
import * as World from "./support/World.js"

let world: World.World
beforeAll(async () => {
  world = await World.start()
})
afterAll(() => world.stop())

/** The server has another address after each restart, and a page has not. */
const here = (url: string, init?: RequestInit) => fetch(url.replace("http://runlet", world.url()), init)

const turn = (reason: "stop" | "tool_calls", ...steps: ReadonlyArray<Script.Step>) =>
  Script.reply([...steps, Script.finish(reason), Script.usage(10, 5), Script.done])

let threads = 0
const open = (fetch: typeof here = here) => {
  const agent = new HttpAgent({
    url: "http://runlet/adapters/ag-ui",
    threadId: `thread ${++threads}`,
    fetch: resumableFetch({ fetch, delayMs: 20, maxTries: 500 })
  })
  const types: Array<string> = []
  agent.subscribe({ onEvent: ({ event }) => void types.push(event.type) })
  return { agent, types }
}

const say = (agent: HttpAgent, content: string) => {
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content })
  return agent.runAgent()
}

const textOf = (agent: HttpAgent) =>
  agent.messages
    .flatMap(({ content, role }) => (role === "assistant" && typeof content === "string" ? [content] : []))
    .join("")
const callsOf = (agent: HttpAgent) =>
  agent.messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []))
const runOf = async () => {
  const { body } = await world.client.call("GET", "/runs?limit=1")
  return world.client.snapshot(body.items[0].runId)
}

test("a thread is answered, with reasoning and a tool", async () => {
  world.upstream.script("Look it up", [
    turn(
      "tool_calls",
      Script.reasoning("Let me see."),
      Script.toolCall({ index: 0, id: "call_1", name: "lookup", args: '{"q":"x"}' })
    ),
    turn("stop", Script.reasoning("Now I know."), Script.text("It is "), Script.text("x."))
  ])
  const { agent, types } = open()
  await say(agent, "Look it up")
  const run = await runOf()
  expect([textOf(agent), run.status]).toEqual([run.text, "completed"])
  expect(agent.messages.map(({ role }) => role)).toEqual([
    "user",
    "reasoning",
    "assistant",
    "tool",
    "reasoning",
    "assistant"
  ])
  expect(callsOf(agent)).toMatchObject([{ id: "call_1", function: { name: "lookup", arguments: '{"q":"x"}' } }])
  expect([types[0], types.at(-1)]).toEqual(["RUN_STARTED", "RUN_FINISHED"])
  await say(agent, "And again?")
  expect((await runOf()).conversationId).toBe(run.conversationId)
}, 60_000)

test("a connection that breaks anywhere, and a server that dies, are not noticed", async () => {
  for (const dies of [false, true]) {
    const message = `Survive ${dies}`
    world.upstream.script(message, [
      Script.calls({ id: "call_1", name: "lookup", args: '{"q":"x"}' }),
      dies
        ? Script.reply([Script.text("Half a sen"), Script.gate("never")])
        : turn("stop", Script.text("A whole "), Script.gate(message), Script.text("sentence.")),
      turn("stop", Script.text("A whole "), Script.gate(message), Script.text("sentence."))
    ])
    let opened = 0
    let cut: (() => void) | undefined
    const { agent } = open(async (url, init) => {
      const abort = new AbortController()
      const response = await here(url, { ...init, signal: abort.signal })
      opened += 1
      cut = () => abort.abort(new TypeError("network error"))
      return response
    })
    const answered = say(agent, message)
    await eventually("some text", () => (textOf(agent) === (dies ? "Half a sen" : "A whole ") ? true : undefined))
    if (dies) await world.restart()
    else cut?.()
    await eventually("the next connection", () => (opened > 1 && textOf(agent) === "A whole " ? true : undefined))
    await world.upstream.release(message)
    await answered
    const run = await runOf()
    expect([textOf(agent), run.text, run.attempt]).toEqual(["A whole sentence.", "A whole sentence.", dies ? 2 : 1])
    expect(callsOf(agent).map(({ id }) => id)).toEqual(["call_1"])
    expect(agent.messages.filter(({ role }) => role === "tool")).toHaveLength(1)
  }
}, 60_000)

test("a tool that asks is an interrupt, and its answer goes on with the run", async () => {
  for (const approved of [true, false]) {
    const message = `Save, ${approved}`
    world.upstream.script(message, [
      Script.calls({ id: "call_1", name: "save_note", args: '{"doc":"d","text":"t"}' }),
      Script.answer("As you say.")
    ])
    const { agent } = open()
    await say(agent, message)
    const [interrupt] = agent.pendingInterrupts
    expect(interrupt).toMatchObject({ reason: "write", toolCallId: "call_1" })
    await agent.runAgent({
      resume: [{ interruptId: interrupt?.id ?? "", status: "resolved", payload: { approved } }]
    })
    const run = await runOf()
    expect([textOf(agent), run.toolCalls[0]?.state]).toEqual(["As you say.", approved ? "applied" : "rejected"])
    expect([agent.pendingInterrupts, callsOf(agent).length]).toEqual([[], 1])
  }
}, 60_000)

test("aborting stops the run on the server, and a failure is told", async () => {
  world.upstream.script("Go on and on", [Script.reply([Script.text("on"), Script.gate("never")])])
  const { agent } = open()
  const answered = say(agent, "Go on and on").catch(() => undefined)
  await eventually("some text", () => (textOf(agent) === "on" ? true : undefined))
  agent.abortRun()
  await answered
  await world.upstream.closed("Go on and on")
  const run = await runOf()
  expect((await world.client.settled(run.runId)).status).toBe("cancelled")
  world.upstream.script("Fail", [Script.body(401, "application/json", "{}")])
  const failing = open()
  await say(failing.agent, "Fail").catch(() => undefined)
  expect(failing.types.at(-1)).toBe("RUN_ERROR")
}, 60_000)
