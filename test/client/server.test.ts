/** The client against the built server, through a network that cuts, stalls and swallows. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest"
import { makeApi } from "../../src/client/Api.js"
import { type Client, type ClientOptions, makeClient, type Phase, RunletError } from "../../src/client/index.js"
import * as RunState from "../../src/domain/RunState.js"
import * as Snapshot from "../../src/domain/Snapshot.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { eventually, pause } from "../e2e/support/Waiting.js"
import * as World from "../e2e/support/World.js"
import { memoryStorage } from "./support/Harness.js"
import * as Proxy from "./support/Proxy.js"

const heartbeatMs = 1000

let world: World.World
let proxy: Proxy.Proxy
let clients: Array<Watched> = []
beforeAll(async () => {
  world = await World.start({
    limits: { heartbeatMs },
    users: { alice: "token-of-alice", bob: "token-of-bob" }
  })
  proxy = await Proxy.start(world.url())
})
afterEach(() => {
  for (const { client } of clients) client.close()
  clients = []
  proxy.refuse(false)
  proxy.cutAfter(Number.POSITIVE_INFINITY)
})
afterAll(async () => {
  await proxy.stop()
  await world.stop()
})

interface Watched {
  readonly client: Client
  readonly phases: Array<Phase>
  /** Every text that was shown, one after the other. */
  readonly texts: Array<string>
  /** The last event that was applied at each interruption. */
  readonly interruptions: Array<number>
  readonly storage: ReturnType<typeof memoryStorage>
}

const credentials = () => ({ baseUrl: proxy.url, token: () => "token-of-alice" })

const watched = (options: ClientOptions = {}): Watched => {
  const storage = memoryStorage()
  const client = makeClient({
    ...credentials(),
    heartbeatMs,
    maxDelayMs: 1000,
    storage,
    ...options
  })
  const phases: Array<Phase> = ["idle"]
  const texts: Array<string> = []
  const interruptions: Array<number> = []
  client.subscribe(() => {
    const { phase, run } = client.getSnapshot()
    if (phase === "interrupted" && phase !== phases.at(-1)) interruptions.push(run?.seq ?? -1)
    if (phase !== phases.at(-1)) phases.push(phase)
    const text = run === undefined ? "" : RunState.text(run)
    if (text !== texts.at(-1)) texts.push(text)
  })
  const made = { client, phases, texts, interruptions, storage }
  clients.push(made)
  return made
}

const textOf = (client: Client) => RunState.text(client.getSnapshot().run ?? RunState.empty(""))
const until = (client: Client, phase: Phase) =>
  eventually(`the client to be ${phase}`, () => (client.getSnapshot().phase === phase ? true : undefined), 40_000)
const untilText = (client: Client, length: number) =>
  eventually(`${length} characters`, () => (textOf(client).length >= length ? true : undefined), 40_000)

const pieces = (count: number, waitMs: number) =>
  Array.from({ length: count }, (_, i) => [Script.text(`${i} `), Script.wait(waitMs)]).flat()
const whole = (count: number, waitMs = 5) =>
  Script.reply([...pieces(count, waitMs), Script.finish("stop"), Script.done])
const told = (count: number) => Array.from({ length: count }, (_, i) => `${i} `).join("")

/** What is on display is the log, and nothing was shown that a later text did not begin with. */
const check = async ({ client, texts }: Watched, count: number) => {
  const { run } = client.getSnapshot()
  const runId = run?.runId ?? ""
  const alice = world.as("token-of-alice")
  expect(textOf(client)).toBe(told(count))
  const { expiresAt: _, ...stored } = await alice.snapshot(runId)
  expect(Snapshot.of(run ?? RunState.empty(""))).toEqual(stored)
  for (const text of texts) expect(told(count).startsWith(text), `shown: ${text}`).toBe(true)
  return alice.log(runId)
}
const cursors = (from: number) =>
  proxy.requests.slice(from).flatMap(({ url }) => (url.includes("/events") ? [Number(url.split("after=")[1])] : []))

describe("through a bad network", () => {
  test("text is never lost or repeated, and each connection asks for exactly the rest", async () => {
    world.upstream.script("Cut often", [
      Script.reply([...pieces(300, 25), Script.gate("cut often enough"), Script.finish("stop"), Script.done])
    ])
    const seen = watched({ maxDelayMs: 100 })
    const { client } = seen
    const from = proxy.requests.length
    await client.start({ message: "Cut often" })
    for (let cut = 1; cut <= 8; cut++) {
      await untilText(client, cut * 90)
      proxy.cut()
      await eventually("an interruption", () => (seen.interruptions.length === cut ? true : undefined))
      await until(client, "streaming")
    }
    await world.upstream.release("cut often enough")
    await until(client, "completed")
    await check(seen, 300)
    expect(cursors(from)).toEqual([0, ...seen.interruptions])
    expect(seen.phases.slice(0, 6)).toEqual([
      "idle",
      "streaming",
      "interrupted",
      "resuming",
      "streaming",
      "interrupted"
    ])
    // It has ended: nothing is asked any more.
    const { length } = proxy.requests
    await pause(heartbeatMs * 5)
    expect(proxy.requests).toHaveLength(length)
  }, 90_000)

  test("cuts in the middle of frames and characters do no harm", async () => {
    world.upstream.script("Cut in the middle", [whole(200, 8)])
    const seen = watched({ maxDelayMs: 60 })
    await seen.client.start({ message: "Cut in the middle" })
    let bytes = 200
    while (seen.client.getSnapshot().phase !== "completed") {
      proxy.cutAfter(bytes)
      bytes = 200 + ((bytes * 7919) % 5000)
      await pause(60)
    }
    await check(seen, 200)
  }, 90_000)

  test("a connection that dies without a word is noticed, and a quiet one is left alone", async () => {
    world.upstream.script("Quiet and dead", [
      Script.reply([
        ...pieces(5, 1),
        Script.wait(heartbeatMs * 5),
        Script.text("5 "),
        Script.gate("go on"),
        Script.text("6 "),
        Script.finish("stop"),
        Script.done
      ])
    ])
    const seen = watched({ maxDelayMs: 100 })
    const from = proxy.requests.length
    await seen.client.start({ message: "Quiet and dead" })
    await untilText(seen.client, 12)
    expect(cursors(from)).toEqual([0])
    expect(seen.phases).toEqual(["idle", "streaming"])
    proxy.blackHole()
    await world.upstream.release("go on")
    const swallowedAt = Date.now()
    await until(seen.client, "completed")
    expect(Date.now() - swallowedAt).toBeLessThan(heartbeatMs * 4.5)
    expect(seen.phases.slice(0, 4)).toEqual(["idle", "streaming", "interrupted", "resuming"])
    // A connection that was kept open for later may have died as well.
    expect(cursors(from).length).toBeLessThanOrEqual(3)
    await check(seen, 7)
  }, 60_000)

  test("the server is killed and started again in the middle of an answer: it goes on, and nothing repeats", async () => {
    world.upstream.script("Killed in the middle", [Script.reply([...pieces(60, 5), Script.gate("never")]), whole(200)])
    const seen = watched()
    const other = watched()
    await seen.client.start({ message: "Killed in the middle" })
    await other.client.attach(seen.client.getSnapshot().run?.runId ?? "")
    await untilText(seen.client, 100)
    await world.restart()
    proxy.retarget(world.url())
    proxy.cut()
    await until(seen.client, "completed")
    await until(other.client, "completed")
    await check(seen, 200)
    await check(other, 200)
    expect(seen.client.getSnapshot().run?.attempt).toBe(2)
    expect(seen.phases).toContain("interrupted")
  }, 90_000)

  test("a start whose answer is lost is sent again, and is one run", async () => {
    world.upstream.script("Lost answer", [whole(10)])
    const seen = watched()
    proxy.cutAfter(1)
    const started = seen.client.start({ message: "Lost answer" })
    await eventually("the request to be repeated", () =>
      proxy.requests.filter(({ url }) => url === "/chat").length > 1 ? true : undefined
    )
    await pause(100)
    proxy.cutAfter(Number.POSITIVE_INFINITY)
    const run = await started
    await until(seen.client, "completed")
    await check(seen, 10)
    const { items } = await makeApi(credentials()).runs({ conversationId: run.conversationId })
    expect(items.map(({ runId }) => runId)).toEqual([run.runId])
    expect(world.upstream.asked("Lost answer")).toHaveLength(1)
  }, 60_000)

  test("many clients come back spread over time, each with one connection", async () => {
    world.upstream.script("Watched by many", [Script.reply([...pieces(5, 1), Script.gate("many")]), whole(5)])
    // A connection that is merely slow is not taken for a dead one.
    const patient = () => watched({ heartbeatMs: 20_000 })
    const first = patient()
    const { runId } = await first.client.start({ message: "Watched by many" })
    await untilText(first.client, 10)
    const all = [first, ...Array.from({ length: 29 }, patient)]
    await Promise.all(all.map(({ client }) => client.attach(runId)))
    await Promise.all(all.map(({ client }) => until(client, "streaming")))
    proxy.refuse(true)
    proxy.cut()
    await Promise.all(all.map(({ client }) => until(client, "interrupted")))
    // Whoever has tried meanwhile was refused.
    const from = proxy.requests.length
    proxy.refuse(false)
    await Promise.all(all.map(({ client }) => until(client, "streaming")))
    const times = proxy.requests.slice(from).map(({ at }) => at)
    expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(200)
    expect(times).toHaveLength(30)
    await first.client.cancel()
    await Promise.all(all.map(({ client }) => until(client, "cancelled")))
  }, 60_000)
})

describe("with the server", () => {
  test("a run that failed is continued when a person says so, and not before", async () => {
    world.upstream.script("Breaks off", [
      Script.reply([...pieces(5, 5), Script.wait(50)], { framing: "close" }),
      whole(12)
    ])
    const seen = watched()
    await seen.client.start({ message: "Breaks off" })
    await until(seen.client, "failed")
    expect(seen.client.getSnapshot().canContinue).toBe(true)
    await pause(1500)
    expect(world.upstream.asked("Breaks off")).toHaveLength(1)
    await seen.client.continue()
    await until(seen.client, "completed")
    expect([textOf(seen.client), seen.client.getSnapshot().run?.attempt]).toEqual([told(12), 2])
    expect(world.upstream.asked("Breaks off")).toHaveLength(2)
  }, 60_000)

  test("a credential that is gone stops the client, and a new one lets it go on where it stood", async () => {
    world.upstream.script("Signed out", [
      Script.reply([
        ...pieces(5, 2),
        Script.gate("signed in"),
        ...pieces(5, 2).map((step) => step),
        Script.finish("stop"),
        Script.done
      ])
    ])
    let token = "token-of-alice"
    const seen = watched({ token: () => token })
    const from = proxy.requests.length
    await seen.client.start({ message: "Signed out" })
    await untilText(seen.client, 10)
    token = "expired"
    proxy.cut()
    await eventually("the client to ask for a sign-in", () => (seen.client.getSnapshot().signedOut ? true : undefined))
    const { length } = proxy.requests
    await pause(3000)
    expect(proxy.requests).toHaveLength(length)
    expect(seen.client.getSnapshot().phase).toBe("interrupted")
    token = "token-of-alice"
    await world.upstream.release("signed in")
    seen.client.signedIn()
    await until(seen.client, "completed")
    expect(textOf(seen.client)).toBe(told(5) + told(5))
    const asked = cursors(from)
    expect(asked).toHaveLength(3)
    expect(asked[1]).toBe(asked[2])
  }, 60_000)

  test("an approval is shown after a reload, decided, and the run goes on", async () => {
    world.upstream.script("Save it", [
      Script.reply([
        Script.toolCall({ index: 0, id: "call_w", name: "save_note", args: '{"doc":"d","text":"t"}' }),
        Script.finish("tool_calls"),
        Script.done
      ]),
      whole(4)
    ])
    const before = watched()
    await before.client.start({ message: "Save it" })
    await until(before.client, "waiting-approval")
    before.client.close()
    const after = watched({ storage: before.storage })
    expect(await after.client.restore()).toBe(true)
    await until(after.client, "waiting-approval")
    const { run } = after.client.getSnapshot()
    const [request] = RunState.pendingApprovals(run ?? RunState.empty(""))
    await after.client.decide(request?.approvalId ?? "", {
      decision: "approve",
      previewHash: request?.previewHash
    })
    await until(after.client, "completed")
    expect(textOf(after.client)).toBe(told(4))
  }, 60_000)

  test("a page that is reloaded in the middle goes on in the middle", async () => {
    world.upstream.script("Reloaded", [whole(200, 10)])
    const before = watched()
    await before.client.start({ message: "Reloaded" })
    await untilText(before.client, 200)
    const seen = before.client.getSnapshot().cursor?.lastAppliedSeq
    before.client.close()
    const after = watched({ storage: before.storage })
    const from = proxy.requests.length
    expect(await after.client.restore()).toBe(true)
    expect(textOf(after.client).length).toBeGreaterThanOrEqual(200)
    await until(after.client, "completed")
    await check(after, 200)
    expect(cursors(from)).toHaveLength(1)
    expect(cursors(from)[0]).toBeGreaterThanOrEqual(seen ?? Number.POSITIVE_INFINITY)
  }, 60_000)

  test("stop in the middle keeps what was said; regenerate makes another version", async () => {
    world.upstream.script("Stop me", [Script.reply([...pieces(5, 2), Script.gate("never")]), whole(3)])
    const seen = watched()
    const { conversationId, runId } = await seen.client.start({ message: "Stop me" })
    await untilText(seen.client, 10)
    expect(await seen.client.cancel("enough")).toMatchObject({ runId, status: "cancelled" })
    await until(seen.client, "cancelled")
    expect(textOf(seen.client)).toBe(told(5))
    await seen.client.regenerate()
    await until(seen.client, "completed")
    expect(seen.client.getSnapshot().run?.start?.regeneratedFrom).toBe(runId)
    expect(textOf(seen.client)).toBe(told(3))
    const api = makeApi(credentials())
    await api.rename(conversationId, "Stopped")
    expect((await api.conversation(conversationId)).title).toBe("Stopped")
    expect((await api.conversations({ limit: 200 })).items.map((item) => item.conversationId)).toContain(conversationId)
    await api.removeConversation(conversationId)
    await expect(api.conversation(conversationId)).rejects.toMatchObject({ _tag: "NotFound", status: 404 })
  }, 60_000)

  test("refusals say what the server says", async () => {
    const { client } = watched()
    const refusals = [
      client.start({ message: "x", modelId: "none" }),
      client.start({ message: "" }),
      makeApi(credentials()).run("run_0"),
      makeApi(credentials()).cancel("run_01890000-0000-7000-8000-000000000001"),
      makeApi({ ...credentials(), token: () => "wrong" }).runs()
    ].map((call) =>
      call.then(
        () => undefined,
        (error: unknown) => error
      )
    )
    const errors = await Promise.all(refusals)
    for (const error of errors) expect(error).toBeInstanceOf(RunletError)
    expect(errors).toMatchObject([
      { _tag: "Unprocessable", status: 422 },
      { _tag: "BadRequest", status: 400, body: { path: "message" } },
      { _tag: "NotFound", status: 404 },
      { _tag: "NotFound", status: 404 },
      { _tag: "Unauthorized", status: 401 }
    ])
    // What belongs to somebody else is not there.
    world.upstream.script("Mine", [whole(2)])
    const { runId } = await client.start({ message: "Mine" })
    const bob = watched({ token: () => "token-of-bob" })
    expect(await bob.client.attach(runId)).toBe(false)
    expect(bob.client.getSnapshot()).toMatchObject({ phase: "failed", error: { _tag: "NotFound" } })
    await until(client, "completed")
  }, 60_000)
})
