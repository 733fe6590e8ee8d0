import { rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import type { ToolPhase } from "../../../src/domain/AgentEvent.js"
import * as McpServers from "../../../src/tool/mcp/McpServers.js"
import type { Tool, ToolContext } from "../../../src/tool/Tool.js"
import * as ToolRunner from "../../../src/tool/ToolRunner.js"
import * as Support from "./support.js"

const { eventually } = Support

const contextOf = (phase: ToolPhase, said: Array<string> = []): ToolContext => ({
  user: "u",
  runId: "run_1",
  conversationId: "conv_1",
  toolCallId: "c",
  phase,
  idempotencyKey: "key-1",
  currentDocument: null,
  progress: (delta) => Effect.sync(() => said.push(delta))
})

const find = (servers: McpServers.McpServers, name: string): Tool => {
  const tool = servers.tools().find((one) => one.name === name)
  if (tool === undefined) throw new Error(`there is no ${name}: ${servers.tools().map((one) => one.name)}`)
  return tool
}

const run = (tool: Tool, q?: string, said?: Array<string>, maxResultBytes = 100_000) => {
  const phase = tool.kind === "write" ? "commit" : "execute"
  return ToolRunner.run({
    tool,
    phase,
    input: q === undefined ? {} : { q },
    context: contextOf(phase, said),
    timeoutMs: 30_000,
    maxResultBytes
  })
}

const kinds = { "over standard streams": Support.stdio, "over HTTP": Support.http }

for (const [kind, serve] of Object.entries(kinds)) {
  const started = (options: Partial<McpServers.Options> = {}) =>
    Effect.gen(function* () {
      const place = yield* serve()
      const servers = yield* McpServers.make({ servers: { box: place.config }, ...options })
      return { place, servers }
    })

  describe(`an MCP server ${kind}`, () => {
    it.scopedLive("offers the tools of all its pages, by annotations and under its name", () =>
      Effect.gen(function* () {
        const { place, servers } = yield* started()
        const facts = servers.tools().map(({ commit, kind, name, preview }) => [name, kind, !!commit, !!preview])
        expect(facts.slice(0, 4)).toEqual([
          ["box_echo", "readonly", false, false],
          ["box_save", "write", true, false],
          ["box_unsaid", "effectful", false, false],
          ["box_hang", "readonly", false, false]
        ])
        expect(find(servers, "box_hang_write").kind).toBe("write")
        expect(find(servers, "box_echo").title).toBe("Echoing")
        expect(find(servers, "box_a_name_with_signs").description).toBe("Odd")
        // One has an input that nobody can check.
        expect(servers.tools()).toHaveLength(15)
        expect(place.journal().flatMap(({ listed }) => listed ?? [])).toEqual([0, 5, 10, 15])
        for (const tool of servers.tools()) expect([tool.idempotent, tool.unattended]).toEqual([undefined, undefined])
      })
    )

    it.scopedLive("is called with the input and the key of the act, and its secrets stay with it", () =>
      Effect.gen(function* () {
        const { place, servers } = yield* started()
        expect(yield* run(find(servers, "box_echo"), "hi")).toMatchObject({
          ok: true,
          result: expect.stringMatching(/^echo hi \[/)
        })
        expect(yield* run(find(servers, "box_save"), "this")).toMatchObject({ ok: true, result: "saved this" })
        expect(place.journal().filter(({ called }) => called === "save")).toEqual([
          expect.objectContaining({ input: { q: "this" }, key: "key-1" })
        ])
        const told = yield* Effect.all([
          run(find(servers, "box_data")),
          run(find(servers, "box_fail")),
          run(find(servers, "box_refuse"))
        ])
        expect(JSON.stringify(told)).not.toContain(Support.token)
        expect(told).toMatchObject([
          { ok: true, result: { level: 3 } },
          { ok: false, result: { error: expect.stringContaining("it does not work") } },
          { ok: false, result: { error: expect.stringContaining("no such thing") } }
        ])
        expect(yield* run(find(servers, "box_mixed"))).toMatchObject({
          ok: true,
          result: [
            "look",
            { type: "image", mimeType: "image/png", omitted: "300 bytes" },
            { type: "resource", uri: "file:///a", text: "inside" }
          ]
        })
        const refused = Effect.match(find(servers, "box_save").check({}), {
          onFailure: (message) => message,
          onSuccess: () => "it was accepted"
        })
        expect(yield* refused).toContain("'q'")
      })
    )

    it.scopedLive("tells its progress", () =>
      Effect.gen(function* () {
        const { servers } = yield* started()
        const said: Array<string> = []
        yield* run(find(servers, "box_count"), undefined, said)
        expect(said).toEqual(["1/3", "2/3", expect.stringMatching(/^nearly there, \[/)])
      })
    )

    it.scopedLive("is told when nobody waits for a call any more", () =>
      Effect.gen(function* () {
        const { place, servers } = yield* started()
        for (const name of ["hang", "hang_write"]) {
          const fiber = yield* Effect.fork(run(find(servers, `box_${name}`)))
          yield* eventually("the call", () => place.journal().find(({ called }) => called === name))
          yield* Fiber.interrupt(fiber)
          yield* eventually("the cancellation", () => place.journal().find(({ cancelled }) => cancelled === name))
        }
        expect(yield* run(find(servers, "box_echo"), "still")).toMatchObject({ ok: true })
      })
    )

    it.scopedLive("may die in the middle of a call: reading has failed, writing is in doubt, and it comes back", () =>
      Effect.gen(function* () {
        const { place, servers } = yield* started()
        for (const name of ["die", "die_write"]) {
          const outcome = yield* run(find(servers, `box_${name}`))
          if (name === "die") expect(outcome).toMatchObject({ _tag: "Settled", ok: false })
          else expect(outcome).toMatchObject({ _tag: "InDoubt" })
          // What was offered is still offered.
          expect(servers.tools()).toHaveLength(15)
          yield* place.revive
          expect(yield* run(find(servers, "box_echo"), "back")).toMatchObject({ ok: true })
        }
        const pids = new Set(place.journal().flatMap(({ pid, started }) => (started === true ? [pid] : [])))
        expect(pids.size).toBe(3)
        expect(place.journal().filter(({ called }) => called === "die_write")).toHaveLength(1)
      })
    )

    it.scopedLive("may say a lot, which is cut with a mark, or too much", () =>
      Effect.gen(function* () {
        const { place, servers } = yield* started({ maxMessageBytes: 2_000_000 })
        const cut = yield* run(find(servers, "box_huge"), "1000000", [], 5_000)
        expect(cut).toMatchObject({ ok: true })
        expect(JSON.stringify(cut)).toContain("truncated")
        expect(JSON.stringify(cut).length).toBeLessThan(8_000)
        const tooMuch = yield* run(find(servers, "box_huge"), "3000000")
        expect(tooMuch).toMatchObject({ ok: false })
        expect(yield* run(find(servers, "box_echo"), "back")).toMatchObject({ ok: true })
        expect(place.journal().filter(({ called }) => called === "huge")).toHaveLength(2)
      })
    )

    it.scopedLive("may get other tools while it runs", () =>
      Effect.gen(function* () {
        const { servers } = yield* started()
        expect(yield* run(find(servers, "box_grow"))).toMatchObject({ ok: true })
        yield* eventually("the new tool", () => servers.tools().find(({ name }) => name === "box_grown"))
        expect(yield* run(find(servers, "box_grown"), "new")).toMatchObject({ ok: true })
      })
    )
  })
}

describe("processes of MCP servers", () => {
  const pidOf = (place: Support.Place): number => place.journal()[0]?.pid ?? 0

  it.live("end with the scope, also those that do not want to", () =>
    Effect.gen(function* () {
      const pids = yield* Effect.scoped(
        Effect.gen(function* () {
          const [willing, stubborn] = yield* Effect.all([Support.stdio(), Support.stdio({ STUBBORN: "1" })])
          yield* McpServers.make({ servers: { willing: willing.config, stubborn: stubborn.config } })
          const found = [willing, stubborn].map(pidOf)
          expect(found.map(Support.isAlive)).toEqual([true, true])
          return found
        })
      )
      expect(pids.map(Support.isAlive)).toEqual([false, false])
    })
  )

  it.scopedLive("get the variables that they are given, and no others", () =>
    Effect.gen(function* () {
      const script = `process.stderr.write(Object.keys(process.env).sort().join()); process.exit(1)`
      const config = { command: process.execPath, args: ["-e", script], env: { OWN: Redacted.make("x") } }
      process.env.RUNLET_TEST_SECRET = "do not tell"
      yield* Effect.addFinalizer(() => Effect.sync(() => delete process.env.RUNLET_TEST_SECRET))
      const said: Array<string> = []
      const logger = Logger.replace(
        Logger.defaultLogger,
        Logger.make(({ message }) => said.push(String(message)))
      )
      const servers = yield* Effect.provide(McpServers.make({ servers: { bad: config } }), logger)
      expect(servers.tools()).toEqual([])
      expect(said[0]).toContain("OWN")
      expect(said[0]).not.toContain("RUNLET_TEST_SECRET")
    })
  )

  it.scopedLive("that can not start are tried again, and everything goes on without them", () =>
    Effect.gen(function* () {
      const good = yield* Support.stdio()
      const flag = join(good.dir, "flag")
      writeFileSync(flag, "")
      const late = yield* Support.stdio({ FAIL_WHILE: flag })
      const absent = { command: join(good.dir, "no-such-program"), args: [], env: {} }
      const servers = yield* McpServers.make({ servers: { late: late.config, absent, good: good.config } })
      expect(yield* run(find(servers, "good_echo"), "x")).toMatchObject({ ok: true })
      expect(servers.tools().some(({ name }) => name.startsWith("late"))).toBe(false)
      rmSync(flag)
      yield* eventually("the late one", () => servers.tools().find(({ name }) => name === "late_echo"))
    })
  )
})

describe("a server that can not be reached", () => {
  it.scopedLive("is tried again after pauses that grow", () =>
    Effect.gen(function* () {
      const pauses: Array<number> = []
      const logger = Logger.replace(
        Logger.defaultLogger,
        Logger.make(({ message }) => pauses.push(Number(/tried again in (\d+) ms/.exec(String(message))?.[1])))
      )
      const absent = { command: "/no/such/program", args: [], env: {} }
      yield* Effect.provide(McpServers.make({ servers: { absent } }), logger)
      yield* eventually("four tries", () => pauses[3])
      for (const [index, pause] of pauses.slice(0, 4).entries()) {
        expect(pause).toBeGreaterThanOrEqual(250 * 2 ** index)
        expect(pause).toBeLessThanOrEqual(500 * 2 ** index)
      }
    })
  )
})

describe("addresses of MCP servers", () => {
  it.scopedLive("are called with the configured headers, when they are allowed", () =>
    Effect.gen(function* () {
      const place = yield* Support.http()
      const servers = yield* McpServers.make({ servers: { box: place.config }, isAllowed: () => true })
      yield* run(find(servers, "box_echo"), "x")
      const sent = place.journal().flatMap((line) => (line.POST === undefined ? [] : [line.POST]))
      expect(new Set(sent)).toEqual(new Set([`Bearer ${Support.token}`]))
      const before = place.journal().length
      const refused = yield* McpServers.make({ servers: { box: place.config }, isAllowed: () => false })
      expect(refused.tools()).toEqual([])
      expect(place.journal()).toHaveLength(before)
    })
  )

  it.scopedLive("may keep no sessions and answer in plain JSON", () =>
    Effect.gen(function* () {
      const place = yield* Support.http({ STATELESS: "1" })
      const servers = yield* McpServers.make({ servers: { box: place.config }, maxMessageBytes: 2_000_000 })
      expect(yield* run(find(servers, "box_save"), "this")).toMatchObject({ ok: true, result: "saved this" })
      expect(yield* run(find(servers, "box_huge"), "3000000")).toMatchObject({ ok: false })
      expect(yield* run(find(servers, "box_die_write"))).toMatchObject({ _tag: "InDoubt" })
      yield* place.revive
      expect(yield* run(find(servers, "box_echo"), "back")).toMatchObject({ ok: true })
      expect(place.journal().filter(({ called }) => called === "die_write")).toHaveLength(1)
    })
  )

  it.scopedLive("that are gone are a failure of the call, for certain: nothing was sent", () =>
    Effect.gen(function* () {
      const place = yield* Support.http()
      const servers = yield* McpServers.make({ servers: { box: place.config } })
      const pid = place.journal()[0]?.pid ?? 0
      process.kill(pid, "SIGKILL")
      yield* eventually("its end", () => (Support.isAlive(pid) ? undefined : true))
      expect(yield* run(find(servers, "box_save"), "x")).toMatchObject({
        _tag: "Settled",
        ok: false,
        result: { error: expect.stringContaining("did not run the tool") }
      })
    })
  )

  it.scopedLive("are let go of when a call is cancelled", () =>
    Effect.gen(function* () {
      const place = yield* Support.http()
      const servers = yield* McpServers.make({ servers: { box: place.config } })
      const closed = () => place.journal().filter((line) => line.closed === true).length
      const fiber = yield* Effect.fork(run(find(servers, "box_hang")))
      yield* eventually("the call", () => place.journal().find(({ called }) => called === "hang"))
      const before = closed()
      yield* Fiber.interrupt(fiber)
      yield* eventually("the socket to be closed", () => (closed() > before ? true : undefined))
    })
  )
})
