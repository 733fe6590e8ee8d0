import { describe, expect, it } from "vitest"
import { type Client, RunletError } from "../../src/client/index.js"
import * as RunState from "../../src/domain/RunState.js"
import * as Sse from "../../src/http/Sse.js"
import { json, type Request, refusal } from "./support/FakeServer.js"
import { harness, memoryStorage, settle } from "./support/Harness.js"

const text = (client: Client) => {
  const { run } = client.getSnapshot()
  return run === undefined ? undefined : RunState.text(run)
}
const phase = (client: Client) => client.getSnapshot().phase
const words = (count: number, from = 0) => Array.from({ length: count }, (_, i) => `w${from + i} `)
const isStart = ({ path }: Request) => path === "/chat"
const accepted = (runId: string) =>
  json(202, { runId, conversationId: "conv_1", assistantMessageId: `answer_${runId}`, status: "queued" })

describe("showing a run", () => {
  it("begins with the snapshot and goes on behind it, to the end and no further", async () => {
    const { client, clock, phases, server, wake } = harness()
    server.begin("run_1")
    server.say("run_1", ...words(5))
    expect(await client.attach("run_1")).toBe(true)
    expect(text(client)).toBe(words(5).join(""))
    await settle()
    server.say("run_1", ...words(5, 5))
    await settle()
    expect([text(client), phase(client)]).toEqual([words(10).join(""), "streaming"])
    server.finish("run_1")
    await settle()
    expect(phases).toEqual(["idle", "resuming", "streaming", "completed"])
    expect(server.requests.map(({ path, after }) => [path, after])).toEqual([
      ["/runs/run_1", undefined],
      ["/runs/run_1/events", 8]
    ])
    wake()
    await clock.advance(600_000)
    expect(server.requests).toHaveLength(2)
    expect([server.connections.size, clock.pending]).toEqual([0, 0])
  })

  it("shows an ended run without opening a stream", async () => {
    const { client, server } = harness()
    server.begin("run_1")
    server.say("run_1", "done")
    server.finish("run_1")
    await client.attach("run_1")
    await settle()
    expect([text(client), phase(client)]).toEqual(["done", "completed"])
    expect(server.streams).toEqual([])
  })

  it("comes back by itself after a cut, with the cursor of the last event that it applied", async () => {
    const { client, clock, phases, server } = harness()
    server.create("run_1")
    await client.attach("run_1")
    await settle()
    server.append("run_1", { type: "run-status", status: "running" }, { type: "run-status", status: "streaming" })
    for (const after of [1, 3, 9, 10]) {
      server.say("run_1", ...words(after))
      await settle()
      server.cut()
      await settle()
      expect(phase(client)).toBe("interrupted")
      await clock.advance(1000)
    }
    server.finish("run_1")
    await settle()
    expect(server.streams.map(({ after }) => after)).toEqual([1, 4, 7, 16, 26])
    expect(text(client)).toBe([1, 3, 9, 10].flatMap((count) => words(count)).join(""))
    expect(phases.slice(1, 6)).toEqual(["resuming", "streaming", "interrupted", "resuming", "streaming"])
    expect([phase(client), server.mostOpen]).toEqual(["completed", 1])
  })

  it("keeps its cursor through connections that bring nothing", async () => {
    const { client, clock, server } = harness()
    server.begin("run_1")
    server.say("run_1", ...words(22))
    await client.attach("run_1")
    await settle()
    for (let cut = 0; cut < 4; cut++) {
      server.cut()
      await clock.advance(10_000)
    }
    expect(server.streams.map(({ after }) => after)).toEqual([25, 25, 25, 25, 25])
    server.say("run_1", "end")
    await settle()
    expect(text(client)).toBe(`${words(22).join("")}end`)
  })

  it("loses and repeats nothing, wherever in the bytes the connection is cut", async () => {
    const { client: _, clock, make, server } = harness()
    server.begin("run_1")
    server.say("run_1", "a", "語", "😀\n\n", "data: x\n")
    server.append(
      "run_1",
      { type: "tool-call-start", toolCallId: "c", toolName: "t", kind: "readonly" },
      {
        type: "run-resumed",
        attempt: 2,
        reason: "recovery",
        checkpointSeq: 3,
        textLength: 1,
        reasoningLength: 0,
        droppedToolCallIds: ["c"]
      },
      { type: "run-status", status: "streaming" }
    )
    server.say("run_1", "b", "c")
    server.finish("run_1")
    const whole = new TextEncoder().encode(
      Sse.preamble(1000) +
        server
          .log("run_1")
          .map((envelope) => Sse.frame(envelope.seq, JSON.stringify(envelope)))
          .join("")
    )
    const expected = server.view("run_1")
    for (let place = 0; place <= whole.length; place += 1) {
      const from = server.streams.length
      let first = true
      server.intercept = (request) => {
        if (request.path === "/chat") return accepted("run_1")
        if (!request.path.endsWith("/events") || !first) return undefined
        first = false
        return new Response(
          new ReadableStream<Uint8Array>({
            start: (controller) => controller.enqueue(whole.slice(0, place)),
            pull: (controller) => controller.error(new TypeError("terminated"))
          })
        )
      }
      const client = make({ storage: memoryStorage() })
      await client.start({ message: "hello" })
      await settle()
      const before = client.getSnapshot().cursor?.lastAppliedSeq
      await clock.advance(1000)
      expect(client.getSnapshot().run, `cut at ${place}`).toEqual(expected)
      const cursors = server.streams.slice(from).map(({ after }) => after)
      expect(cursors, `cut at ${place}`).toEqual(before === expected.seq ? [0] : [0, before])
      client.close()
    }
  }, 120_000)

  it("takes a connection without a sign of life for a dead one, and a quiet one for a living one", async () => {
    const { client, clock, phases, server } = harness()
    server.begin("run_1")
    await client.attach("run_1")
    await settle()
    // A tool takes ten minutes, and the server only says that it is there.
    for (let beats = 0; beats < 40; beats++) {
      await clock.advance(15_000)
      server.beat()
      await settle()
    }
    expect(server.streams).toHaveLength(1)
    expect(phases).toEqual(["idle", "resuming", "streaming"])
    // The network swallows everything from here, without a word.
    server.blackHole()
    server.say("run_1", "unheard")
    server.finish("run_1")
    await clock.advance(3 * 15_000)
    expect(server.streams).toHaveLength(2)
    expect([text(client), phase(client)]).toEqual(["unheard", "completed"])
    expect(phases.slice(2)).toEqual(["streaming", "interrupted", "resuming", "streaming", "completed"])
  })

  it("gives up a request that is never answered", async () => {
    const { client, clock, server } = harness()
    server.begin("run_1")
    let hang = true
    server.intercept = ({ path }) => (hang && path.endsWith("/events") ? new Promise(() => {}) : undefined)
    await client.attach("run_1")
    await clock.advance(15_000)
    expect(phase(client)).toBe("interrupted")
    hang = false
    await clock.advance(1000)
    expect(phase(client)).toBe("streaming")
    client.close()
  })

  it("waits longer and longer while there is no server, never in step with others, and one connection at a time", async () => {
    const all = Array.from({ length: 50 }, () => harness({ random: Math.random }))
    const times = all.map(() => [] as Array<number>)
    await Promise.all(
      all.map(async ({ client, clock, server }, i) => {
        server.begin("run_1")
        await client.attach("run_1")
        await settle()
        server.down = true
        server.intercept = () => undefined
        server.cut()
        await settle()
        const seen = server.streams.length
        for (let step = 0; step < 1200; step++) {
          await clock.advance(100)
          while (times[i] !== undefined && times[i].length < server.streams.length - seen) times[i].push(clock.now)
        }
        server.down = false
        await clock.advance(15_000)
        expect([phase(client), server.mostOpen]).toEqual(["streaming", 1])
        client.close()
      })
    )
    const firsts = times.map(([first]) => first ?? 0)
    const busiest = Math.max(...firsts.map((at) => firsts.filter((other) => Math.abs(other - at) <= 100).length))
    expect(busiest).toBeLessThan(30)
    for (const at of times) {
      expect(at.length).toBeGreaterThan(5)
      expect(at.length).toBeLessThan(45)
    }
  }, 120_000)

  it("waits as long as the server asks for", async () => {
    const { client, clock, server } = harness()
    server.begin("run_1")
    server.intercept = ({ path }) =>
      path.endsWith("/events") ? refusal(503, "Unavailable", { retryAfterMs: 20_000 }) : undefined
    await client.attach("run_1")
    await clock.advance(20_000)
    expect(server.streams).toHaveLength(1)
    server.intercept = () => undefined
    await clock.advance(1000)
    expect(phase(client)).toBe("streaming")
    client.close()
  })

  it("gives up what the server says can not be had, and says so, until it is asked for again", async () => {
    const { client, clock, server } = harness()
    server.begin("run_1")
    await client.attach("run_1")
    await settle()
    server.intercept = () => refusal(500, "Unavailable", { message: "What is stored of this is damaged." })
    server.cut()
    await clock.advance(2_000)
    expect(client.getSnapshot().error).toMatchObject({ _tag: "Unavailable", status: 500 })
    const asked = server.requests.length
    await clock.advance(600_000)
    expect(server.requests.length).toBe(asked)
    // Another attempt by hand ends the same way, at once.
    expect(await client.attach("run_1")).toBe(false)
    expect(client.getSnapshot().error?.message).toBe("What is stored of this is damaged.")
    const again = server.requests.length
    await clock.advance(600_000)
    expect(server.requests.length).toBe(again)
    client.close()
  })

  it("tries at once when the page is looked at or online again", async () => {
    const { client, server, wake } = harness()
    server.begin("run_1")
    await client.attach("run_1")
    await settle()
    server.cut()
    await settle()
    expect(phase(client)).toBe("interrupted")
    wake()
    await settle()
    expect(phase(client)).toBe("streaming")
    wake()
    await settle()
    expect(server.streams).toHaveLength(2)
    client.close()
  })

  it("reads the snapshot where the events are gone", async () => {
    const { client, clock, server } = harness()
    server.begin("run_1")
    await client.attach("run_1")
    await settle()
    server.cut()
    server.say("run_1", "compacted")
    server.finish("run_1")
    server.intercept = ({ path }) =>
      path.endsWith("/events") ? refusal(410, "Compacted", { snapshot: "/runs/run_1" }) : undefined
    await clock.advance(1000)
    expect([text(client), phase(client)]).toEqual(["compacted", "completed"])
    expect(server.streams).toHaveLength(2)
  })

  it("begins anew where the log is another one", async () => {
    const { client, clock, server } = harness()
    server.begin("run_1")
    server.say("run_1", ...words(9))
    await client.attach("run_1")
    await settle()
    server.cut()
    server.begin("run_1")
    server.say("run_1", "fresh")
    await clock.advance(5000)
    expect([text(client), phase(client)]).toEqual(["fresh", "streaming"])
    client.close()
  })

  it("closes a hole in the stream by the snapshot", async () => {
    const { client, server } = harness()
    server.begin("run_1")
    await client.attach("run_1")
    await settle()
    server.blackHole()
    server.say("run_1", "a", "b")
    for (const connection of server.connections) Object.assign(connection, { mute: false, cursor: 5 })
    server.say("run_1", "c")
    await settle()
    server.say("run_1", "d")
    await settle()
    expect(text(client)).toBe("abcd")
    expect(server.streams).toHaveLength(1)
    client.close()
  })

  it("asks for the snapshot when the server says that there is no more and it knows of no end", async () => {
    const { client, clock, server } = harness()
    server.begin("run_1")
    await client.attach("run_1")
    await settle()
    server.blackHole()
    server.finish("run_1")
    server.intercept = ({ path }) => (path.endsWith("/events") ? new Response(null, { status: 204 }) : undefined)
    server.cut()
    await clock.advance(1000)
    expect(phase(client)).toBe("completed")
  })

  it("goes on after the server has said good-bye in good order", async () => {
    const { client, clock, phases, server } = harness()
    server.begin("run_1")
    await client.attach("run_1")
    await settle()
    for (const connection of server.connections) connection.end()
    await clock.advance(1000)
    server.say("run_1", "on")
    await settle()
    expect([text(client), phase(client)]).toEqual(["on", "streaming"])
    expect(phases).toEqual(["idle", "resuming", "streaming", "interrupted", "resuming", "streaming"])
    client.close()
  })

  it("says that a run is not there, and asks no more", async () => {
    const { client, clock, server, wake } = harness()
    expect(await client.attach("run_404")).toBe(false)
    wake()
    await clock.advance(100_000)
    expect(client.getSnapshot()).toMatchObject({ phase: "failed", canContinue: false, error: { _tag: "NotFound" } })
    expect(server.requests).toHaveLength(1)
  })

  it("has one connection, however often it is told to show the run", async () => {
    const { client, server } = harness()
    server.begin("run_1")
    await Promise.all([client.attach("run_1"), client.attach("run_1")])
    await client.attach("run_1")
    await settle()
    expect([server.streams.length, server.connections.size]).toEqual([1, 1])
    server.begin("run_2")
    await Promise.all([client.attach("run_2"), client.attach("run_1"), client.attach("run_2")])
    await settle()
    expect([...server.connections].map(({ runId }) => runId)).toEqual(["run_2"])
    expect(client.getSnapshot().run?.runId).toBe("run_2")
    client.close()
    await settle()
    expect(server.connections.size).toBe(0)
  })

  it("gives the same state until something changes", async () => {
    const { client, server } = harness()
    server.begin("run_1")
    let calls = 0
    const stop = client.subscribe(() => calls++)
    expect(client.getSnapshot()).toBe(client.getSnapshot())
    await client.attach("run_1")
    await settle()
    const before = [calls, client.getSnapshot()]
    server.beat()
    await settle()
    expect([calls, client.getSnapshot()]).toEqual(before)
    stop()
    server.say("run_1", "a")
    await settle()
    expect(calls).toBe(before[0])
    client.close()
  })
})

describe("what a person asks for", () => {
  it("begins a run and shows it from its first event", async () => {
    const { client, phases, server } = harness()
    server.intercept = (request) => {
      if (!isStart(request)) return undefined
      server.begin("run_1")
      return accepted("run_1")
    }
    const run = await client.start({ message: "hello", modelId: "m" })
    expect(run.runId).toBe("run_1")
    await settle()
    server.say("run_1", "hi")
    await settle()
    expect([text(client), phase(client)]).toEqual(["hi", "streaming"])
    expect(phases).toEqual(["idle", "streaming"])
    expect(server.requests[0]).toMatchObject({
      method: "POST",
      body: { message: "hello", modelId: "m" },
      headers: { prefer: "respond-async", "content-type": "application/json" }
    })
    client.close()
  })

  it("sends a start that was not answered again under the same key, and another one under another", async () => {
    const { client, clock, server } = harness({ random: Math.random })
    const bodies: Array<unknown> = []
    let lost = 3
    server.intercept = (request) => {
      if (!isStart(request)) return undefined
      bodies.push(request.body)
      if (!server.logs.has("run_1")) server.begin("run_1")
      // It arrived, and the answer was lost on the way.
      if (lost-- > 0) throw new TypeError("fetch failed")
      return accepted("run_1")
    }
    const started = client.start({ message: "hello" })
    await settle()
    expect(client.getSnapshot().starting).toBe(true)
    await clock.advance(60_000)
    expect((await started).runId).toBe("run_1")
    expect(client.getSnapshot().starting).toBe(false)
    await client.start({ message: "hello" })
    const keys = server.requests.filter(isStart).map(({ headers }) => headers["idempotency-key"])
    expect(keys).toHaveLength(5)
    expect(new Set(keys.slice(0, 4)).size).toBe(1)
    expect(keys[4]).not.toBe(keys[0])
    for (const key of keys) expect(key).toMatch(/^[\x21-\x7e]{20,255}$/)
    client.close()
  })

  it("keeps the key of a start that it gave up, so that trying again can not begin a second run", async () => {
    const { client, clock, server } = harness({ random: Math.random })
    server.down = true
    const failed = client.start({ message: "hello" }).catch((error: unknown) => error)
    await clock.advance(120_000)
    const error = await failed
    expect(error).toBeInstanceOf(RunletError)
    expect(error).toMatchObject({ _tag: "Unreachable", status: 0 })
    server.down = false
    server.intercept = (request) => {
      if (!isStart(request)) return undefined
      server.begin("run_1")
      return accepted("run_1")
    }
    await client.start({ message: "hello" })
    const keys = server.requests.filter(isStart).map(({ headers }) => headers["idempotency-key"])
    expect(keys).toHaveLength(6)
    expect(new Set(keys).size).toBe(1)
    client.close()
  })

  it("tells why a start was refused, at once, and goes on showing what it showed", async () => {
    const { client, server } = harness()
    server.begin("run_1")
    await client.attach("run_1")
    await settle()
    server.intercept = (request) => (isStart(request) ? refusal(422, "Unprocessable", { path: "modelId" }) : undefined)
    const error = await client.start({ message: "x", modelId: "none" }).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ _tag: "Unprocessable", status: 422, body: { path: "modelId" } })
    expect(server.requests.filter(isStart)).toHaveLength(1)
    expect([phase(client), client.getSnapshot().starting]).toEqual(["streaming", false])
    client.close()
  })

  it("does not put a start on display that comes when something else was opened", async () => {
    const { client, server } = harness()
    let answer = (_: Response) => {}
    server.begin("run_2")
    server.intercept = (request) =>
      isStart(request)
        ? new Promise<Response>((resolve) => {
            answer = resolve
          })
        : undefined
    const started = client.start({ message: "slow" })
    await settle()
    await client.attach("run_2")
    server.begin("run_1")
    answer(accepted("run_1"))
    await started
    expect(client.getSnapshot().run?.runId).toBe("run_2")
    client.close()
  })

  it("never continues a failed run by itself, and continues it when told to", async () => {
    const { client, clock, phases, server, wake } = harness()
    server.begin("run_1")
    await client.attach("run_1")
    await settle()
    server.say("run_1", "half")
    server.fail("run_1")
    await settle()
    expect(client.getSnapshot()).toMatchObject({ phase: "failed", canContinue: true })
    await clock.advance(600_000)
    wake()
    await settle()
    expect(server.requests.every(({ method }) => method === "GET")).toBe(true)
    server.intercept = ({ path }) => {
      if (!path.endsWith("/resume")) return undefined
      server.append("run_1", {
        type: "run-resumed",
        attempt: 2,
        reason: "resume",
        checkpointSeq: 3,
        textLength: 0,
        reasoningLength: 0,
        droppedToolCallIds: []
      })
      return accepted("run_1")
    }
    await client.continue()
    await settle()
    server.append("run_1", { type: "run-status", status: "streaming" })
    server.say("run_1", "whole")
    await settle()
    expect([text(client), phase(client)]).toEqual(["whole", "streaming"])
    server.finish("run_1")
    await settle()
    expect(phases.slice(2)).toEqual(["streaming", "failed", "streaming", "completed"])
    expect(server.requests.find(({ path }) => path.endsWith("/resume"))?.body).toEqual({
      lastAppliedSeq: 5,
      assistantMessageId: "answer_run_1"
    })
  })

  it("finds out that another device continued the run when the page is looked at", async () => {
    const { client, server, wake } = harness()
    server.begin("run_1")
    server.fail("run_1")
    await client.attach("run_1")
    await settle()
    server.append("run_1", {
      type: "run-resumed",
      attempt: 2,
      reason: "resume",
      checkpointSeq: 3,
      textLength: 0,
      reasoningLength: 0,
      droppedToolCallIds: []
    })
    wake()
    await settle()
    expect(phase(client)).toBe("streaming")
    client.close()
  })

  it("stops, decides and regenerates the run on display", async () => {
    const { client, server } = harness()
    server.begin("run_1")
    await client.attach("run_1")
    await settle()
    server.intercept = ({ path }) => {
      if (path.endsWith("/approvals/apr_1"))
        return json(200, { approvalId: "apr_1", decision: "approved", by: "local", seq: 9 })
      if (path.endsWith("/cancel")) {
        server.append("run_1", {
          type: "cancelled",
          by: "user",
          usage: { inputTokens: 0, outputTokens: 0, totalTokens: 0 }
        })
        return json(200, { runId: "run_1", status: "cancelled", lastSeq: 4 })
      }
      if (path.endsWith("/regenerate")) {
        server.begin("run_2")
        return accepted("run_2")
      }
      return undefined
    }
    expect(await client.decide("apr_1", { decision: "approve", previewHash: "h" })).toMatchObject({ seq: 9 })
    expect(await client.cancel()).toMatchObject({ status: "cancelled" })
    await settle()
    expect(phase(client)).toBe("cancelled")
    await client.regenerate({ modelId: "other" })
    await settle()
    expect(client.getSnapshot()).toMatchObject({ phase: "streaming", cursor: { runId: "run_2" } })
    expect(server.requests.filter(({ method }) => method === "POST").map(({ path, body }) => [path, body])).toEqual([
      ["/runs/run_1/approvals/apr_1", { decision: "approve", previewHash: "h" }],
      ["/runs/run_1/cancel", {}],
      ["/runs/run_1/regenerate", { modelId: "other" }]
    ])
    client.close()
  })

  it("waits for a person and says so", async () => {
    const { client, server } = harness()
    server.begin("run_1")
    server.append(
      "run_1",
      { type: "run-status", status: "running" },
      { type: "run-status", status: "waiting_approval" }
    )
    await client.attach("run_1")
    await settle()
    expect(phase(client)).toBe("waiting-approval")
    client.close()
  })

  it("has nothing to stop when nothing is on display", async () => {
    const { client } = harness()
    await expect(client.cancel()).rejects.toMatchObject({ _tag: "NotFound" })
    await expect(client.continue()).rejects.toMatchObject({ _tag: "NotFound" })
  })

  it("takes an answer that is not the server's for none", async () => {
    const { client, server } = harness({ startRetries: 0 })
    server.intercept = () => new Response("<html>Bad gateway</html>", { status: 502 })
    await expect(client.start({ message: "x" })).rejects.toMatchObject({ _tag: "Unreachable", status: 502 })
  })
})

describe("signing in", () => {
  it("stops at the first refusal and goes on from its cursor with the new credential", async () => {
    let token = "old"
    const { client, clock, phases, server } = harness({ token: () => token })
    server.begin("run_1")
    server.intercept = ({ headers }) =>
      headers.authorization === `Bearer ${valid}` ? undefined : refusal(401, "Unauthorized")
    let valid = "old"
    await client.attach("run_1")
    await settle()
    server.say("run_1", "one ")
    await settle()
    valid = "new"
    server.cut()
    server.say("run_1", "two ")
    await clock.advance(600_000)
    expect(client.getSnapshot()).toMatchObject({ phase: "interrupted", signedOut: true })
    expect(server.streams).toHaveLength(2)
    token = "new"
    client.signedIn()
    await settle()
    server.say("run_1", "three")
    server.finish("run_1")
    await settle()
    expect([text(client), phase(client)]).toEqual(["one two three", "completed"])
    expect(server.streams.map(({ after }) => after)).toEqual([3, 4, 4])
    const coming = ["idle", "resuming", "streaming", "interrupted", "resuming", "interrupted"]
    expect(phases).toEqual([...coming, "resuming", "streaming", "completed"])
  })

  it("restores a run after signing in, when the page was loaded without a credential", async () => {
    const storage = memoryStorage()
    const first = harness({ storage })
    first.server.begin("run_1")
    await first.client.attach("run_1")
    first.client.close()
    const { client, server } = harness({ storage })
    server.begin("run_1")
    server.say("run_1", "hello")
    server.intercept = () => refusal(401, "Unauthorized")
    expect(await client.restore()).toBe(false)
    expect(client.getSnapshot().signedOut).toBe(true)
    server.intercept = () => undefined
    client.signedIn()
    await settle()
    expect([text(client), phase(client)]).toEqual(["hello", "streaming"])
    client.close()
  })
})

describe("after a reload", () => {
  const shown = async () => {
    const before = harness()
    before.server.begin("run_1")
    before.server.say("run_1", "half ")
    await before.client.attach("run_1")
    await settle()
    before.client.close()
    const reloaded = before.make()
    return { ...before, client: reloaded }
  }

  it("shows the run as it stands and goes on", async () => {
    const { client, server, storage } = await shown()
    expect(JSON.parse(storage.getItem("runlet.cursor") ?? "")).toEqual({
      runId: "run_1",
      lastAppliedSeq: 4,
      conversationId: "conv_1",
      assistantMessageId: "answer_run_1"
    })
    expect(await client.restore()).toBe(true)
    expect(text(client)).toBe("half ")
    await settle()
    server.say("run_1", "whole")
    await settle()
    expect([text(client), phase(client)]).toEqual(["half whole", "streaming"])
    client.close()
  })

  it("shows the latest run of the conversation, not one that it has left behind", async () => {
    const { client, server } = await shown()
    server.begin("run_2")
    server.begin("run_3", "conv_other")
    expect(await client.restore()).toBe(true)
    expect(client.getSnapshot().run?.runId).toBe("run_2")
    client.close()
  })

  it("shows nothing of another conversation, and nothing after it was cleared", async () => {
    const { client, server, storage } = await shown()
    const { length } = server.requests
    expect(await client.restore("conv_2")).toBe(false)
    expect(server.requests).toHaveLength(length)
    expect(await client.restore("conv_1")).toBe(true)
    client.clear()
    expect([phase(client), storage.values.size]).toEqual(["idle", 0])
    expect(await client.restore()).toBe(false)
  })

  it("forgets a run that is gone", async () => {
    const gone = await shown()
    gone.server.logs.clear()
    expect(await gone.client.restore()).toBe(false)
    expect([phase(gone.client), gone.storage.values.size]).toEqual(["idle", 0])
  })

  it("waits for a server that is not there yet", async () => {
    const { client, clock, server } = await shown()
    server.down = true
    const restored = client.restore()
    await clock.advance(5000)
    expect(phase(client)).toMatch(/interrupted|resuming/)
    server.down = false
    await clock.advance(15_000)
    expect(await restored).toBe(true)
    expect(text(client)).toBe("half ")
    client.close()
  })

  it("sends the next message at once, also while it still restores", async () => {
    const { client, server } = await shown()
    let listed = false
    server.intercept = (request) => {
      if (request.path === "/runs") {
        listed = true
        return new Promise(() => {})
      }
      if (!isStart(request)) return undefined
      server.begin("run_2")
      return accepted("run_2")
    }
    void client.restore()
    await client.start({ message: "next", conversationId: "conv_1" })
    await settle()
    expect(listed).toBe(true)
    expect(client.getSnapshot().run?.runId).toBe("run_2")
    expect([...server.connections].map(({ runId }) => runId)).toEqual(["run_2"])
    client.close()
  })

  it("does without a storage that is forbidden or full of something else", async () => {
    const forbidden = () => {
      throw new Error("forbidden")
    }
    const { client, server } = harness({ storage: { getItem: forbidden, setItem: forbidden, removeItem: forbidden } })
    server.begin("run_1")
    expect(await client.restore()).toBe(false)
    expect(await client.attach("run_1")).toBe(true)
    client.clear()
    const odd = harness()
    for (const text of ["", "null", "{", "7", '{"runId":3}']) {
      odd.storage.setItem("runlet.cursor", text)
      expect(await odd.client.restore()).toBe(false)
    }
  })

  it("opens the latest run of a conversation", async () => {
    const { client, server } = harness()
    server.begin("run_1", "conv_1")
    server.begin("run_2", "conv_2")
    expect(await client.open("conv_1")).toBe(true)
    expect(client.getSnapshot().run?.runId).toBe("run_1")
    expect(await client.open("conv_3")).toBe(false)
    client.close()
  })
})
