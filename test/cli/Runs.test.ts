import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import * as Proxy from "../client/support/Proxy.js"
import { send } from "../e2e/support/ToolServer.js"
import { eventually } from "../e2e/support/Waiting.js"
import * as World from "../e2e/support/World.js"
import { harmful, run, start } from "./support/Program.js"

const token = "token-of-alice-5518"
const attack = "\u001b]0;owned\u0007\u001b[2J\u202egnp.exe\u009b31m\r\u0008"

let world: World.World
let local: World.World
beforeAll(async () => {
  ;[world, local] = await Promise.all([
    World.start({ users: { alice: token, bob: "token-of-bob-7712" } }),
    World.start()
  ])
})
afterAll(async () => {
  await Promise.all([world.stop(), local.stop()])
})

/** Asks as alice. */
const runlet = (...args: ReadonlyArray<string>) =>
  run(["runs", ...args, "--url", world.url()], { env: { RUNLET_TOKEN: token } })
/** Asks the one user's server. */
const runs = (...args: ReadonlyArray<string>) => run(["runs", ...args, "--url", local.url()])
const inFile = (...args: ReadonlyArray<string>) => run(["runs", ...args, "--data", local.data])

const linesOf = (text: string) => text.trimEnd().split("\n")
const jsonOf = (text: string) => JSON.parse(text)

const write = (id: string, text: string) => ({ id, name: "save_note", args: JSON.stringify({ doc: "d", text }) })
const proposed = async (message: string, ...calls: ReadonlyArray<ReturnType<typeof write>>) => {
  local.upstream.script(message, [Script.calls(...calls), Script.answer("Done.")])
  const accepted = await local.client.start(message)
  await local.client.waiting(accepted.runId)
  return accepted.runId
}
const commits = (runId: string) => local.tools.of(runId, "commit")

describe("looking at runs", () => {
  test("a server and its database file show the same", async () => {
    local.upstream.script("Look it up", [
      Script.calls({ id: "call_look", name: "lookup", args: '{"q":"word"}' }),
      Script.answer("It is ", "a word.")
    ])
    const { conversationId, runId } = await local.client.start("Look it up")
    const snapshot = await local.client.settled(runId)

    const list = await runs("list", "--json", "--conversation", conversationId)
    expect(list).toMatchObject({ code: 0, err: "" })
    expect(jsonOf(list.out)).toEqual({
      items: [expect.objectContaining({ runId, status: "completed", model: "scripted" })]
    })
    const fromFile = jsonOf((await inFile("list", "--json", "--conversation", conversationId)).out)
    expect(jsonOf(list.out)).toMatchObject(fromFile)
    const table = await runs("list", "--status", "completed")
    expect(table.out).toMatch(new RegExp(`^${runId}  completed  scripted  \\d{4}-.*tokens$`, "m"))
    expect((await inFile("list", "--status", "completed")).out).toBe(table.out)

    const shown = jsonOf((await runs("show", runId, "--json")).out)
    expect(shown).toEqual(snapshot)
    const { expiresAt: _, ...kept } = snapshot
    expect(jsonOf((await inFile("show", runId, "--json")).out)).toEqual(kept)
    const text = (await runs("show", runId)).out
    expect(text).toContain("It is a word.")
    expect(text).toMatch(/^→ Looking up \(lookup\): done/m)
    expect((await inFile("show", runId)).out).toBe(text)

    const log = await local.client.log(runId)
    const tail = await runs("tail", runId, "--json")
    expect(linesOf(tail.out).map(jsonOf)).toEqual(log)
    expect((await inFile("tail", runId, "--json")).out).toBe(tail.out)
    expect(linesOf((await runs("tail", runId, "--json", "--after", "5")).out).map(jsonOf)).toEqual(log.slice(5))
    const told = await runs("tail", runId)
    expect(told.out).toMatch(/→ Looking up \(lookup\)\n {2}\{"q":"word"\}\n.*done.*\n\nIt is a word\.\n\n\d+ tokens/)
    expect((await inFile("tail", runId)).out).toBe(told.out)
  })

  test("pages are asked for one after the other", async () => {
    for (const name of ["One", "Two", "Three"])
      await local.client.settled((await local.client.start(`Page ${name}`)).runId)
    const all = jsonOf((await runs("list", "--json", "--limit", "200")).out).items.map(
      ({ runId }: { runId: string }) => runId
    )
    for (const ask of [runs, inFile]) {
      const first = await ask("list", "--limit", "2")
      const [, cursor = ""] = /--cursor (\S+)$/m.exec(first.out) ?? []
      const next = jsonOf((await ask("list", "--json", "--limit", "1", "--cursor", cursor)).out)
      expect(next.items[0].runId).toBe(all[2])
      expect((await ask("list", "--cursor", "x")).code).not.toBe(0)
    }
  })

  test("a run is watched over the death of its server", async () => {
    const proxy = await Proxy.start(local.url())
    local.upstream.script("Watched", [
      Script.reply([
        [Script.text("Never "), Script.text("seen twice"), Script.gate("watched")],
        Script.finish("stop"),
        Script.done
      ]),
      Script.answer("Whole again.")
    ])
    const { runId } = await local.client.start("Watched")
    const tail = start(["runs", "tail", runId, "--url", proxy.url])
    await tail.says("seen twice")
    await local.restart()
    proxy.retarget(local.url())
    proxy.cut()
    const { code, out } = await tail.ended
    expect(code).toBe(0)
    expect(out).toMatch(/Never seen twice\n\n\(attempt 2: the last 16 characters above are void.*\)\n\nWhole again\.\n/)
    const json = await run(["runs", "tail", runId, "--json", "--url", proxy.url])
    expect(linesOf(json.out).map((line) => jsonOf(line).seq)).toEqual(linesOf(json.out).map((_, index) => index + 1))
    await proxy.stop()
  })

  test("watching stops at an interrupt, and the run does not", async () => {
    local.upstream.script("Let be", [
      Script.reply([[Script.text("Begun"), Script.gate("let-be")], Script.finish("stop"), Script.done])
    ])
    const { runId } = await local.client.start("Let be")
    for (const place of [
      ["--url", local.url()],
      ["--data", local.data]
    ]) {
      const tail = start(["runs", "tail", runId, ...place])
      await tail.says("Begun")
      tail.signal("SIGINT")
      expect((await tail.ended).code).toBe(130)
    }
    await local.upstream.release("let-be")
    expect((await local.client.settled(runId)).status).toBe("completed")
  })
})

describe("stopping and continuing", () => {
  const endless = (message: string) =>
    local.upstream.script(message, [
      Script.reply([
        Array.from({ length: 600 }, () => [Script.text("more "), Script.wait(50)]).flat(),
        Script.finish("stop"),
        Script.done
      ])
    ])

  test("a cancel closes the connection to the model, wherever it comes from", async () => {
    for (const [name, cancel] of [
      ["a server", runs],
      ["a file", inFile]
    ] as const) {
      const message = `Stopped from ${name}`
      endless(message)
      const { runId } = await local.client.start(message)
      await local.client.until(runId, "streaming", ({ text }) => text.length > 5)
      const { code, out } = await cancel("cancel", runId, "--reason", "too long")
      expect([code, out]).toEqual([0, `${runId} is cancelled\n`])
      expect((await local.upstream.closed(message)).aborted).toBe(true)
      expect((await local.client.snapshot(runId)).cancelled).toEqual({ by: "user", reason: "too long" })
      const again = await cancel("cancel", runId, "--json")
      expect(jsonOf(again.out)).toEqual({ runId, status: "cancelled", lastSeq: expect.any(Number) })
      await local.check(runId)
    }
  })

  test("what has ended stays as it ended", async () => {
    const { runId } = await local.client.start("Ends by itself")
    await local.client.settled(runId)
    expect((await runs("cancel", runId)).out).toBe(`${runId} had ended before: completed\n`)
    const resumed = await runs("resume", runId)
    expect([resumed.code, resumed.err]).toEqual([
      1,
      "This run has ended (completed) and can not go on. Start another one\n"
    ])
  })

  test("a failure that allows it is resumed", async () => {
    local.upstream.script("Cut", [Script.reply([[Script.text("Half")]]), Script.answer("Whole.")])
    const { runId } = await local.client.start("Cut")
    expect(await local.client.settled(runId)).toMatchObject({ status: "failed", recoverable: true })
    expect((await runs("list", "--status", "failed")).out).toMatch(
      new RegExp(`^${runId}  failed \\(can be resumed\\)`, "m")
    )
    expect(await inFile("resume", runId)).toMatchObject({ code: 2, err: expect.stringContaining("--url") })
    const { code, out } = await runs("resume", runId)
    expect([code, out]).toEqual([0, `${runId} goes on. Watch it with \`runlet runs tail ${runId}\`\n`])
    expect(await local.client.settled(runId)).toMatchObject({ status: "completed", text: "Whole." })
  })
})

describe("deciding", () => {
  test("what waits is listed with its preview, and is approved by its run", async () => {
    const runId = await proposed("Approve this", write("call_ok", "kept"))
    for (const ask of [runs, inFile]) {
      const list = await ask("approve")
      expect(list.out).toMatch(
        /^save_note wants to write\n {2}apr_\S+, until .*\n {2}Input:\n(.*\n)* {6}"text": "kept"\n/m
      )
      expect(list.out).toContain(`runlet runs approve|reject ${runId} apr_`)
      expect(list.out).toContain('"would": "save_note"')
      const [item] = jsonOf((await ask("approve", "--json")).out).items
      expect(item).toMatchObject({ runId, toolName: "save_note", input: { doc: "d", text: "kept" } })
    }
    expect((await runs("show", runId)).out).toContain("wants to write")
    const { code, out } = await runs("approve", runId)
    expect([code, out]).toEqual([0, expect.stringMatching(/^apr_\S+ is approved\n$/)])
    expect((await local.client.settled(runId)).toolCalls[0]?.state).toBe("applied")
    expect(commits(runId)).toHaveLength(1)
    expect((await runs("approve")).out).toBe("Nothing waits for a decision\n")
    expect(await runs("approve", runId)).toMatchObject({
      code: 1,
      err: "Nothing waits for a decision in this run, which is completed\n"
    })
    await local.check(runId)
  })

  test("of two requests one is named; a rejection tells why", async () => {
    const runId = await proposed("Two", write("call_a", "first"), write("call_b", "second"))
    const both = await runs("approve", runId)
    expect(both).toMatchObject({ code: 2, err: expect.stringMatching(/Name one of apr_\S+, apr_\S+$/m) })
    const [first, second] = jsonOf((await runs("approve", "--json")).out).items
    const rejected = await runs("reject", runId, first.approvalId, "--reason", "not this", "--json")
    expect(jsonOf(rejected.out)).toEqual({
      runId,
      approvalId: first.approvalId,
      decision: "rejected",
      by: "local",
      seq: expect.any(Number)
    })
    expect((await runs("reject", runId, first.approvalId)).code).toBe(0)
    expect(await runs("approve", runId, first.approvalId)).toMatchObject({
      code: 1,
      err: expect.stringContaining("decided already: rejected")
    })
    await runs("approve", runId, second.approvalId)
    const end = await local.client.settled(runId)
    expect(end.toolCalls.map(({ state }) => state)).toEqual(["rejected", "applied"])
    expect(commits(runId).map(({ input }) => input.text)).toEqual(["second"])
    await local.check(runId)
  })

  test("an edited input is previewed again before it is written", async () => {
    const runId = await proposed("Edit this", write("call_e", "wrong"))
    expect(await runs("approve", runId, "--input", "{")).toMatchObject({
      code: 2,
      err: expect.stringContaining("JSON")
    })
    expect(await runs("approve", runId, "--input", '{"doc":1}')).toMatchObject({
      code: 1,
      err: expect.stringContaining("doc")
    })
    expect(await inFile("approve", runId, "--input", '{"doc":"d","text":"right"}')).toMatchObject({
      code: 1,
      err: expect.stringContaining("through the server")
    })
    expect((await runs("approve", runId, "--input", '{"doc":"d","text":"right"}')).out).toContain(
      "A new preview is made"
    )
    await local.client.until(runId, "asking again", ({ pendingApprovals }) => pendingApprovals[0]?.cause === "edit")
    expect(commits(runId)).toEqual([])
    expect((await runs("approve")).out).toContain("a new preview for the edited input")
    await runs("approve", runId)
    await local.client.settled(runId)
    expect(commits(runId).map(({ input }) => input.text)).toEqual(["right"])
    await local.check(runId)
  })

  test("decisions in a database file are found by the server, then and at its next start", async () => {
    const live = await proposed("Decided beside", write("call_l", "beside"))
    expect((await inFile("approve", live)).out).toMatch(/is approved\n$/)
    expect((await local.client.settled(live)).toolCalls[0]?.state).toBe("applied")
    expect(commits(live)).toHaveLength(1)

    const later = await proposed("Decided alone", write("call_m", "alone"))
    const rejected = await proposed("Rejected alone", write("call_n", "never"))
    local.server().signal("SIGTERM")
    await local.server().exited
    expect((await inFile("approve", later)).code).toBe(0)
    expect((await inFile("reject", rejected, "--reason", "no")).code).toBe(0)
    expect((await inFile("show", later)).out).toContain("queued")
    await local.restart()
    expect((await local.client.settled(later)).toolCalls[0]?.state).toBe("applied")
    expect((await local.client.settled(rejected)).toolCalls[0]?.state).toBe("rejected")
    expect([commits(later).length, commits(rejected).length]).toEqual([1, 0])
    await local.check(later)
    await local.check(rejected)
  })

  test("a call of unknown outcome is settled by a person", async () => {
    local.tools.on("save_note", "lost", (request, response) =>
      request.phase === "commit" ? void response.destroy() : send(response, { would: "save" })
    )
    local.upstream.script("Unknown", [
      Script.calls({ id: "call_u", name: "send_mail", args: '{"to":"lost"}' }),
      Script.answer("So be it.")
    ])
    local.tools.on("send_mail", "lost", (_, response) => void response.destroy())
    const { runId } = await local.client.start("Unknown")
    await local.client.waiting(runId)
    await runs("approve", runId)
    await local.client.until(runId, "in doubt", ({ pendingApprovals }) => pendingApprovals[0]?.reason === "in_doubt")
    expect((await runs("approve")).out).toContain(`runlet runs settle ${runId} apr_`)
    expect(await runs("approve", runId)).toMatchObject({
      code: 1,
      err: expect.stringContaining("retry, applied or abandon")
    })
    expect((await runs("settle", runId, "--as", "applied")).out).toMatch(/is applied\n$/)
    expect((await local.client.settled(runId)).status).toBe("completed")
  })
})

describe("what others wrote", () => {
  test("no terminal obeys it", async () => {
    local.tools.on("lookup", "evil", (_, response) => send(response, { [attack]: attack }))
    local.upstream.script("Evil", [
      Script.reply([
        [
          Script.reasoning(attack),
          Script.text(`Text ${attack}`),
          Script.toolCall({ index: 0, id: "call_evil", name: "lookup", args: JSON.stringify({ q: `evil ${attack}` }) })
        ],
        Script.finish("tool_calls"),
        Script.usage(1, 1),
        Script.done
      ]),
      Script.calls({
        id: "call_evil_2",
        name: "save_note",
        args: JSON.stringify({ doc: attack, text: `evil ${attack}` })
      }),
      Script.answer(attack)
    ])
    local.tools.on("save_note", "evil", (_, response) =>
      send(response, { title: attack, diff: `- ${attack}\n+ ${attack}` })
    )
    const { runId } = await local.client.start("Evil")
    await local.client.waiting(runId)
    const said = [
      await runs("show", runId),
      await inFile("show", runId),
      await runs("approve"),
      await runs("show", runId, "--json"),
      await runs("approve", "--json")
    ]
    await runs("reject", runId, "--reason", attack)
    await local.client.settled(runId)
    said.push(
      await runs("tail", runId),
      await inFile("tail", runId),
      await runs("tail", runId, "--json"),
      await runs("show", runId)
    )
    for (const { code, err, out } of said) {
      expect([code, err]).toEqual([0, ""])
      expect(out).toContain(out.startsWith("{") ? "\\u001b" : "␛]0;owned␇")
      expect(harmful.exec(out)).toBeNull()
    }
    const unknown = await runs("show", attack.replace("\r\u0008", ""))
    expect(harmful.exec(unknown.err)).toBeNull()
  })
})

describe("what goes wrong", () => {
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<string>, number, RegExp]> = [
    [
      "no server",
      ["list", "--url", "http://127.0.0.1:1"],
      1,
      /^No server answers at http:\/\/127\.0\.0\.1:1\. Start one/
    ],
    ["no address", ["list", "--url", "ftp://example.org"], 2, /is no address of a server/],
    ["credentials in the address", ["list", "--url", "http://a:b@127.0.0.1:1"], 2, /without credentials/],
    ["two places", ["list", "--url", "http://127.0.0.1:1", "--data", "x.db"], 2, /either --data or --url/],
    ["a user of a server", ["list", "--user", "alice"], 2, /--user belongs to --data/],
    ["no database", ["list", "--data", "nowhere.db"], 1, /^There is no database nowhere\.db\. Choose one with --data/],
    ["no token file", ["list", "--token-file", "nowhere"], 2, /nowhere of --token-file can not be read/],
    ["a limit out of range", ["list", "--limit", "0"], 2, /from 1 to 200/],
    ["a negative place", ["tail", "run_x", "--after", "-1"], 2, /0 or more/]
  ]
  test.each(cases)("%s", async (_, args, code, message) => {
    const result = await run(["runs", ...args])
    expect(result).toMatchObject({ code, out: "", err: expect.stringMatching(message) })
    expect(linesOf(result.err)).toHaveLength(1)
  })

  test("a token comes from the environment or a file, decides whose runs there are, and is never printed", async () => {
    const bob = "token-of-bob-7712"
    const alice = world.as(token)
    const { runId } = await alice.start("[rounds 0] Mine")
    await alice.settled(runId)
    const file = join(world.data, "..", "token")
    writeFileSync(file, `${bob}\n`)
    const url = ["--url", world.url()]
    const mine = await runlet("show", runId)
    const missing = await run(["runs", "show", runId, ...url])
    const wrong = await run(["runs", "show", runId, ...url], { env: { RUNLET_TOKEN: "wrong-token-9931" } })
    const others = await run(["runs", "show", runId, ...url, "--token-file", file])
    const broken = await run(["runs", "show", runId, ...url], { env: { RUNLET_TOKEN: "two tokens" } })
    expect(mine.code).toBe(0)
    expect(missing).toMatchObject({ code: 1, err: expect.stringContaining("wants a token. Set RUNLET_TOKEN") })
    expect(wrong).toMatchObject({ code: 1, err: expect.stringContaining("does not accept the token") })
    expect(others).toMatchObject({ code: 1, err: expect.stringContaining("no such run") })
    expect(broken).toMatchObject({ code: 2, err: "RUNLET_TOKEN holds no token\n" })
    for (const { err, out } of [mine, missing, wrong, others, broken])
      expect(out + err).not.toMatch(/token-of|wrong-token|two tokens/)

    const data = ["--data", world.data]
    expect((await run(["runs", "show", runId, ...data, "--user", "alice"])).code).toBe(0)
    expect(await run(["runs", "show", runId, ...data])).toMatchObject({
      code: 1,
      err: expect.stringContaining("--user")
    })
  })

  test("a stranger that answers is told from a server", async () => {
    const stranger = await Proxy.start(local.tools.url)
    expect(await run(["runs", "list", "--url", stranger.url])).toMatchObject({
      code: 1,
      err: expect.stringContaining("is no server of Runlet")
    })
    await stranger.stop()
    const foreign = join(world.data, "..", "foreign.db")
    writeFileSync(foreign, "no database at all, but long enough to be looked at".repeat(100))
    expect(await run(["runs", "list", "--data", foreign])).toMatchObject({
      code: 1,
      err: expect.stringContaining("runlet doctor")
    })
    expect(existsSync(`${foreign}-wal`)).toBe(false)
  })

  test("a reader that has seen enough ends the program without a word", async () => {
    local.upstream.script("Long", [Script.answer(...Array.from({ length: 3000 }, (_, i) => `word ${i} `))])
    const { runId } = await local.client.start("Long")
    await local.client.settled(runId)
    const tail = start(["runs", "tail", runId, "--json", "--url", local.url()])
    await eventually("something", () => (tail.out() === "" ? undefined : true))
    tail.deafen()
    const { code, err } = await tail.ended
    expect([0, 141]).toContain(code)
    expect(err).toBe("")
  })
})
