import { DurableStream, type StreamResponse, stream } from "@durable-streams/client"
import { afterAll, beforeAll, expect, test } from "vitest"
import type { Envelope } from "../../src/domain/Envelope.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { eventually } from "./support/Waiting.js"
import * as World from "./support/World.js"

let world: World.World
beforeAll(async () => {
  world = await World.start({ limits: { heartbeatMs: 500 } })
})
afterAll(() => world.stop())

const path = (runId: string) => `/adapters/durable-streams/${runId}`
const address = (runId: string) => `http://runlet${path(runId)}`

/** The server has another address after each restart, and a reader has not. */
const here = (input: string | URL | Request, init?: RequestInit) =>
  fetch(String(input).replace("http://runlet", world.url()), init)

const offsetOf = (seq: number) => String(seq).padStart(16, "0")

const half = (message: string) =>
  Script.reply([
    Script.text("A whole "),
    Script.gate(message),
    Script.text("sentence."),
    Script.finish("stop"),
    Script.usage(10, 5),
    Script.done
  ])

const textOf = (envelopes: ReadonlyArray<Envelope>) =>
  envelopes.map(({ event }) => (event.type === "text-delta" ? event.delta : "")).join("")

/** Reads by the vendor's client, and comes again at its last offset when a stream breaks. */
const reader = (runId: string, live: "sse" | "long-poll") => {
  const seen: Array<Envelope> = []
  const offsets: Array<string> = []
  const asked: Array<string> = []
  let cut = (): void => undefined
  const follow = async (): Promise<void> => {
    const current: StreamResponse<Envelope> = await stream<Envelope>({
      url: address(runId),
      offset: offsets.at(-1) ?? "-1",
      live,
      json: true,
      warnOnHttp: false,
      backoffOptions: { initialDelay: 10, maxDelay: 50, multiplier: 1.3, maxRetries: 1000 },
      fetch: async (input, init) => {
        asked.push(String(input))
        const breaking = new AbortController()
        cut = () => breaking.abort(new TypeError("network error"))
        return here(input, { ...init, signal: breaking.signal })
      }
    })
    current.subscribeJson(({ items, offset }) => {
      seen.push(...items)
      offsets.push(offset)
    })
    await current.closed.catch(() => undefined)
    if (!current.streamClosed) return follow()
  }
  return { seen, offsets, asked, ended: follow(), cut: () => cut() }
}

test("an ended run is read whole, from any offset, and is closed", async () => {
  world.upstream.script("Tell me", [Script.answer("All ", "of ", "it.")])
  const { runId } = await world.client.start("Tell me")
  await world.client.settled(runId)
  const log = await world.client.log(runId)
  const whole = await stream<Envelope>({ url: address(runId), live: false, fetch: here })
  expect(await whole.json()).toEqual(log)
  expect([whole.streamClosed, whole.upToDate]).toEqual([true, true])
  const head = await DurableStream.head({ url: address(runId), fetch: here })
  expect(head).toMatchObject({
    exists: true,
    contentType: "application/json",
    offset: whole.offset,
    streamClosed: true
  })
  for (const live of [false, "long-poll", "sse"] as const) {
    for (const seq of [1, log.length - 1, log.length]) {
      const rest = await stream<Envelope>({ url: address(runId), offset: offsetOf(seq), live, fetch: here })
      expect(await rest.json()).toEqual(log.slice(seq))
      expect([rest.offset, rest.streamClosed]).toEqual([whole.offset, true])
    }
  }
}, 60_000)

test.each(["sse", "long-poll"] as const)(
  "a live run is followed over a broken connection and a server that dies, without a gap or a repetition (%s)",
  async (live) => {
    for (const dies of [false, true]) {
      const message = `Go on, ${live} ${dies}`
      world.upstream.script(message, [half(message), half(message)])
      const { runId } = await world.client.start(message)
      const reading = reader(runId, live)
      await eventually("half of it", () => (textOf(reading.seen) === "A whole " ? true : undefined))
      await eventually("a live request", () => (reading.asked.at(-1)?.includes(`live=${live}`) ? true : undefined))
      const before = reading.asked.length
      if (dies) await world.restart()
      else reading.cut()
      await eventually("a request at the last offset", () =>
        reading.asked.length > before && reading.asked.at(-1)?.includes(String(reading.offsets.at(-1)))
          ? true
          : undefined
      )
      if (dies)
        await world.client.until(
          runId,
          "another attempt",
          ({ attempt, status }) => attempt === 2 && status === "streaming"
        )
      await world.upstream.release(message)
      await reading.ended
      const { lastSeq } = await world.client.settled(runId)
      await eventually("the last message", () => (reading.seen.at(-1)?.seq === lastSeq ? true : undefined))
      expect(reading.seen).toEqual(await world.client.log(runId))
      expect(reading.seen.map(({ seq }) => seq)).toEqual(reading.seen.map((_, index) => index + 1))
      expect([...reading.offsets].sort()).toEqual(reading.offsets)
    }
  },
  60_000
)

test.each(["sse", "long-poll"] as const)(
  "a failure that can be resumed does not close the stream, and its reader sees what comes (%s)",
  async (live) => {
    const message = `Try again, ${live}`
    world.upstream.script(message, [
      Script.reply([Script.text("half"), Script.wait(30)], { framing: "close" }),
      Script.answer("Here it is.")
    ])
    const { runId } = await world.client.start(message)
    const failed = await world.client.settled(runId)
    expect([failed.status, failed.recoverable]).toEqual(["failed", true])
    const reading = reader(runId, live)
    await eventually("the failure", () => (reading.seen.at(-1)?.event.type === "error" ? true : undefined))
    const head = await here(address(runId), { method: "HEAD" })
    expect(head.headers.get("stream-closed")).toBeNull()
    ;(await world.client.resume({ runId }, failed.lastSeq)).close()
    await reading.ended
    const { lastSeq } = await world.client.settled(runId)
    await eventually("the last message", () => (reading.seen.at(-1)?.seq === lastSeq ? true : undefined))
    expect(reading.seen).toEqual(await world.client.log(runId))
    expect(textOf(reading.seen)).toContain("Here it is.")
  },
  60_000
)

test("answers say where the reader stands, in every way of reading", async () => {
  const message = "Half"
  world.upstream.script(message, [half(message)])
  const { runId } = await world.client.start(message)
  await world.client.until(runId, "some text", ({ text }) => text === "A whole ")
  const get = async (query: string, headers = {}) =>
    world.client.call("GET", `${path(runId)}${query}`, undefined, headers)
  const said = (answer: { status: number; headers: Headers }) => [
    answer.status,
    answer.headers.get("stream-next-offset"),
    answer.headers.get("stream-up-to-date"),
    answer.headers.get("stream-closed")
  ]
  const { lastSeq } = await world.client.snapshot(runId)
  const end = offsetOf(lastSeq)
  const open = await get("")
  expect(said(open)).toEqual([200, end, "true", null])
  expect([open.body.length, open.headers.get("content-type")]).toEqual([lastSeq, "application/json"])
  const etag = open.headers.get("etag") ?? ""
  expect((await get("?offset=-1", { "if-none-match": etag })).status).toBe(304)
  for (const offset of ["now", end]) {
    const here = await get(`?offset=${offset}`)
    expect([...said(here), here.text]).toEqual([200, end, "true", null, "[]"])
    const quiet = await get(`?offset=${offset}&live=long-poll&cursor=999999999`)
    expect(said(quiet)).toEqual([204, end, "true", null])
    expect(Number(quiet.headers.get("stream-cursor"))).toBeGreaterThan(999_999_999)
  }
  const waiting = get("?offset=now&live=long-poll")
  await world.upstream.release(message)
  await waiting
  const { lastSeq: last } = await world.client.settled(runId)
  const closed = offsetOf(last)
  expect(said(await get("?offset=-1", { "if-none-match": etag }))).toEqual([200, closed, "true", "true"])
  for (const offset of ["now", closed]) {
    expect(said(await get(`?offset=${offset}`))).toEqual([200, closed, "true", "true"])
    expect(said(await get(`?offset=${offset}&live=long-poll`))).toEqual([204, closed, "true", "true"])
    expect((await get(`?offset=${offset}&live=sse`)).text).toBe(
      `event: control\ndata: {"streamNextOffset":"${closed}","streamClosed":true,"upToDate":true}\n\n`
    )
  }
}, 60_000)

test("nothing can be written, and what is not there is told", async () => {
  const { runId } = await world.client.start("What is it?")
  for (const method of ["PUT", "POST", "DELETE", "PATCH"]) {
    const { headers, status } = await world.client.call(method, path(runId), method === "DELETE" ? undefined : {})
    expect([method, status, headers.get("allow")]).toEqual([method, 405, "GET, HEAD, OPTIONS"])
  }
  for (const query of ["?offset=1", `?offset=${offsetOf(999_999)}`, "?live=sse", "?offset=-1&live=true"]) {
    expect([query, (await world.client.call("GET", `${path(runId)}${query}`)).status]).toEqual([query, 400])
  }
  for (const query of ["", "?offset=now", "?offset=-1&live=sse"]) {
    const unknown = path("run_00000000-0000-7000-8000-000000000000")
    expect((await world.client.call("GET", `${unknown}${query}`)).status).toBe(404)
    expect((await world.client.call("HEAD", `${unknown}${query}`)).status).toBe(404)
  }
}, 60_000)
