import { afterAll, beforeAll, expect, test } from "vitest"
import { ResumableHttpAgent } from "../../src/adapters/ResumableHttpAgent.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { cutting, turn } from "./support/Vendors.js"
import { eventually } from "./support/Waiting.js"
import * as World from "./support/World.js"

let world: World.World
beforeAll(async () => {
  world = await World.start()
})
afterAll(() => world.stop())

type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** The server has another address after each restart, and a page has not. */
const here: Fetch = (url, init) => fetch(url.replace("http://runlet", world.url()), init)

let threads = 0
const open = ({ fetch = here, threadId = `thread ${++threads}/é` }: { fetch?: Fetch; threadId?: string } = {}) => {
  const agent = new ResumableHttpAgent({
    url: "http://runlet/adapters/ag-ui",
    threadId,
    fetch,
    delayMs: 20,
    maxTries: 500
  })
  const types: Array<string> = []
  agent.subscribe({ onEvent: ({ event }) => void types.push(event.type) })
  return { agent, types }
}

const say = (agent: ResumableHttpAgent, content: string) => {
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content })
  return agent.runAgent()
}

const textOf = (agent: ResumableHttpAgent) =>
  agent.messages
    .flatMap(({ content, role }) => (role === "assistant" && typeof content === "string" ? [content] : []))
    .join("")
const callsOf = (agent: ResumableHttpAgent) =>
  agent.messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []))
const shows = (agent: ResumableHttpAgent, text: string) =>
  eventually(JSON.stringify(text), () => (textOf(agent) === text ? true : undefined))
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
    const { agent } = open({
      fetch: async (url, init) => {
        const abort = new AbortController()
        const response = await here(url, { ...init, signal: abort.signal })
        opened += 1
        cut = () => abort.abort(new TypeError("network error"))
        return response
      }
    })
    const answered = say(agent, message)
    await shows(agent, dies ? "Half a sen" : "A whole ")
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

test("connections that break all the time, each at another byte, come to the same messages", async () => {
  const words = Array.from({ length: 40 }, (_, n) => `word${n} `)
  for (const most of [61, 197, 599]) {
    const message = `Break after ${most}`
    world.upstream.script(message, [
      Script.calls(
        { id: "call_1", name: "lookup", args: '{"q":"x"}' },
        { id: "call_2", name: "lookup", args: '{"q":"語"}' }
      ),
      turn("stop", Script.reasoning("Well."), ...words.map((word) => Script.text(word)))
    ])
    let connections = 0
    // Each connection gives a little more than the one before, since one that brings no whole event brings nothing.
    const { agent } = open({ fetch: async (url, init) => cutting(await here(url, init), most + 16 * connections++) })
    await say(agent, message)
    expect(textOf(agent)).toBe(words.join(""))
    expect(callsOf(agent).map(({ id }) => id)).toEqual(["call_1", "call_2"])
    expect(agent.messages.filter(({ role }) => role === "tool")).toHaveLength(2)
    expect(connections).toBeGreaterThan(2)
  }
}, 60_000)

test("a page that is loaded anew attaches to what its thread is doing, over a broken connection and a restart", async () => {
  world.upstream.script("Go on", [
    Script.calls({ id: "call_1", name: "lookup", args: '{"q":"x"}' }),
    turn("stop", Script.text("One, "), Script.gate("two"), Script.text("two, "), Script.gate("never")),
    turn("stop", Script.text("One, two, "), Script.gate("three"), Script.text("three."))
  ])
  const first = open()
  const left = say(first.agent, "Go on")
  await shows(first.agent, "One, ")
  await first.agent.detachActiveRun()
  await left
  const { threadId } = first.agent

  let cut: (() => void) | undefined
  const { agent, types } = open({
    threadId,
    fetch: async (url, init) => {
      const abort = new AbortController()
      cut = () => abort.abort(new TypeError("network error"))
      return here(url, { ...init, signal: abort.signal })
    }
  })
  const attached = agent.connectAgent()
  await shows(agent, "One, ")
  cut?.()
  await world.upstream.release("two")
  await shows(agent, "One, two, ")
  await world.restart()
  await world.upstream.release("three")
  await attached
  expect(textOf(agent)).toBe("One, two, three.")
  expect(agent.messages.find(({ role }) => role === "user")).toMatchObject({ content: "Go on" })
  expect(callsOf(agent).map(({ id }) => id)).toEqual(["call_1"])
  expect([types[0], types[1], types.at(-1)]).toEqual(["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"])
  expect([(await runOf()).status, (await runOf()).attempt]).toEqual(["completed", 2])

  const later = open({ threadId })
  await later.agent.connectAgent()
  expect(textOf(later.agent)).toBe("One, two, three.")
}, 60_000)

test("there is nothing to attach to in an unknown thread, and a foreign conversation is none", async () => {
  for (const threadId of ["unheard of", "conv_00000000-0000-7000-8000-000000000000"]) {
    const { agent, types } = open({ threadId })
    expect(await agent.connectAgent()).toEqual({ result: undefined, newMessages: [] })
    expect([types, agent.isRunning]).toEqual([[], false])
  }
  expect(await open().agent.getCapabilities()).toMatchObject({ transport: { resumable: true } })
}, 60_000)

test("a tool that asks is an interrupt, and its answer goes on with the run", async () => {
  for (const approved of [true, false]) {
    for (const reloaded of [true, false]) {
      const message = `Save, ${approved}, ${reloaded}`
      world.upstream.script(message, [
        Script.calls({ id: "call_1", name: "save_note", args: '{"doc":"d","text":"t"}' }),
        Script.answer("As you say.")
      ])
      const { agent: before } = open()
      await say(before, message)
      if (reloaded) await world.restart()
      const agent = reloaded ? open({ threadId: before.threadId }).agent : before
      await agent.connectAgent()
      const [interrupt] = agent.pendingInterrupts
      expect(interrupt).toMatchObject({ reason: "write", toolCallId: "call_1" })
      await agent.runAgent({
        resume: [{ interruptId: interrupt?.id ?? "", status: "resolved", payload: { approved } }]
      })
      const run = await runOf()
      expect([textOf(agent), run.toolCalls[0]?.state]).toEqual(["As you say.", approved ? "applied" : "rejected"])
      expect([agent.pendingInterrupts, callsOf(agent).length]).toEqual([[], 1])
    }
  }
}, 60_000)

test("aborting stops the run on the server, also from a page that attached; leaving does not", async () => {
  for (const attached of [false, true]) {
    const message = `Go on and on, ${attached}`
    world.upstream.script(message, [Script.reply([Script.text("on"), Script.gate("never")])])
    const { agent: first } = open()
    let answered = say(first, message).catch(() => undefined)
    await shows(first, "on")
    const agent = attached ? first.clone() : first
    if (attached) {
      await first.detachActiveRun()
      // It shows what the first one has shown; whether it is attached it knows when it is told something itself.
      const told: Array<string> = []
      agent.subscribe({ onEvent: ({ event }) => void told.push(event.type) })
      answered = agent.connectAgent().catch(() => undefined)
      await eventually("an event of its own", () => (told.length > 0 ? true : undefined))
      await shows(agent, "on")
    }
    expect((await runOf()).status).toBe("streaming")
    agent.abortRun()
    await answered
    await world.upstream.closed(message)
    expect((await world.client.settled((await runOf()).runId)).status).toBe("cancelled")
  }
}, 60_000)

test("a failure is told", async () => {
  world.upstream.script("Fail", [Script.body(401, "application/json", "{}")])
  const failing = open()
  await say(failing.agent, "Fail").catch(() => undefined)
  expect(failing.types.at(-1)).toBe("RUN_ERROR")
}, 60_000)
