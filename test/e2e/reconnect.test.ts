import { request as httpRequest } from "node:http"
import { EventSource } from "eventsource"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { Envelope } from "../../src/domain/Envelope.js"
import * as RunState from "../../src/domain/RunState.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { ofType, type Reading, typesOf } from "./support/Client.js"
import * as Proxy from "./support/Proxy.js"
import { hang } from "./support/ToolServer.js"
import { eventually, pause } from "./support/Waiting.js"
import * as World from "./support/World.js"

let world: World.World
beforeAll(async () => {
  world = await World.start({ limits: { maxStreamsPerUser: 1000 } })
})
afterAll(() => world.stop())

const pieces = (count: number, waitMs?: number) =>
  Array.from({ length: count }, (_, i) => [
    Script.text(`${i} `),
    ...(waitMs === undefined ? [] : [Script.wait(waitMs)])
  ]).flat()

const whole = (...steps: ReadonlyArray<Script.Step>) => Script.reply([...steps, Script.finish("stop"), Script.done])

const seqs = (envelopes: ReadonlyArray<Envelope>) => envelopes.map(({ seq }) => seq)
const range = (from: number, to: number) => Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i)
const runOf = (reading: Reading) => reading.headers.get("x-run-id") ?? ""

test("every viewer sees each event behind its cursor once, whenever it comes", async () => {
  const message = "Many viewers"
  world.upstream.script(message, [
    Script.reply([
      pieces(400, 1),
      Script.toolCall({ index: 0, id: "call_v", name: "save_note", args: '{"doc":"a","text":"b"}' }),
      Script.finish("tool_calls"),
      Script.done
    ]),
    whole(...pieces(100, 1))
  ])
  const run = await world.client.start(message)
  const readings: Array<[number, Promise<Reading>]> = []
  for (let i = 0; i < 25; i++) {
    const { lastSeq } = await world.client.snapshot(run.runId)
    const after = Math.floor(Math.random() * (lastSeq + 1))
    readings.push([after, world.client.events(run.runId, after)])
    await pause(Math.random() * 30)
  }
  const approval = await world.client.waiting(run.runId)
  await world.client.decide(run.runId, approval.approvalId, "approve")
  const end = await world.client.until(run.runId, "completed", ({ status }) => status === "completed")
  for (const [after, reading] of readings) {
    const seen = await (await reading).ended
    expect(seqs(seen)).toEqual(range(after + 1, end.lastSeq))
    expect(seen.at(-1)?.event.type).toBe("finish")
  }
  await world.check(run)
}, 90_000)

test("an event source that is cut off twice goes on by itself and misses nothing", async () => {
  const message = "For an event source"
  world.upstream.script(message, [whole(...pieces(120, 10))])
  const run = await world.client.start(message)
  const proxy = await Proxy.start(world.url())
  const seen: Array<number> = []
  let cuts = 0
  const source = new EventSource(`${proxy.url}/runs/${run.runId}/events`)
  const over = new Promise<void>((resolve) => {
    source.onmessage = ({ data, lastEventId }) => {
      const envelope: Envelope = JSON.parse(data)
      expect(lastEventId).toBe(String(envelope.seq))
      seen.push(envelope.seq)
      if (cuts < 2 && seen.length === (cuts + 1) * 20) {
        cuts++
        proxy.cut()
      }
      if (envelope.event.type === "finish") resolve()
    }
  })
  await over
  expect(seen).toEqual(range(1, seen.length))
  const cursors = proxy.requests.map(({ headers }) => headers["last-event-id"])
  expect(cursors.slice(0, 3)).toEqual([undefined, ...cursors.slice(1, 3)])
  expect(cursors.slice(1, 3).every((cursor) => Number(cursor) >= 20)).toBe(true)
  // The server has closed the stream; the answer to the next request tells the event source to stop.
  await eventually("the event source to stop", () => (source.readyState === EventSource.CLOSED ? true : undefined))
  const { length } = proxy.requests
  await pause(1500)
  expect(proxy.requests).toHaveLength(length)
  expect(length).toBeLessThanOrEqual(4)
  source.close()
  await proxy.stop()
  await world.check(run)
}, 60_000)

test("two resumes at once, or a resume and a view, show the same run and make one attempt", async () => {
  const message = "Resumed twice"
  world.upstream.script(message, [
    Script.reply([Script.text("cut"), Script.wait(30)], { framing: "close" }),
    whole(...pieces(50, 5))
  ])
  const run = await world.client.start(message)
  const { lastSeq } = await world.client.settled(run.runId)
  const all = await Promise.all([
    ...Array.from({ length: 10 }, () => world.client.resume(run, lastSeq)),
    world.client.events(run.runId, lastSeq - 1)
  ])
  const logs = await Promise.all(all.map(({ ended }) => ended))
  const end = await world.client.settled(run.runId)
  expect([end.status, end.attempt]).toEqual(["completed", 2])
  for (const log of logs.slice(0, -1)) expect(seqs(log)).toEqual(range(lastSeq + 1, end.lastSeq))
  expect(world.upstream.asked(message)).toHaveLength(2)
  const joined = [...(await world.client.log(run.runId)).slice(0, lastSeq), ...logs.slice(0, 2).flat()]
  expect(RunState.text(RunState.reduceAll(RunState.empty(run.runId), joined))).toBe(end.text)
  await world.check(run)
})

test("a page that comes while a tool runs finds everything that was shown", async () => {
  const message = "A page in the middle"
  world.tools.on("lookup", "forever", hang)
  world.upstream.script(message, [
    Script.reply([
      Script.reasoning("thinking"),
      Script.text("half"),
      Script.toolCall({ index: 0, id: "call_f", name: "lookup", args: '{"q":"forever"}' }),
      Script.finish("tool_calls"),
      Script.done
    ])
  ])
  const run = await world.client.start(message)
  await world.tools.received("lookup", "forever")
  const shown = await world.client.snapshot(run.runId)
  expect([shown.status, shown.reasoning, shown.text]).toEqual(["running", "thinking", "half"])
  expect(shown.toolCalls.map(({ state, title }) => [state, title])).toEqual([["running", "Looking up"]])
  const asked = Date.now()
  const reading = await world.client.events(run.runId)
  await reading.until("the start of the tool", ({ type }) => type === "tool-start")
  expect(Date.now() - asked).toBeLessThan(10_000)
  reading.close()
  await world.client.cancel(run.runId)
  await world.check(run)
})

test("a reader that is cut off before any event comes back with the cursor that it had", async () => {
  const message = "Cut before anything"
  world.upstream.script(message, [whole(...pieces(30), Script.gate("cut-before"), ...pieces(10))])
  const run = await world.client.start(message)
  const { lastSeq } = await world.client.until(run.runId, "at 30", ({ text }) => text.endsWith("29 "))
  const first = await world.client.events(run.runId, lastSeq)
  expect(first.status).toBe(200)
  first.close()
  const second = await world.client.events(run.runId, lastSeq)
  await world.upstream.release("cut-before")
  const seen = await second.ended
  expect(seqs(seen)[0]).toBe(lastSeq + 1)
  expect(first.envelopes).toEqual([])
  await world.check(run)
})

test.each([1, 3, 9, 10])("what was read before and after a cut behind event %i is the whole log", async (cut) => {
  const message = `Cut after ${cut}`
  world.upstream.script(message, [whole(...pieces(20, 5))])
  const reading = await world.client.chat(message)
  await eventually("the cut", () => (reading.envelopes.length >= cut ? true : undefined))
  reading.close()
  const before = reading.envelopes.slice(0, cut)
  const rest = await world.client.open(`/runs/${runOf(reading)}/events`, {
    headers: { "last-event-id": reading.ids[cut - 1] ?? "" }
  })
  const all = [...before, ...(await rest.ended)]
  expect(seqs(all)).toEqual(range(1, all.length))
  expect(all).toEqual(await world.client.log(runOf(reading)))
  await world.check(runOf(reading), { followUp: cut === 10 })
})

/** Each way in which a run can end. */
const endings = async () => {
  world.upstream.script("Fails for good", [Script.body(401, "application/json", '{"error":{"message":"no"}}')])
  world.upstream.script("Fails for now", [Script.reply([Script.text("half"), Script.wait(30)], { framing: "close" })])
  const runs = {
    completed: await world.client.start("Ends well"),
    failed: await world.client.start("Fails for good"),
    recoverable: await world.client.start("Fails for now"),
    cancelled: await world.client.start("Is stopped [hang]")
  }
  await world.upstream.received("Is stopped [hang]")
  await world.client.cancel(runs.cancelled.runId)
  return runs
}

describe("a run that has ended", () => {
  test("shows what is left and closes, or says that nothing is", async () => {
    for (const [name, { runId }] of Object.entries(await endings())) {
      const { lastSeq, status } = await world.client.settled(runId)
      expect(status).toBe(name === "recoverable" ? "failed" : name)
      const asked = Date.now()
      const all = await (await world.client.events(runId, 0)).ended
      expect(Date.now() - asked).toBeLessThan(10_000)
      expect(seqs(all)).toEqual(range(1, lastSeq))
      const none = await world.client.call("GET", `/runs/${runId}/events?after=${lastSeq}`)
      expect([none.status, none.text]).toEqual([204, ""])
      await world.check(runId)
    }
  })

  test("makes a bare event source stop asking", async () => {
    const message = "Soon over"
    const run = await world.client.start(message)
    const { lastSeq } = await world.client.settled(run.runId)
    const proxy = await Proxy.start(world.url())
    const source = new EventSource(`${proxy.url}/runs/${run.runId}/events?after=${lastSeq}`)
    await eventually("the event source to stop", () => (source.readyState === EventSource.CLOSED ? true : undefined))
    await pause(1500)
    expect(proxy.requests).toHaveLength(1)
    source.close()
    await proxy.stop()
    expect(world.upstream.asked(message)).toHaveLength(1)
  })

  test("has one terminal event, and open parts are closed before it", async () => {
    const open = [Script.text("text "), Script.toolCall({ index: 0, id: "call_o", name: "lookup", args: '{"q":' })]
    const error = Script.data({ error: { type: "overloaded_error", message: "busy" } })
    world.upstream.script("Error in a call", [Script.reply([...open, error])])
    world.upstream.script("Cancel in a call", [Script.reply(open, { end: "open" })])
    world.tools.on("lookup", "crash", (_, response) => void response.destroy())
    world.upstream.script("A tool that crashes", [
      Script.calls({ id: "call_c", name: "lookup", args: '{"q":"crash"}' }),
      Script.answer("So be it.")
    ])
    const failed = await world.client.start("Error in a call")
    const cancelled = await world.client.start("Cancel in a call")
    const crashed = await world.client.start("A tool that crashes")
    await world.client.until(cancelled.runId, "calling", ({ toolCalls }) => toolCalls.length === 1)
    await world.client.cancel(cancelled.runId)
    for (const [{ runId }, last] of [
      [failed, "error"],
      [cancelled, "cancelled"],
      [crashed, "finish"]
    ] as const) {
      await world.client.settled(runId)
      const log = await world.client.log(runId)
      const terminal = typesOf(log).filter((type) => ["finish", "cancelled", "error"].includes(type))
      expect(terminal).toEqual([last])
      expect(log.at(-1)?.event.type).toBe(last)
      expect(ofType(log, "tool-call-result")).toHaveLength(1)
      await world.check(runId)
    }
  })
})

/** A request as it is, with headers that a better client would refuse to send. Status 0: the connection was reset. */
const raw = (path: string, headers: Record<string, string | Array<string>>) =>
  new Promise<{ readonly status: number; readonly text: string }>((resolve) => {
    const url = new URL(world.url())
    let text = ""
    const sent = httpRequest({ host: url.hostname, port: url.port, path, headers }, (response) => {
      response.setEncoding("utf8")
      response.on("data", (piece) => {
        text += piece
        // A stream that lives on has shown that it was accepted.
        if (text.includes('"seq":1,')) sent.destroy()
      })
      response.on("close", () => resolve({ status: response.statusCode ?? 0, text }))
    })
    sent.on("error", () => resolve({ status: 0, text }))
    sent.end()
  })

describe("a cursor that is none", () => {
  const texts = ["abc", "-1", "+1", "1.5", "1e3", "7 7", "0x10", "007", "99999999999999999999", "NaN", "1,2", "é"]
  const values = ["7", "", {}, [], true, -1, 1.5, 1e21]

  test("is refused at once, for live and for ended runs", async () => {
    const live = await world.client.start("Goes on [slow 1000 50]")
    const over = await world.client.start("Is over")
    const { lastSeq } = await world.client.settled(over.runId)
    await world.client.until(live.runId, "streaming", ({ text }) => text !== "")
    for (const { runId } of [live, over]) {
      const path = `/runs/${runId}/events`
      for (const text of [...texts, String(lastSeq + 100_000)]) {
        const byHeader = await raw(path, { "last-event-id": Buffer.from(text, "utf8").toString("latin1") })
        expect([text, byHeader.status]).toEqual([text, 400])
        expect(JSON.parse(byHeader.text)._tag).toBe("InvalidCursor")
        const byParameter = await world.client.call("GET", `${path}?after=${encodeURIComponent(text)}`)
        expect([text, byParameter.status]).toEqual([text, 400])
      }
      expect((await raw(path, { "last-event-id": ["1", "2"] })).status).toBe(400)
      // Headers of this size are refused before they are read to their end.
      expect([400, 431, 0]).toContain((await raw(path, { "last-event-id": "9".repeat(65_536) })).status)
      for (const lastAppliedSeq of [...values, lastSeq + 100_000]) {
        const answer = await world.client.call("POST", "/chat", { resume: { runId, lastAppliedSeq } })
        expect([lastAppliedSeq, answer.status]).toEqual([lastAppliedSeq, 400])
      }
    }
    await world.client.cancel(live.runId)
    await world.check(live)
    await world.check(over)
  })

  test("is the start when it is empty, and the header wins over the address", async () => {
    const { runId } = await world.client.start("From the start")
    const { lastSeq } = await world.client.settled(runId)
    for (const headers of [{}, { "last-event-id": "" }]) {
      const all = await (await world.client.open(`/runs/${runId}/events`, { headers })).ended
      expect(seqs(all)).toEqual(range(1, lastSeq))
    }
    const rest = await world.client.open(`/runs/${runId}/events?after=1`, { headers: { "last-event-id": "3" } })
    expect(seqs(await rest.ended)).toEqual(range(4, lastSeq))
    for (const lastAppliedSeq of [undefined, null, 0]) {
      const reading = await world.client.open("/chat", { body: { resume: { runId, lastAppliedSeq } } })
      expect(seqs(await reading.ended)).toEqual(range(1, lastSeq))
    }
  })
})
