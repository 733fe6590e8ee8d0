import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { Envelope } from "../../src/domain/Envelope.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { eventually } from "../e2e/support/Waiting.js"
import * as World from "../e2e/support/World.js"
import { harmful, run, start } from "./support/Program.js"

const attack = "\u001b]0;owned\u0007\u202e"

let world: World.World
let dir: string
let runId: string
let log: ReadonlyArray<Envelope>
let file: string

beforeAll(async () => {
  world = await World.start()
  dir = mkdtempSync(join(tmpdir(), "runlet-trace-"))
  world.upstream.script("Trace me", [
    Script.calls({ id: "call_t", name: "lookup", args: JSON.stringify({ q: `w${attack}` }) }),
    Script.answer("One ", "two ", `three${attack}`)
  ])
  runId = (await world.client.start("Trace me")).runId
  await world.client.settled(runId)
  log = await world.client.log(runId)
  file = join(dir, "trace.jsonl")
})
afterAll(async () => {
  await world.stop()
  rmSync(dir, { recursive: true, force: true })
})

const trace = (...args: ReadonlyArray<string>) => run(["trace", ...args])
const linesOf = (text: string) => text.trimEnd().split("\n")

describe("trace export", () => {
  test("a server and its database file give the same file, whole and only its owner's to read", async () => {
    const { code, err, out } = await trace("export", runId, file, "--url", world.url())
    expect([code, err]).toEqual([0, ""])
    expect(out).toMatch(new RegExp(`^Saved ${log.length} events of ${runId} to ${file} \\(\\d+\\.\\d kB\\)\n$`))
    const [header, ...lines] = linesOf(readFileSync(file, "utf8")).map((line) => JSON.parse(line))
    expect(header).toMatchObject({
      format: "runlet-trace",
      version: 1,
      run: { runId, status: "completed", lastSeq: log.length }
    })
    expect(lines).toEqual(log)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const other = join(dir, "other.jsonl")
    const saved = await trace("export", runId, other, "--json", "--data", world.data)
    expect(JSON.parse(saved.out)).toEqual({
      runId,
      file: other,
      events: log.length,
      bytes: statSync(other).size,
      ended: true
    })
    const again = linesOf(readFileSync(other, "utf8"))
    expect(again.slice(1)).toEqual(linesOf(readFileSync(file, "utf8")).slice(1))
    expect(JSON.parse(again[0] ?? "").run).toMatchObject({ runId, status: "completed", lastSeq: log.length })
    expect((await trace("export", runId, "-", "--url", world.url())).out).toBe(readFileSync(file, "utf8"))
  })

  test("a file that is there stays, unless it is to be replaced, and what fails leaves nothing behind", async () => {
    const here = join(dir, "here.jsonl")
    writeFileSync(here, "somebody's")
    const url = ["--url", world.url()]
    expect(await trace("export", runId, here, ...url)).toMatchObject({
      code: 1,
      err: `${here} exists already. Choose another name, or add --force\n`
    })
    expect(readFileSync(here, "utf8")).toBe("somebody's")
    expect(await trace("export", "run_x", here, "--force", ...url)).toMatchObject({
      code: 1,
      err: expect.stringContaining("no such run")
    })
    expect(readFileSync(here, "utf8")).toBe("somebody's")
    expect((await trace("export", runId, here, "--force", ...url)).code).toBe(0)
    expect(readFileSync(here, "utf8")).toContain('"finish"')
    expect((await trace("export", runId, join(dir, "nowhere", "x"), ...url)).code).toBe(1)
    expect((await trace("export", "../x", ...url)).code).toBe(2)
    expect(readdirSync(dir).filter((name) => name.includes("partial"))).toEqual([])
  })

  test("a run that goes on is saved as far as it has come", async () => {
    world.upstream.script("Going on", [
      Script.reply([[Script.text("Begun"), Script.gate("trace")], Script.finish("stop"), Script.done])
    ])
    const going = await world.client.start("Going on")
    await world.client.until(going.runId, "begun", ({ text }) => text === "Begun")
    const part = join(dir, "part.jsonl")
    expect((await trace("export", going.runId, part, "--data", world.data)).out).toContain("as far as it has come")
    expect(await trace("open", part)).toMatchObject({ code: 0, out: expect.stringContaining("streaming") })
    await world.upstream.release("trace")
    await world.client.settled(going.runId)
  })
})

describe("trace open", () => {
  test("prints the timeline, with the pieces of a text as one", async () => {
    const { code, err, out } = await trace("open", file)
    expect([code, err]).toEqual([0, ""])
    expect(out).toMatch(/^ +\+0\.000 s {2}#1 +run-start +scripted$/m)
    expect(out).toMatch(/#\d+(–\d+)? +text-delta +One two three␛\]0;owned␇<U\+202E> \(\d+ characters/)
    expect(out).toMatch(/tool-call-result +lookup: done/)
    expect(out).toMatch(
      new RegExp(
        `\n\n${runId}  completed, ${log.length} events in .*\nmodel scripted, 2 iterations.*\nThe trace is whole and in order\n$`
      )
    )
    expect(harmful.exec(out)).toBeNull()

    const json = await trace("open", file, "--json")
    const document = JSON.parse(json.out)
    expect(document).toMatchObject({ runId, model: "scripted", status: "completed", events: log.length, problem: null })
    expect(document.steps[0]).toEqual({ from: 1, to: 1, at: 0, ms: 0, type: "run-start", text: "scripted" })
    expect(
      document.steps.reduce((sum: number, { from, to }: { from: number; to: number }) => sum + to - from + 1, 0)
    ).toBe(log.length)
    expect(harmful.exec(json.out)).toBeNull()
  })

  test("tells the traces of its attempts, as links where it is said where they are kept", async () => {
    const traced = join(dir, "traced.jsonl")
    const trace1 = "4bf92f3577b34da6a3ce929d0e0e4736"
    const lines = linesOf(readFileSync(file, "utf8"))
    writeFileSync(
      traced,
      lines
        .map((line) =>
          line.replace('"type":"run-start"', `"type":"run-start","trace":"00-${trace1}-00f067aa0ba902b7-01"`)
        )
        .join("\n")
    )
    const url = "https://traces.example.com/{traceId}"
    const plain = await trace("open", traced)
    expect(plain.out).toContain(`\ntrace of attempt 1  ${trace1}\n`)
    const linked = await trace("open", traced, "--trace-url", url)
    expect(linked.out).toContain(`\ntrace of attempt 1  https://traces.example.com/${trace1}\n`)
    const json = await run(["trace", "open", traced, "--json"], { env: { RUNLET_TRACE_URL: url } })
    expect(JSON.parse(json.out).traces).toEqual([
      { attempt: 1, traceId: trace1, url: `https://traces.example.com/${trace1}` }
    ])
    expect(JSON.parse((await trace("open", file, "--json")).out).traces).toEqual([])
    const refused = await trace("open", traced, "--trace-url", "javascript:{traceId}")
    expect([refused.code, refused.err]).toEqual([
      2,
      "--trace-url must be an http or https address with {traceId} in it\n"
    ])
  })

  const broken: ReadonlyArray<readonly [string, (lines: Array<string>) => string, RegExp]> = [
    [
      "is cut within a line",
      (lines) => lines.join("\n").slice(0, -40),
      /: this is no JSON; the file may be cut short here$/
    ],
    [
      "is cut between lines",
      (lines) => lines.slice(0, 10).join("\n"),
      /line 10: the file is cut short: \d+ events were written, 9 are here$/
    ],
    ["lacks an event", (lines) => lines.filter((_, i) => i !== 5).join("\n"), /line 6: event 5 is missing, this is 6$/],
    [
      "has an event twice",
      (lines) => lines.flatMap((line, i) => (i === 5 ? [line, line] : [line])).join("\n"),
      /line 7: event 6 is missing, this is 5$/
    ],
    [
      "goes on behind the end",
      (lines) => [...lines, lines.at(-1)?.replace(/"seq":(\d+)/, (_, n) => `"seq":${Number(n) + 1}`)].join("\n"),
      /finish can not stand behind a run that is completed$/
    ],
    [
      "holds another run's event",
      (lines) =>
        lines
          .map((line, i) =>
            i === 4 ? line.replaceAll(/run_[0-9a-f-]+/g, "run_01890000-0000-7000-8000-000000000001") : line
          )
          .join("\n"),
      /line 5: this event belongs to another run$/
    ],
    [
      "was changed",
      (lines) =>
        lines.map((line, i) => (i === 3 ? line.replace(/"type":"[a-z-]+"/, '"type":"run-end"') : line)).join("\n"),
      /line 4: this is no event of a run: event.* is wrong$/
    ],
    [
      "is of another version",
      (lines) => lines.map((line) => line.replace('"version":1', '"version":2')).join("\n"),
      /line 1: version 2 of the format is not known here$/
    ],
    ["is empty", () => "", /line 1: there is no event in it$/]
  ]
  test.each(broken)("says where a file %s", async (_, change, message) => {
    const bad = join(dir, "bad.jsonl")
    writeFileSync(bad, change(linesOf(readFileSync(file, "utf8"))))
    const { code, err } = await trace("open", bad)
    expect([code, linesOf(err).length]).toEqual([1, 1])
    expect(err.trimEnd()).toMatch(message)
    expect(err).toContain(`${bad}, line `)
  })

  test("takes a log without a header, and says what it can not read", async () => {
    const bare = join(dir, "bare.jsonl")
    writeFileSync(bare, `\n${linesOf(readFileSync(file, "utf8")).slice(1).join("\n\n")}\n`)
    expect((await trace("open", bare)).code).toBe(0)
    expect(await trace("open", join(dir, "nowhere.jsonl"))).toMatchObject({
      code: 1,
      err: expect.stringContaining("can not be read")
    })
    expect(existsSync(join(dir, "nowhere.jsonl"))).toBe(false)
  })

  test("shows the run in the replay page, to this machine, and lets nobody change anything", async () => {
    const program = start(["trace", "open", file, "--serve"])
    await program.says(/^Open http:\/\/127\.0\.0\.1:\d+\/runs\/run_[0-9a-f-]+\/replay/)
    const [, url = ""] = /(http:\/\/127\.0\.0\.1:\d+)/.exec(program.out()) ?? []
    const get = (path: string, init?: RequestInit) => fetch(url + path, init)
    expect((await get(`/runs/${runId}/replay`)).status).toBe(200)
    const snapshot = await (await get(`/runs/${runId}`)).json()
    const { expiresAt: _, ...real } = await world.client.snapshot(runId)
    expect(snapshot).toEqual(real)
    const events = await (
      await get(`/runs/${runId}/events?after=3`, { headers: { accept: "application/x-ndjson" } })
    ).text()
    expect(
      linesOf(events)
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line))
    ).toEqual(log.slice(3))
    expect((await get(`/runs/${runId}/events?after=${log.length}`)).status).toBe(204)
    const post = { method: "POST", headers: { "content-type": "application/json" }, body: '{"message":"x"}' }
    expect((await get("/chat", post)).status).toBe(503)
    expect((await get(`/runs/${runId}`, { method: "DELETE" })).status).toBe(409)
    expect((await get("/runs/run_x")).status).toBe(404)
    program.signal("SIGINT")
    expect((await program.ended).code).toBe(0)
    await eventually("the server to be gone", () =>
      get("/healthz").then(
        () => undefined,
        () => true
      )
    )
  })
})
