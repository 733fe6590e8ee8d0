import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as HttpContract from "../../src/testing/HttpContract.js"
import * as Breaker from "./support/Breaker.js"
import * as Server from "./support/Server.js"

const tokens = { token: "token-of-alice-5d1f", otherToken: "token-of-bob-77ac" }
const bin = fileURLToPath(new URL("../../dist/bin.js", import.meta.url))

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
      limits: { heartbeatMs: 500, maxRunsPerUser: 256 }
    })
  )
  server = await Server.start(config, join(folder, "runlet.db"))
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
      patienceMs: 30_000
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

const seqOf = (block: string): number => Number(/^id: (\d+)/m.exec(block)?.[1] ?? 0)
const isTerminal = (block: string): boolean => /"event":\{"type":"(finish|cancelled|error)"/.test(block)
const isJson = (text: string): boolean => text.startsWith("{")

/** What a careless server does, the check that must notice, and which checks are made, if not that one alone. */
const breaches: ReadonlyArray<readonly [string, string, Breaker.Breach, string?]> = [
  ["leaves an event out", "a log counts 1, 2, 3", { frame: (block) => (seqOf(block) === 5 ? [] : [block]) }],
  [
    "ends a run twice",
    "a log counts 1, 2, 3",
    {
      frame: (block) =>
        isTerminal(block) ? [block, block.replaceAll(String(seqOf(block)), String(seqOf(block) + 1))] : [block]
    }
  ],
  [
    "does not say that a run has ended",
    "a log counts 1, 2, 3",
    { frame: (block) => (isTerminal(block) ? [] : [block]) }
  ],
  [
    "begins one event too late",
    "behind a cursor comes the log",
    {
      asking: (asked) => {
        asked.url = asked.url.replace(/after=(\d+)$/, (_, n) => `after=${Number(n) + (Number(n) > 2 ? 1 : 0)}`)
      }
    }
  ],
  [
    "does not know Last-Event-ID",
    "behind a cursor comes the log",
    {
      asking: ({ headers }) => {
        delete headers["last-event-id"]
      }
    }
  ],
  [
    "lets ?after win",
    "Last-Event-ID wins",
    {
      asking: (asked) => {
        if (asked.url.includes("after=")) delete asked.headers["last-event-id"]
      }
    }
  ],
  [
    "guesses at cursors",
    "what is no cursor is refused",
    {
      asking: (asked) => {
        asked.url = asked.url.replace(/after=0+(?=\d)/, "after=")
      }
    }
  ],
  [
    "answers a client at the end with an empty stream",
    "at the end of a run that is over",
    {
      instead: ({ url }) =>
        /after=\d+$/.test(url) && Number(/\d+$/.exec(url)?.[0]) > 20 ? { status: 200, json: "" } : undefined
    }
  ],
  [
    "names frames, which an EventSource then does not show",
    "a run can be started",
    { frame: (block) => [block.startsWith("id:") ? `event: message\n${block}` : block] }
  ],
  [
    "shows what is not stored yet",
    "what a client sees is stored",
    {
      answer: (body, { method, url }) =>
        method === "GET" && /^\/runs\/[^/?]+$/.test(url)
          ? body.replace(/"lastSeq":(\d+)/, (_, n) => `"lastSeq":${Math.max(0, Number(n) - 40)}`)
          : body
    }
  ],
  [
    "shows a snapshot that is not its log",
    "a snapshot is the fold of the log",
    { answer: (body, { url }) => (/^\/runs\/[^/?]+$/.test(url) ? body.replace(/"text":"(\w)/, '"text":"$1$1') : body) }
  ],
  [
    "only says that it cancelled",
    "a run that is cancelled ends",
    {
      instead: ({ url }) =>
        url.endsWith("/cancel") ? { status: 200, json: { runId: "run_1", status: "cancelled", lastSeq: 9 } } : undefined
    }
  ],
  ["sends no heartbeats", "a stream is never silent", { frame: (block) => (block.startsWith(": hb") ? [] : [block]) }],
  [
    "does not know Idempotency-Key",
    "the same key with the same body",
    {
      asking: ({ headers }) => {
        delete headers["idempotency-key"]
      }
    }
  ],
  [
    "takes everybody for one user",
    "what belongs to somebody else",
    {
      asking: ({ headers }) => {
        headers.authorization = `Bearer ${tokens.token}`
      }
    }
  ],
  [
    "says Forbidden where it should say nothing",
    "what belongs to somebody else",
    {
      instead: ({ headers, url }) =>
        headers.authorization?.endsWith(tokens.otherToken) === true && !url.includes("00000000")
          ? { status: 403, json: { _tag: "Forbidden", message: "This is not yours." } }
          : undefined
    }
  ],
  [
    "does not look at the hash of what was shown",
    "a decision that does not fit",
    {
      asking: (asked) => {
        if (!asked.url.includes("/approvals/") || !isJson(asked.body)) return
        const { previewHash: _, ...body } = JSON.parse(asked.body)
        asked.body = JSON.stringify(body)
      }
    }
  ],
  [
    "takes a rejection for an approval",
    "what is rejected does not happen",
    {
      asking: (asked) => {
        asked.body = asked.body.replace('"decision":"reject"', '"decision":"approve"')
      }
    }
  ],
  [
    "shows its stack",
    "what does not exist is refused",
    {
      answer: (body) =>
        body.replace('"message":"There is no such run', '"message":"Error\\n    at find (store.js:1:1) no')
    }
  ],
  [
    "sends credentials back",
    "no credential stands in anything",
    { answer: (body) => body.replace('"items":[', `"token":"${tokens.token}","items":[`) },
    "lists show the run"
  ]
]

describe("the contract of a server", () => {
  it("is kept by this one", { timeout: 180_000 }, async () => {
    const { passed, results } = await check(server.url)
    expect(results.filter(({ outcome }) => outcome === "broken")).toEqual([])
    expect(passed).toBe(true)
    // What needs a log that retention has been at can not be made here.
    expect(results.filter(({ outcome }) => outcome === "skipped").map(({ message }) => message)).toEqual([
      "no run here is so old"
    ])
    expect(results.length).toBe(HttpContract.checks.length + 2)
  })

  for (const [careless, noticed, breach, only = noticed] of breaches) {
    it.concurrent(`is broken by a server that ${careless}`, { timeout: 120_000 }, async ({ expect }) => {
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
    expect(out).toMatch(/^Conforms: http:\S+: \d+ passed, 0 broken, 1 skipped$/m)
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
