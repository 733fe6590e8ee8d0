/** How a replay gets its events: from a server that is cut, silenced and taken down, and drawn in pieces. */
import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { makeApi } from "../../src/client/Api.js"
import type { Timer } from "../../src/client/Call.js"
import { RunletError } from "../../src/client/RunletError.js"
import type { Envelope } from "../../src/domain/Envelope.js"
import * as RunStatus from "../../src/domain/RunStatus.js"
import * as Blocks from "../../src/web/replay/Blocks.js"
import * as Recording from "../../src/web/replay/Recording.js"
import * as Source from "../../src/web/replay/Source.js"
import { FakeServer, refusal } from "../client/support/FakeServer.js"

/** A clock that goes on when it is told to. */
class Clock {
  now = 0
  private waiting: Array<{ readonly at: number; readonly call: () => void }> = []
  readonly timer: Timer = (call, ms) => {
    const entry = { at: this.now + ms, call }
    this.waiting.push(entry)
    return () => {
      this.waiting = this.waiting.filter((one) => one !== entry)
    }
  }
  async pass(ms: number): Promise<void> {
    const until = this.now + ms
    await settle()
    for (;;) {
      const due = this.waiting.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0]
      if (due === undefined) break
      this.waiting = this.waiting.filter((one) => one !== due)
      this.now = due.at
      due.call()
      await settle()
    }
    this.now = until
  }
}

/** Lets everything happen that needs no time. */
const settle = async () => {
  for (let turn = 0; turn < 12; turn++) await new Promise<void>((done) => setImmediate(done))
}

const watching = (server: FakeServer, runId: string, heartbeatMs = 1000) => {
  const clock = new Clock()
  const api = Source.makeReads(makeApi({ fetch: server.fetch, timer: clock.timer, heartbeatMs }), server.fetch)
  const links: Array<Source.Link> = []
  const abort = new AbortController()
  const heard: Array<Envelope> = []
  let batches = 0
  let recording = Recording.empty(runId)
  let removed = false
  const watcher: Source.Watcher = {
    link: (link) => {
      if (links.at(-1) !== link) links.push(link)
    },
    snapshot: () => {},
    removed: () => {
      removed = true
    },
    events: (envelopes) => {
      batches++
      heard.push(...envelopes)
      recording = Recording.append(recording, envelopes)
    },
    cursor: () => recording.end.seq,
    over: () => RunStatus.isEnded(recording.end.status)
  }
  let error: unknown
  const done = Source.watch(api, runId, watcher, abort.signal, {
    timer: clock.timer,
    batchMs: 16,
    retryMs: (failures) => 1000 * 2 ** failures
  }).catch((thrown: unknown) => {
    error = thrown
  })
  return {
    clock,
    api,
    links,
    abort,
    heard,
    done,
    batches: () => batches,
    removed: () => removed,
    error: () => error,
    recording: () => recording
  }
}

const methods = (server: FakeServer) => new Set(server.requests.map(({ method }) => method))

describe("watching a run", () => {
  it("gives all that is stored and then what happens, a batch at a time, and ends with the run", async () => {
    const server = new FakeServer()
    server.begin("r")
    server.say("r", ..."one two three".split(" "))
    const watch = watching(server, "r")
    await watch.clock.pass(20)
    expect(watch.heard).toEqual(server.log("r"))
    expect(watch.batches()).toBe(1)
    expect(watch.links.at(-1)).toBe("live")
    for (let i = 0; i < 50; i++) server.say("r", `${i} `)
    await watch.clock.pass(20)
    expect(watch.batches()).toBe(2)
    server.finish("r")
    await watch.clock.pass(20)
    await watch.done
    expect(watch.links.at(-1)).toBe("ended")
    expect(watch.heard).toEqual(server.log("r"))
    expect(methods(server)).toEqual(new Set(["GET"]))
  })

  it("over any cuts loses nothing, hears nothing twice, and asks for no more than is missing", () => {
    const step = FastCheck.constantFrom("say", "cut", "silent", "down", "wait")
    const holds = async (steps: ReadonlyArray<string>) => {
      const server = new FakeServer()
      server.begin("r")
      const watch = watching(server, "r")
      for (const step of steps) {
        if (step === "say") server.say("r", "a", "b")
        if (step === "cut") server.cut()
        if (step === "silent") server.blackHole()
        if (step === "down") {
          server.down = true
          server.cut()
        }
        await watch.clock.pass(step === "wait" ? 5000 : 40)
        server.down = false
      }
      server.finish("r")
      await watch.clock.pass(300_000)
      await watch.done
      expect(watch.heard).toEqual(server.log("r"))
      expect(watch.links.at(-1)).toBe("ended")
      const cursors = server.streams.map(({ after }) => after ?? -1)
      expect(cursors).toEqual([...cursors].sort((a, b) => a - b))
      // The one that was given up may not know it yet when the next is made.
      expect(server.mostOpen).toBeLessThanOrEqual(2)
    }
    return FastCheck.assert(FastCheck.asyncProperty(FastCheck.array(step, { maxLength: 16 }), holds), { numRuns: 40 })
  })

  it("waits longer after each failure, and not after something came", async () => {
    const server = new FakeServer()
    server.begin("r")
    server.down = true
    const watch = watching(server, "r", 60_000)
    await watch.clock.pass(15_500)
    // At once, after 2, 4 and 8 seconds more.
    expect(server.requests.length).toBe(4)
    server.down = false
    await watch.clock.pass(20_000)
    expect(watch.links.at(-1)).toBe("live")
    server.cut()
    const asked = server.streams.length
    server.say("r", "more")
    await watch.clock.pass(1_100)
    expect(server.streams.length).toBe(asked + 1)
    watch.abort.abort()
    await watch.clock.pass(1)
    await watch.done
    expect(server.connections.size).toBe(0)
  })

  it("fails with what the server refuses for good, and asks no more", async () => {
    const server = new FakeServer()
    const unknown = watching(server, "nobody's")
    await unknown.done
    expect(unknown.error()).toMatchObject({ _tag: "NotFound", status: 404 })
    server.begin("r")
    server.intercept = () => refusal(401, "Unauthorized")
    const signedOut = watching(server, "r")
    await signedOut.done
    expect(Source.isSignedOut(signedOut.error())).toBe(true)
    const asked = server.requests.length
    await signedOut.clock.pass(60_000)
    expect(server.requests.length).toBe(asked)
  })

  it("of a log that was removed gives what it came to", async () => {
    const server = new FakeServer()
    server.begin("r")
    server.say("r", "kept")
    server.finish("r")
    server.intercept = ({ path }) =>
      path.endsWith("/events") ? refusal(410, "Compacted", { snapshot: "/runs/r" }) : undefined
    const watch = watching(server, "r")
    await watch.done
    expect(watch.removed()).toBe(true)
    expect(watch.links.at(-1)).toBe("ended")
  })

  it("tells a checkpoint, or why there is none", async () => {
    const server = new FakeServer()
    server.begin("r")
    const { api } = watching(server, "r")
    server.intercept = ({ path }) => (path === "/runs/r/checkpoints/3" ? Response.json({ seq: 3 }) : undefined)
    expect(await api.checkpoint("r", 3)).toEqual({ seq: 3 })
    await expect(api.checkpoint("r", 4)).rejects.toBeInstanceOf(RunletError)
    server.down = true
    await expect(api.checkpoint("r", 3)).rejects.toMatchObject({ _tag: "Unreachable" })
  })
})

describe("a text in pieces", () => {
  const line = FastCheck.constantFrom(
    "",
    "",
    "a line of words",
    "- an item",
    "1. first",
    "  more of it",
    "```",
    "```ts",
    "~~~",
    "const a = 1",
    "# title",
    "| a | b |",
    "语言",
    "😀"
  )
  const texts = FastCheck.array(line, { maxLength: 30 }).map((lines) => lines.join("\n"))

  it.prop("is the text", [texts], ([text]) => {
    expect(
      Blocks.split(text)
        .map((block) => block.text)
        .join("")
    ).toBe(text)
  })

  const grown: ReadonlyArray<readonly [text: string, at: number]> = [
    ["- a\n\n- b", 6],
    ["- a\n\n10. b", 7],
    ["- a\n\n1 b", 6]
  ]

  it.prop(
    "changes at its end only, when it grows",
    [texts, FastCheck.nat()],
    ([text, at]) => {
      const before = Blocks.split(text.slice(0, at % (text.length + 1)))
      const after = Blocks.split(text)
      expect(after.slice(0, Math.max(0, before.length - 1))).toEqual(before.slice(0, -1))
    },
    { fastCheck: { examples: grown.map(([text, at]) => [text, at]) } }
  )

  it("keeps lists and code together, and cuts what is too long without breaking the code", () => {
    expect(Blocks.split("- a\n\n- b\n\nnext").map(({ text }) => text)).toEqual(["- a\n\n- b\n\n", "next"])
    expect(Blocks.split("```\na\n\nb\n```\n\nnext").map(({ text }) => text)).toEqual(["```\na\n\nb\n```\n\n", "next"])
    const code = `\`\`\`js\n${"x = 1\n\n".repeat(3000)}\`\`\`\n\nafter`
    const blocks = Blocks.split(code)
    expect(blocks.length).toBeGreaterThan(3)
    expect(blocks[1]?.opening).toBe("```js\n")
    expect(blocks.at(-1)).toEqual({ text: "after", opening: "" })
    expect(Math.max(...blocks.map(({ text }) => text.length))).toBeLessThan(6100)
    const emoji = Blocks.split("😀".repeat(5000))
    expect(emoji.every(({ text }) => !/^[\uDC00-\uDFFF]|[\uD800-\uDBFF]$/.test(text))).toBe(true)
  })
})
