import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { alone, browserTabs, type Client, type Tabs } from "../../src/client/index.js"
import * as RunState from "../../src/domain/RunState.js"
import * as Snapshot from "../../src/domain/Snapshot.js"
import { channels, Locks } from "./support/Browser.js"
import { json, refusal } from "./support/FakeServer.js"
import { harness, memoryStorage, settle } from "./support/Harness.js"

let open: Set<unknown>
beforeEach(() => {
  const { Channel, open: all } = channels()
  open = all
  vi.stubGlobal("navigator", { locks: new Locks() })
  vi.stubGlobal("BroadcastChannel", Channel)
})
afterEach(() => {
  vi.unstubAllGlobals()
})

const text = (client: Client) => RunState.text(client.getSnapshot().run ?? RunState.empty(""))
const phase = (client: Client) => client.getSnapshot().phase

const tabs = (count: number) => {
  const first = harness()
  const clients = [first.client, ...Array.from({ length: count - 1 }, () => first.make({ storage: memoryStorage() }))]
  return { ...first, clients }
}

/** A tab that can be frozen: it neither speaks nor hears, and does not let go of what it holds. */
const freezable = (): Tabs & { frozen: boolean } => {
  const real = browserTabs()
  const mine = {
    frozen: false,
    listen: (hear: Parameters<Tabs["listen"]>[0]) => {
      const channel = real.listen((message) => {
        if (!mine.frozen) hear(message)
      })
      return {
        postMessage: (message: Parameters<typeof channel.postMessage>[0]) => {
          if (!mine.frozen) channel.postMessage(message)
        },
        close: channel.close
      }
    },
    lead: real.lead
  }
  return mine
}

describe("the tabs of one browser", () => {
  it("share one connection, and all show the same live", async () => {
    const { clients, server } = tabs(5)
    server.begin("run_1")
    server.say("run_1", "a ")
    for (const client of clients) {
      await client.attach("run_1")
      await settle()
      server.say("run_1", "b ")
    }
    await settle()
    expect([server.streams.length, server.connections.size]).toEqual([1, 1])
    for (const client of clients) expect([text(client), phase(client)]).toEqual([`a ${"b ".repeat(5)}`, "streaming"])
    server.finish("run_1")
    await settle()
    expect(clients.map(phase)).toEqual(clients.map(() => "completed"))
    expect([server.streams.length, server.mostOpen]).toEqual([1, 1])
    for (const client of clients) client.close()
    expect(open.size).toBe(0)
  })

  it("hand the connection on when the tab that has it is closed", async () => {
    const { clients, server } = tabs(3)
    server.begin("run_1")
    for (const client of clients) await client.attach("run_1")
    await settle()
    let said = ""
    for (const client of clients) {
      server.say("run_1", "x ")
      said += "x "
      await settle()
      expect(text(client)).toBe(said)
      client.close()
      await settle()
      expect(server.connections.size).toBe(client === clients.at(-1) ? 0 : 1)
    }
    expect(server.streams.map(({ after }) => after)).toEqual([3, 4, 5])
    expect(server.mostOpen).toBe(1)
  })

  it("all know that the connection is lost and comes back, and one of them tries", async () => {
    const { clients, clock, server } = tabs(3)
    server.begin("run_1")
    for (const client of clients) await client.attach("run_1")
    await settle()
    server.cut()
    await settle()
    expect(clients.map(phase)).toEqual(clients.map(() => "interrupted"))
    server.say("run_1", "on")
    await clock.advance(1000)
    expect(clients.map((client) => [text(client), phase(client)])).toEqual(clients.map(() => ["on", "streaming"]))
    expect([server.streams.length, server.mostOpen]).toEqual([2, 1])
    for (const client of clients) client.close()
  })

  it("take the connection from a tab that is frozen, and give it up when they are the one", async () => {
    const first = freezable()
    const { clock, make, server } = harness()
    const frozen = make({ tabs: first, storage: memoryStorage() })
    const other = make({ tabs: browserTabs(), storage: memoryStorage() })
    server.begin("run_1")
    await frozen.attach("run_1")
    await settle()
    await other.attach("run_1")
    await settle()
    for (let beats = 0; beats < 4; beats++) {
      await clock.advance(15_000)
      server.beat()
    }
    expect(server.streams).toHaveLength(1)
    first.frozen = true
    server.say("run_1", "unheard ")
    await settle()
    expect(text(other)).toBe("")
    for (let beats = 0; beats < 3; beats++) {
      await clock.advance(15_000)
      server.beat()
    }
    await settle()
    expect(text(other)).toBe("unheard ")
    // The tab that lost it has closed its connection, and hears the other one when it is back.
    expect(server.connections.size).toBe(1)
    first.frozen = false
    server.say("run_1", "heard")
    await settle()
    expect([text(frozen), text(other)]).toEqual(["unheard heard", "unheard heard"])
    frozen.close()
    other.close()
  })

  it("miss nothing that is said while they come, however fast it comes", async () => {
    const { clients, server } = tabs(4)
    server.begin("run_1")
    const [first, ...rest] = clients
    await first?.attach("run_1")
    await settle()
    let said = ""
    const say = () => {
      said += "x"
      server.say("run_1", "x")
    }
    server.intercept = async ({ path }) => {
      if (path !== "/runs/run_1") return undefined
      // The snapshot is slow, and what happens meanwhile is not in it.
      const answer = json(200, Snapshot.of(server.state("run_1")))
      for (let turn = 0; turn < 5; turn++) {
        say()
        await new Promise((resolve) => setImmediate(resolve))
      }
      return answer
    }
    await Promise.all(rest.map((client) => client.attach("run_1")))
    await settle()
    expect(clients.map(text)).toEqual(clients.map(() => said))
    const { length } = server.requests
    say()
    await settle()
    expect(clients.map(text)).toEqual(clients.map(() => said))
    expect(server.requests).toHaveLength(length)
    for (const client of clients) client.close()
  })

  it("all go on when one of them continues a failed run", async () => {
    const { clients, server } = tabs(2)
    const [one, two] = clients
    server.begin("run_1")
    server.say("run_1", "half")
    server.fail("run_1")
    for (const client of clients) await client.attach("run_1")
    await settle()
    expect(clients.map(phase)).toEqual(["failed", "failed"])
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
      return json(202, {
        runId: "run_1",
        conversationId: "conv_1",
        assistantMessageId: "answer_run_1",
        status: "running"
      })
    }
    await two?.continue()
    await settle()
    server.say("run_1", "whole")
    await settle()
    expect(clients.map((client) => [text(client), phase(client)])).toEqual(clients.map(() => ["whole", "streaming"]))
    expect(server.connections.size).toBe(1)
    two?.close()
    await settle()
    server.say("run_1", "!")
    await settle()
    expect(one && text(one)).toBe("whole!")
    one?.close()
  })

  it("all go on when somebody signs in again in one of them", async () => {
    const { clients, clock, server } = tabs(3)
    server.begin("run_1")
    for (const client of clients) await client.attach("run_1")
    await settle()
    server.intercept = () => refusal(401, "Unauthorized")
    server.cut()
    await clock.advance(60_000)
    expect(clients.map((client) => client.getSnapshot().signedOut)).toEqual([true, true, true])
    const asked = server.requests.length
    await clock.advance(600_000)
    expect(server.requests).toHaveLength(asked)
    server.intercept = () => undefined
    server.say("run_1", "on")
    clients[1]?.signedIn()
    await settle()
    expect(clients.map((client) => [text(client), phase(client)])).toEqual(clients.map(() => ["on", "streaming"]))
    expect(server.connections.size).toBe(1)
    for (const client of clients) client.close()
  })

  it("have connections of their own for runs of their own", async () => {
    const { clients, server } = tabs(2)
    server.begin("run_1")
    server.begin("run_2")
    await clients[0]?.attach("run_1")
    await clients[1]?.attach("run_2")
    await settle()
    expect(server.connections.size).toBe(2)
    for (const client of clients) client.close()
  })
})

describe("without the means to share", () => {
  it("each has its own connection", async () => {
    vi.stubGlobal("navigator", {})
    expect(browserTabs()).toBe(alone)
    const { clients, server } = tabs(2)
    server.begin("run_1")
    for (const client of clients) await client.attach("run_1")
    await settle()
    expect(server.connections.size).toBe(2)
    for (const client of clients) client.close()
  })
})
