import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as McpServers from "../../../src/tool/mcp/McpServers.js"
import * as Support from "./support.js"

const { eventually } = Support

/** `RUNLET_MCP_TOOLS` says how many tools a server of many has. */
const many = Number(process.env.RUNLET_MCP_TOOLS ?? 5_000)
const mb = 1024 * 1024

const workedMs = () => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}

/** The most work, in milliseconds of processor time, that was done without a turn for anybody else. */
const longestWork = Effect.acquireRelease(
  Effect.sync(() => {
    let before = workedMs()
    let longest = 0
    const look = setInterval(() => {
      const now = workedMs()
      longest = Math.max(longest, now - before)
      before = now
    }, 1)
    return { longest: () => longest, stop: () => clearInterval(look) }
  }),
  ({ stop }) => Effect.sync(stop)
)

/** What a server with so much to offer comes to, and what it costs those who share a process with it. */
const offered = (place: Support.Place, options: Partial<McpServers.Options> = {}) =>
  Effect.gen(function* () {
    const said: Array<string> = []
    const logger = Logger.replace(
      Logger.defaultLogger,
      Logger.make(({ message }) => said.push(String(message)))
    )
    const before = process.memoryUsage().rss
    const work = yield* longestWork
    const servers = yield* Effect.provide(
      McpServers.make({ servers: { box: place.config }, startMs: 60_000, ...options }),
      logger
    )
    // What was done last is seen at the next look.
    yield* Effect.sleep(20)
    const longestMs = work.longest()
    const bytes = process.memoryUsage().rss - before
    console.info(`${servers.tools().length} tools, ${Math.round(longestMs)} ms at once, ${Math.round(bytes / mb)} MB`)
    return { servers, said, longestMs, bytes }
  })

for (const [kind, serve] of Object.entries({ "over standard streams": Support.stdio, "over HTTP": Support.http })) {
  describe(`a server of very many tools ${kind}`, () => {
    // Each of the first thousand schemas is another one, and takes a part of a millisecond or more.
    it.scopedLive.each([`${many + 16}`, "100"])("holds nobody up, in pages of %s, and says what is left out", (PAGE) =>
      Effect.gen(function* () {
        // The module that compiles schemas is loaded by whoever needs it first.
        yield* offered(yield* serve())
        const { bytes, longestMs, said, servers } = yield* offered(yield* serve({ MANY: `${many}`, PAGE }))
        // One of the first thousand can not be checked.
        expect(servers.tools()).toHaveLength(999)
        expect(said.find((line) => line.includes("can be used"))).toContain(
          `of its ${PAGE === "100" ? "more than 1000" : many + 16} tools 1000 can be used`
        )
        expect(longestMs).toBeLessThan(400 + many / 50)
        expect(bytes).toBeLessThan(300 * mb)
      })
    )
  })
}

for (const [kind, serve] of Object.entries({
  "over standard streams": Support.stdio,
  "over HTTP": Support.http,
  "over HTTP in plain JSON": (env: Record<string, string>) => Support.http({ ...env, STATELESS: "1" })
})) {
  it.scopedLive(`a list that is longer than a message may be ends the connection ${kind}, which is told of`, () =>
    Effect.gen(function* () {
      const place = yield* serve({ MANY: "2000", PAGE: "50000" })
      const { said, servers } = yield* offered(place, { maxMessageBytes: 100_000, startMs: 15_000 })
      expect(servers.tools()).toEqual([])
      expect(said[0]).toMatch(/is longer than 100000 bytes.*tried again/)
    })
  )
}

it.scopedLive("a server is not given more words than a model could read", () =>
  Effect.gen(function* () {
    const { said, servers } = yield* offered(yield* Support.stdio({ MANY: "400", WORDY: "20000", PAGE: "50" }))
    // Descriptions are cut before they are counted.
    expect(servers.tools().length).toBeGreaterThan(200)
    expect(servers.tools().length).toBeLessThan(280)
    expect(said.find((line) => line.includes("too much"))).toMatch(
      /it tells too much of its tools: the last \d+ of them/
    )
  })
)

it.scopedLive("a server whose schemas take long to be read is not read to its end", () =>
  Effect.gen(function* () {
    const { longestMs, said, servers } = yield* offered(yield* Support.stdio({ SLOW: "5", PAGE: "100" }))
    expect(longestMs).toBeGreaterThan(100)
    expect(longestMs).toBeLessThan(2_500)
    expect(servers.tools()).toEqual([])
    expect(said).toHaveLength(4)
    expect(said[0]).toMatch(/box_slow_4 are not a usable JSON Schema/)
    expect(said[3]).toMatch(/its schemas take too long to be read: the last 18 of them are not offered/)
  })
)

it.scopedLive("a tool that is told of again is made ready once", () =>
  Effect.gen(function* () {
    const { servers } = yield* offered(yield* Support.stdio({ MANY: "300", PAGE: "1000" }))
    const checkOf = (name: string) => servers.tools().find((tool) => tool.name === name)?.check
    const before = checkOf("box_many_7")
    expect(before).toBeDefined()
    const grow = servers.tools().find(({ name }) => name === "box_grow")
    yield* grow?.execute?.({}, Support.context) ?? Effect.dieMessage("there is no such tool")
    yield* eventually("the new tool", () => servers.tools().find(({ name }) => name === "box_grown"))
    expect(checkOf("box_many_7")).toBe(before)
  })
)
