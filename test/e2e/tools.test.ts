import type { ServerResponse } from "node:http"
import Database from "better-sqlite3"
import { afterAll, beforeAll, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { ofType, typesOf } from "./support/Client.js"
import { hang, send } from "./support/ToolServer.js"
import { pause } from "./support/Waiting.js"
import * as World from "./support/World.js"

let world: World.World
beforeAll(async () => {
  world = await World.start({ limits: { maxIterations: 5, heartbeatMs: 200 } })
})
afterAll(() => world.stop())

const cut = Script.reply([Script.text("half"), Script.wait(30)], { framing: "close" })

const toldOf = (request: Script.UpstreamRequest) => Script.messagesOf(request).filter(({ role }) => role === "tool")

test("a run that pauses three times repeats nothing that it has done", async () => {
  const message = "Three writes"
  const write = (n: number) => ({ id: `call_w${n}`, name: "save_note", args: `{"doc":"d","text":"${n}"}` })
  world.upstream.script(message, [
    Script.calls({ id: "call_l", name: "lookup", args: '{"q":"once"}' }, write(1)),
    Script.calls(write(2)),
    Script.calls(write(3)),
    Script.answer("All saved.")
  ])
  const run = await world.client.start(message)
  for (let n = 0; n < 3; n++) {
    const pending = await world.client.waiting(run.runId)
    expect((await world.client.decide(run.runId, pending.approvalId, "approve")).status).toBe(200)
    await world.client.until(run.runId, "past it", ({ pendingApprovals }) =>
      pendingApprovals.every(({ approvalId }) => approvalId !== pending.approvalId)
    )
  }
  expect((await world.client.settled(run.runId)).text).toBe("All saved.")
  expect(world.tools.of(run.runId).map(({ phase, tool }) => `${tool} ${phase}`)).toHaveLength(7)
  expect(world.tools.of(run.runId, "execute")).toHaveLength(1)
  expect(world.tools.of(run.runId, "preview")).toHaveLength(3)
  expect(world.tools.of(run.runId, "commit")).toHaveLength(3)
  expect(world.upstream.asked(message)).toHaveLength(4)
  await world.check(run)
})

// Over PostgreSQL nobody can lock the database as a whole.
test.skipIf(!World.serving.inFile)(
  "a result that can not be stored at once is stored later, and the tool is not run again",
  async () => {
    const message = "While the database is locked"
    world.upstream.script(message, [
      Script.calls({ id: "call_k", name: "lookup", args: '{"q":"locked"}' }),
      Script.answer("Done.")
    ])
    const other = new Database(world.data)
    world.tools.on("lookup", "locked", async (_, response) => {
      other.exec("BEGIN IMMEDIATE")
      send(response, "found")
      await pause(1500)
      other.exec("COMMIT")
    })
    const run = await world.client.start(message)
    const end = await world.client.settled(run.runId)
    other.close()
    expect([end.status, end.toolCalls[0]?.result]).toEqual(["completed", "found"])
    expect(world.tools.of(run.runId)).toHaveLength(1)
    await world.check(run)
  }
)

test("a resumed run reuses the result of an equal call, and only of an equal one", async () => {
  const message = "The same call again"
  const call = (id: string, args: string) => ({ id, name: "read_doc", args })
  world.upstream.script(message, [
    Script.calls(call("call_1", '{"a":1,"b":{"x":1,"y":2},"c":[1,2],"d":null}')),
    cut,
    Script.calls(
      call("call_2", '{"d":null,"c":[1,2],"b":{"y":2,"x":1},"a":1.0}'),
      call("call_3", '{"a":"1","b":{"x":1,"y":2},"c":[1,2],"d":null}'),
      call("call_4", '{"a":1,"b":{"x":1,"y":2},"c":[2,1],"d":null}'),
      call("call_5", '{"a":1,"b":{"x":1,"y":2},"c":[1,2]}')
    ),
    Script.answer("Read.")
  ])
  const run = await world.client.start(message)
  const failed = await world.client.settled(run.runId)
  expect([failed.status, failed.recoverable]).toEqual(["failed", true])
  await (await world.client.resume(run, failed.lastSeq)).ended
  const end = await world.client.settled(run.runId)
  expect(end.status).toBe("completed")
  expect(end.toolCalls.map(({ source, toolCallId }) => [toolCallId, source])).toEqual([
    ["call_1", "executed"],
    ["call_2", "run"],
    ["call_3", "executed"],
    ["call_4", "executed"],
    ["call_5", "executed"]
  ])
  expect(end.toolCalls[1]?.result).toEqual(end.toolCalls[0]?.result)
  expect(world.tools.of(run.runId)).toHaveLength(4)
  await world.check(run)
})

test("another conversation reads anew", async () => {
  const answers = ["first edition", "second edition"]
  world.tools.on("read_doc", "seven", (_, response) => send(response, answers.shift()))
  for (const [message, result] of [
    ["Read number seven", "first edition"],
    ["Read number seven again", "second edition"]
  ] as const) {
    world.upstream.script(message, [
      Script.calls({ id: "call_7", name: "read_doc", args: '{"id":"seven"}' }),
      Script.answer("Read.")
    ])
    const run = await world.client.start(message)
    expect((await world.client.settled(run.runId)).toolCalls[0]?.result).toBe(result)
    await world.check(run, { followUp: false })
  }
})

test.each([
  ["never answers", hang],
  [
    "answers one byte at a time for ever",
    (_: unknown, response: ServerResponse) => {
      response.writeHead(200, { "content-type": "application/json" })
      const drip = setInterval(() => response.write(" "), 50)
      response.on("close", () => clearInterval(drip))
    }
  ]
])("a tool that %s is given up, and the run goes on", async (title, handler) => {
  const message = `A tool that ${title}`
  world.tools.on("nap", title, handler)
  world.upstream.script(message, [
    Script.calls({ id: "call_n", name: "nap", args: JSON.stringify({ title }) }),
    Script.answer("Without it.")
  ])
  const reading = await world.client.chat(message)
  const log = await reading.ended
  expect(ofType(log, "tool-call-result")).toMatchObject([{ ok: false, state: "done" }])
  expect(log.at(-1)?.event.type).toBe("finish")
  expect(reading.comments.length).toBeGreaterThan(2)
  expect((await world.tools.closed("nap", title)).aborted).toBe(true)
  await world.check(reading.headers.get("x-run-id") ?? "")
})

test.each([
  ["false", false],
  ["0", 0],
  ["an empty text", ""],
  ["null", null],
  ["an empty list", []],
  ["an empty object", {}],
  ["nothing", undefined]
])("a result of %s is a result, and stays one", async (title, value) => {
  const message = `The tool says ${title}`
  const mark = `says ${title}`
  world.tools.on("lookup", mark, (_, response) => send(response, value))
  world.upstream.script(message, [
    Script.calls({ id: "call_v", name: "lookup", args: JSON.stringify({ q: mark }) }),
    cut,
    Script.answer("I see.")
  ])
  const run = await world.client.start(message)
  const failed = await world.client.settled(run.runId)
  await (await world.client.resume(run, failed.lastSeq)).ended
  const end = await world.client.settled(run.runId)
  expect(end.status).toBe("completed")
  expect(end.toolCalls[0]).toMatchObject({ ok: true, state: "done", result: value ?? null })
  expect(world.tools.of(run.runId)).toHaveLength(1)
  for (const request of world.upstream.asked(message).slice(1)) {
    expect(toldOf(request).map(({ content }) => content)).toEqual([
      typeof value === "string" ? value : JSON.stringify(value ?? null)
    ])
  }
  await world.check(run, { followUp: title === "nothing" })
})

test.each([
  ["fails with a long message", (_: unknown, r: ServerResponse) => send(r, { message: "m".repeat(2_000_000) }, 422)],
  ["fails without a word", (_: unknown, r: ServerResponse) => send(r, undefined, 500)],
  ["leaks what it was sent", (_: unknown, r: ServerResponse) => send(r, { error: `Bearer ${World.toolSecret}` }, 400)],
  ["returns what it was sent", (_: unknown, r: ServerResponse) => send(r, { deep: [`Bearer ${World.toolSecret}`] })],
  ["cuts the connection", (_: unknown, r: ServerResponse) => void r.destroy()],
  [
    "redirects elsewhere",
    (_: unknown, r: ServerResponse) => void r.writeHead(302, { location: "http://127.0.0.1:1/" }).end()
  ],
  ["answers with bytes", (_: unknown, r: ServerResponse) => void r.end(Buffer.from([0xff, 0xfe, 0x00, 0x80]))],
  ["answers with half a JSON text", (_: unknown, r: ServerResponse) => void r.end('{"a":')]
])("whatever a tool does, the run goes on: it %s", async (title, handler) => {
  const message = `A tool: it ${title}`
  world.tools.on("lookup", title, handler)
  world.upstream.script(message, [
    Script.calls({ id: "call_x", name: "lookup", args: JSON.stringify({ q: title }) }),
    Script.answer("Anyway.")
  ])
  const run = await world.client.start(message)
  const end = await world.client.settled(run.runId)
  expect([end.status, end.text]).toEqual(["completed", "Anyway."])
  expect(end.toolCalls[0]?.state).toBe("done")
  expect(JSON.stringify(end).length).toBeLessThan(50_000)
  expect(toldOf(await world.upstream.received(message, 1))).toHaveLength(1)
  await world.check(run, { followUp: title.startsWith("cuts") })
})

test("a model that always calls is stopped at the limit", async () => {
  const message = 'For ever [rounds 1000 lookup {"q":"again"}]'
  const run = await world.client.start(message)
  const end = await world.client.settled(run.runId)
  expect(world.upstream.asked(message)).toHaveLength(5)
  expect(world.tools.of(run.runId).length).toBeLessThanOrEqual(5)
  expect(JSON.stringify([end.finishReason, end.error])).toContain("max_iterations")
  await world.check(run)
})

test("a lower limit can be asked for, a higher one can not", async () => {
  for (const [maxIterations, turns] of [
    [2, 2],
    [500, 5]
  ] as const) {
    const message = `Up to ${maxIterations} [rounds 1000 lookup {"q":"again"}]`
    const answer = await world.client.call("POST", "/chat", { message, limits: { maxIterations }, background: true })
    if (answer.status === 202) {
      await world.client.settled(answer.body.runId)
      expect(world.upstream.asked(message)).toHaveLength(turns)
    } else {
      expect([maxIterations, answer.status]).toEqual([500, 422])
    }
  }
})

test("the events of calls come when they happen, in their order", async () => {
  const message = "Text and calls in turn"
  world.tools.on("lookup", "long", (_, response) => void setTimeout(() => send(response, "found"), 1500))
  world.upstream.script(message, [
    Script.reply([
      Script.text("First "),
      Script.toolCall({ index: 0, id: "call_long", name: "lookup", args: '{"q":' }),
      Script.wait(100),
      Script.toolCall({ index: 0, args: '"long"}' }),
      Script.text("second"),
      Script.toolCall({ index: 1, id: "call_short", name: "lookup", args: '{"q":"short"}' }),
      Script.finish("tool_calls"),
      Script.done
    ]),
    Script.answer(" third.")
  ])
  const reading = await world.client.chat(message)
  const log = await reading.ended
  const at = (type: string, id: string) =>
    log.findIndex(({ event }) => event.type === type && "toolCallId" in event && event.toolCallId === id)
  const time = (type: string, id: string) => reading.times[at(type, id)] ?? Number.NaN
  expect(time("tool-start", "call_long") - time("tool-call-ready", "call_long")).toBeLessThan(1000)
  expect(time("tool-call-result", "call_long") - time("tool-start", "call_long")).toBeGreaterThan(1000)
  expect(time("tool-call-result", "call_short")).toBeLessThan(time("tool-call-result", "call_long"))
  for (const id of ["call_long", "call_short"]) {
    const order = ["tool-call-start", "tool-call-delta", "tool-call-ready", "tool-start", "tool-call-result"]
    const places = order.map((type) => at(type, id))
    expect(places).toEqual([...places].sort((a, b) => a - b))
    expect(places).not.toContain(-1)
  }
  expect(typesOf(log).indexOf("model-end")).toBeLessThan(typesOf(log).indexOf("tool-start"))
  await world.check(reading.headers.get("x-run-id") ?? "")
})
