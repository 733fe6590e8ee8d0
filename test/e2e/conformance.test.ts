import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import * as HttpContract from "../../src/testing/HttpContract.js"
import * as Seed from "../web/support/Seed.js"
import { breaches, removed, seqOf, tokens } from "./support/Breaches.js"
import * as Breaker from "./support/Breaker.js"
import * as Server from "./support/Server.js"

const bin = fileURLToPath(new URL("../../dist/bin.js", import.meta.url))

// Most of the time a check waits for a model that speaks slowly.
vi.setConfig({ maxConcurrency: 16 })

let server: Server.Server
let folder: string

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "runlet-conformance-"))
  const config = join(folder, "config.json")
  writeFileSync(
    config,
    JSON.stringify({
      auth: {
        tokens: [
          { user: "alice", token: tokens.token },
          { user: "bob", token: tokens.otherToken }
        ]
      },
      limits: { heartbeatMs: 500, maxRunsPerUser: 256 },
      retention: { eventsMs: 1e13, runsMs: 1e13 }
    })
  )
  const data = join(folder, "runlet.db")
  await Seed.seed(data, [{ log: removed, question: "What was it?", user: "alice", compacted: true }])
  server = await Server.start(config, data)
})

afterAll(async () => {
  await server?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const check = (url: string, only?: string) =>
  Effect.runPromise(
    HttpContract.run({
      url,
      only,
      token: Redacted.make(tokens.token),
      otherToken: Redacted.make(tokens.otherToken),
      heartbeatMs: 500,
      patienceMs: 90_000
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )

/** The program, with the tokens in its environment, where nobody else sees them. */
const program = (...args: ReadonlyArray<string>) =>
  new Promise<{ readonly code: number | null; readonly out: string; readonly err: string }>((resolve) => {
    const env = { ...process.env, RUNLET_TOKEN: tokens.token, RUNLET_OTHER_TOKEN: tokens.otherToken }
    const child = spawn(process.execPath, [bin, "conformance", ...args], { env, stdio: ["ignore", "pipe", "pipe"] })
    const text = { out: "", err: "" }
    child.stdout.on("data", (piece) => {
      text.out += piece
    })
    child.stderr.on("data", (piece) => {
      text.err += piece
    })
    child.on("close", (code) => resolve({ code, ...text }))
  })

describe("the contract of a server", () => {
  it("is kept by this one", { timeout: 180_000 }, async () => {
    const { passed, results } = await check(server.url)
    expect(results.filter(({ outcome }) => outcome === "broken")).toEqual([])
    expect(passed).toBe(true)
    expect(results.filter(({ outcome }) => outcome === "skipped")).toEqual([])
    expect(results.length).toBe(HttpContract.checks.length + 2)
  })

  it("has no rule that could be broken without being noticed", async () => {
    const { results } = await check(server.url, "says that it lives")
    const names = [...results.map(({ name }) => name), ...HttpContract.checks.map(({ name }) => name)]
    expect(names.filter((name) => !breaches.some(([, noticed]) => name.includes(noticed)))).toEqual([])
  })

  for (const [careless, noticed, breach, only = noticed] of breaches) {
    it.concurrent(`is broken by a server that ${careless}`, { timeout: 180_000 }, async ({ expect }) => {
      const breaker = await Breaker.start(server.url, breach)
      try {
        const { passed, results } = await check(breaker.url, only)
        expect(passed).toBe(false)
        expect(results.filter(({ outcome }) => outcome === "broken").map(({ name }) => name)).toEqual([
          expect.stringContaining(noticed)
        ])
      } finally {
        await breaker.stop()
      }
    })
  }
})

describe("runlet conformance", () => {
  it("prints a line for each check and ends with 0 when all are kept", { timeout: 120_000 }, async () => {
    const { code, err, out } = await program(server.url, "--heartbeat-ms", "500", "--only", "cursor")
    expect(err).toBe("")
    expect(out).toMatch(/^ok {7}a run can be started, watched to its end, and read {2}\(\d+\.\d s\)$/m)
    expect(out).toMatch(/^ok {7}behind a cursor comes the log without its first events, byte for byte/m)
    expect(out).toMatch(/^Conforms: http:\S+: \d+ passed, 0 broken, 0 skipped$/m)
    expect(code).toBe(0)
  })

  it("says what is broken and ends with 1, also as JSON", { timeout: 120_000 }, async () => {
    const breaker = await Breaker.start(server.url, { frame: (block) => (seqOf(block) === 5 ? [] : [block]) })
    try {
      const plain = await program(breaker.url, "--only", "a log counts")
      expect(plain.out).toMatch(/^BROKEN {3}a log counts 1, 2, 3 .*\n {9}seqs count 1, 2, 3 …: .* at place 5 stands 6/m)
      expect(plain.out).toContain("DOES NOT CONFORM")
      expect(plain.code).toBe(1)
      const json = await program(breaker.url, "--only", "a log counts", "--json")
      expect(JSON.parse(json.out)).toMatchObject({ url: breaker.url, passed: false })
      expect(json.code).toBe(1)
    } finally {
      await breaker.stop()
    }
  })

  it("ends with 1 where no server is, and with 2 where no address is", { timeout: 120_000 }, async () => {
    const nobody = await program("http://127.0.0.1:9")
    expect(nobody.out).toMatch(/^BROKEN .*\n {9}The connection to http:\/\/127\.0\.0\.1:9 failed: /)
    expect(nobody.code).toBe(1)
    const nowhere = await program("somewhere")
    expect(nowhere.err).toContain("somewhere is no address of a server")
    expect(nowhere.code).toBe(2)
  })
})
