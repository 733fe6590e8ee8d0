import { afterAll, beforeAll, describe, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import * as Proxy from "../client/support/Proxy.js"
import { send } from "../e2e/support/ToolServer.js"
import { eventually } from "../e2e/support/Waiting.js"
import * as World from "../e2e/support/World.js"
import { harmful, inTerminal, type Program, run, start } from "./support/Program.js"

const attack = "\u001b]0;owned\u0007\u001b[2J\u009b31m\u202e"
const interrupt = "\u0003"
const endOfInput = "\u0004"

let world: World.World
beforeAll(async () => {
  world = await World.start({ models: { other: { provider: "demo" } } })
})
afterAll(() => world.stop())

const url = () => ["--url", world.url()]
const piped = (input: string, ...args: ReadonlyArray<string>) => start(["chat", ...url(), ...args], { input })
const terminal = (...args: ReadonlyArray<string>) => inTerminal(["chat", ...url(), ...args])

const newest = async () => {
  const { body } = await world.client.call("GET", "/runs?limit=1")
  return String(body.items[0].runId)
}
const runOf = async (message: string): Promise<string> => {
  await world.upstream.received(message)
  return newest()
}
const slowly = (count: number) =>
  Script.reply([
    Array.from({ length: count }, (_, i) => [Script.text(`w${i} `), Script.wait(30)]).flat(),
    Script.finish("stop"),
    Script.done
  ])
/** An answer that is cut by the end of its server, and a whole one for the attempt after it. */
const interrupted = (gate: string) => [
  Script.reply([
    [Script.text("Void, "), Script.text("all of it"), Script.gate(gate)],
    Script.finish("stop"),
    Script.done
  ]),
  Script.answer("Said ", "once.")
]
const write = (id: string, text: string) => ({ id, name: "save_note", args: JSON.stringify({ doc: "d", text }) })

/** What a program says behind what it said before. */
const listen = (program: Program) => {
  let from = 0
  return async (text: string | RegExp) => {
    const found = await eventually(`the program to say ${text}`, () => {
      const rest = program.out().slice(from)
      const index = typeof text === "string" ? rest.indexOf(text) : rest.search(text)
      if (index === -1) return undefined
      const length = typeof text === "string" ? text.length : (text.exec(rest)?.[0].length ?? 0)
      return { rest: rest.slice(0, index + length), index: from + index + length }
    }).catch((error) => {
      throw new Error(`${String(error)} in:\n${program.out().slice(from)}`)
    })
    from = found.index
    return found.rest
  }
}

describe("a question in a pipe", () => {
  test("gives the answer alone, a paragraph for each turn", async () => {
    world.upstream.script("Two turns", [
      Script.reply([
        [
          Script.reasoning("Hm."),
          Script.text("Let me see."),
          Script.toolCall({ index: 0, id: "call_p", name: "lookup", args: '{"q":"x"}' })
        ],
        Script.finish("tool_calls"),
        Script.usage(1, 1),
        Script.done
      ]),
      Script.answer(`Here${attack} it is.`)
    ])
    const { code, err, out } = await piped("Two turns\n").ended
    expect([code, err]).toEqual([0, ""])
    expect(out).toBe("Let me see.\n\nHere␛]0;owned␇␛[2J<U+009B>31m<U+202E> it is.\n")
  })

  test("what a crash of the server made void is not in it", async () => {
    const proxy = await Proxy.start(world.url())
    world.upstream.script("Over a crash", interrupted("crash"))
    const program = start(["chat", "--url", proxy.url], { input: "Over a crash" })
    const runId = await runOf("Over a crash")
    await world.client.until(runId, "streaming", ({ text }) => text.includes("all of it"))
    await world.restart()
    proxy.retarget(world.url())
    proxy.cut()
    expect(await program.ended).toEqual({ code: 0, err: "", out: "Said once.\n" })
    await proxy.stop()
    await world.check(runId)
  })

  test("as JSON it is the log; the exit code is the outcome", async () => {
    const json = await piped("", "Whole", "--json").ended
    const lines = json.out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    expect([json.code, lines]).toEqual([0, await world.client.log(lines[0].runId)])

    world.upstream.script("Fails", [Script.reply([[Script.text("Half")]])])
    const failed = await piped("Fails").ended
    expect(failed).toMatchObject({
      code: 1,
      out: "Half\n",
      err: expect.stringMatching(/^The answer failed: .*runlet runs resume run_/)
    })

    world.upstream.script("Waits", [Script.calls(write("call_w", "x")), Script.answer("Done.")])
    const waits = await piped("Waits").ended
    const runId = await newest()
    expect(waits).toMatchObject({ code: 3, out: "", err: expect.stringContaining(`runlet runs approve ${runId}`) })
    await run(["runs", "reject", runId, ...url()])
    await world.client.settled(runId)
  })

  test("an interrupt stops the run, and with it what it costs", async () => {
    world.upstream.script("Stop in a pipe", [slowly(600)])
    const program = piped("Stop in a pipe")
    const runId = await runOf("Stop in a pipe")
    await world.client.until(runId, "streaming", ({ text }) => text.length > 5)
    program.signal("SIGINT")
    const { code, err } = await program.ended
    expect([code, err]).toEqual([130, "\nStopped\n"])
    expect((await world.upstream.closed("Stop in a pipe")).aborted).toBe(true)
    expect((await world.client.snapshot(runId)).cancelled).toEqual({ by: "user" })
    await world.check(runId)
  })

  test("what can not be asked is told in one line", async () => {
    const cases: ReadonlyArray<readonly [ReadonlyArray<string>, string, number, RegExp]> = [
      [url(), "", 2, /^There is no question\. Give it as an argument/],
      [[...url(), "--model", "nobody", "x"], "", 2, /^The server has no model nobody\. Choose one of /],
      [[...url(), "--conversation", "conv_x", "x"], "", 1, /no such conversation/],
      [["--url", "http://127.0.0.1:1", "x"], "", 1, /^No server answers at/]
    ]
    for (const [args, input, code, message] of cases) {
      const result = await run(["chat", ...args], { input })
      expect(result).toMatchObject({ code, out: "", err: expect.stringMatching(message) })
      expect(result.err.trimEnd().split("\n")).toHaveLength(1)
    }
  })
})

test("help, and completions for a shell, are plain text in a pipe", async () => {
  const help = await run(["runs", "approve", "--help"])
  expect([help.code, harmful.exec(help.out)]).toEqual([0, null])
  expect(help.out).toContain("without a run: list all that waits")
  const { out } = await run(["--completions", "bash"])
  expect(out).toMatch(/runlet,runs\)/)
  const commands = new Map(
    [...out.matchAll(/^ +(runlet[a-z_]*)\)\n +opts="([^"]*)"/gm)].map(([, name = "", words = ""]) => [name, words])
  )
  const ends = [...commands.keys()].filter((name) => ![...commands.keys()].some((one) => one.startsWith(`${name}_`)))
  expect(ends.length).toBeGreaterThan(12)
  // Whatever says something says it to programs too.
  expect(ends.filter((name) => !commands.get(name)?.includes("--json"))).toEqual(["runlet__serve"])
})

describe("a conversation in a terminal", () => {
  test("streams with thinking and tools, goes on, and can be continued later", async () => {
    world.upstream.script("Show all", [
      Script.reply([
        [
          Script.reasoning(`Thinking${attack}`),
          Script.text("First"),
          Script.toolCall({ index: 0, id: "call_s", name: "lookup", args: '{"q":"x"}' })
        ],
        Script.finish("tool_calls"),
        Script.usage(1, 1),
        Script.done
      ]),
      Script.reply([
        [Script.text("word "), Script.gate("words"), Script.text("by word")],
        Script.finish("stop"),
        Script.usage(1, 1),
        Script.done
      ])
    ])
    const program = terminal()
    const hears = listen(program)
    await hears("> ")
    program.write("Show all\r")
    await hears("\u001b[2mThinking␛]0;owned␇")
    await hears("First")
    await hears("→ Looking up (lookup)")
    await hears("lookup: done")
    await hears("word ")
    await world.upstream.release("words")
    await hears("by word")
    await hears("tokens")
    await hears("> ")
    const first = await newest()
    program.write("And then?\r")
    const second = await runOf("And then?")
    await hears("tokens")
    await hears("> ")
    const { conversationId } = await world.client.snapshot(first)
    expect((await world.client.snapshot(second)).conversationId).toBe(conversationId)
    program.write(endOfInput)
    await hears(`runlet chat --conversation ${conversationId}`)
    expect((await program.ended).code).toBe(0)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they must not be there
    expect(program.out()).not.toMatch(/\u001b\]0|\u0007|\u001b\[2J|\u009b|\u202e/)

    const later = terminal("--conversation", conversationId)
    const hearsLater = listen(later)
    await hearsLater("> ")
    later.write("Later\r")
    const third = await runOf("Later")
    await hearsLater("tokens")
    expect((await world.client.snapshot(third)).conversationId).toBe(conversationId)
    await hearsLater("> ")
    later.write(interrupt)
    expect((await later.ended).code).toBe(0)
  })

  test("Ctrl-C stops the answer and leaves the conversation; twice it leaves at once", async () => {
    world.upstream.script("Stop me", [slowly(600)])
    const program = terminal()
    const hears = listen(program)
    await hears("> ")
    program.write("Stop me\r")
    await hears("w3 ")
    const runId = await newest()
    program.write(interrupt)
    await hears("(stopping; Ctrl-C again quits)")
    await hears("stopped")
    expect((await world.upstream.closed("Stop me")).aborted).toBe(true)
    expect((await world.client.snapshot(runId)).cancelled).toEqual({ by: "user" })
    await hears("> ")

    const proxy = await Proxy.start(world.url())
    world.upstream.script("Stop me twice", [slowly(600)])
    const other = inTerminal(["chat", "--url", proxy.url])
    const hearsOther = listen(other)
    await hearsOther("> ")
    other.write("Stop me twice\r")
    await hearsOther("w3 ")
    proxy.refuse(true)
    proxy.cut()
    await hearsOther("(the connection is lost, trying again)")
    other.write(interrupt)
    await hearsOther("(stopping; Ctrl-C again quits)")
    other.write(interrupt)
    expect((await other.ended).code).toBe(130)
    await world.client.cancel(await runOf("Stop me twice"))
    await proxy.stop()
    program.write(endOfInput)
    await program.ended
  })

  test("shows what a tool wants to write, and approves, rejects and edits it", async () => {
    world.tools.on("save_note", "with a diff", (request, response) =>
      send(
        response,
        request.phase === "preview" ? { title: "A note", diff: `  same\n- old${attack}\n+ new` } : { saved: true }
      )
    )
    world.upstream.script("Write", [
      Script.calls(write("call_1", "with a diff")),
      Script.calls(write("call_2", "unwanted")),
      Script.calls(write("call_3", "wrong")),
      Script.answer("All done.")
    ])
    const program = terminal()
    const hears = listen(program)
    await hears("> ")
    program.write("Write\r")
    const shown = await hears("Approve? [y]es, [n]o, [e]dit, [l]ater: ")
    expect(shown).toContain("save_note wants to write")
    expect(shown).toContain("A note")
    expect(shown).toContain("\u001b[31m- old␛]0;owned␇␛[2J")
    expect(shown).toContain("\u001b[32m+ new\u001b[39m")
    const runId = await runOf("Write")
    expect(world.tools.of(runId, "commit")).toEqual([])
    program.write("y\r")
    await hears("save_note: applied")
    await hears("Approve?")
    program.write("n\r")
    await hears("Why not")
    program.write("not this one\r")
    await hears("rejected by local: not this one")
    await hears("Approve?")
    program.write("e\r")
    await hears("New input: ")
    program.write(`\u0015{"doc":1}\r`)
    await hears("doc")
    await hears("Approve?")
    program.write("e\r")
    await hears("New input: ")
    program.write(`\u0015{"doc":"d","text":"right"}\r`)
    await hears("a new preview for the edited input")
    await hears("Approve?")
    program.write("l\r")
    await hears("/continue asks again")
    await hears("> ")
    expect((await world.client.snapshot(runId)).status).toBe("waiting_approval")
    program.write("/continue\r")
    await hears("Approve?")
    // Somebody else is faster.
    expect((await run(["runs", "approve", runId, ...url()])).code).toBe(0)
    await hears("(somebody else has decided)")
    await hears("All done.")
    await hears("> ")
    program.write(endOfInput)
    await program.ended
    expect(world.tools.of(runId, "commit").map(({ input }) => input.text)).toEqual(["with a diff", "right"])
    await world.check(runId)
  })

  test("comes back by itself when its server was killed", async () => {
    const proxy = await Proxy.start(world.url())
    world.upstream.script("Killed", interrupted("killed"))
    const program = inTerminal(["chat", "--url", proxy.url])
    const hears = listen(program)
    await hears("> ")
    program.write("Killed\r")
    await hears("all of it")
    const runId = await newest()
    await world.restart()
    proxy.retarget(world.url())
    proxy.cut()
    await hears("(the connection is lost, trying again)")
    await hears("(connected again)")
    await hears(/attempt 2: the last 15 characters above are void/)
    await hears("Said once.")
    await hears("> ")
    program.write(endOfInput)
    expect((await program.ended).code).toBe(0)
    await proxy.stop()
    await world.check(runId)
  })

  test("has words of its own, and no colours where none are wanted", async () => {
    world.upstream.script("Cut off", [Script.reply([[Script.text("Half")]]), Script.answer("Whole.")])
    const program = inTerminal(["chat", ...url()], { NO_COLOR: "1" })
    const hears = listen(program)
    await hears("> ")
    program.write("/help\r")
    await hears("Everything else is sent.")
    program.write("/model\r")
    await hears(/\* scripted[\s\S]* other/)
    program.write("/model nobody\r")
    await hears("The server has no model nobody")
    program.write("/plan\r")
    await hears("Plan mode is on")
    await hears("plan> ")
    program.write("Planned\r")
    const runId = await runOf("Planned")
    await hears("tokens")
    expect((await world.client.snapshot(runId)).mode).toBe("plan")
    await hears("plan> ")
    program.write("/plan\r")
    await hears("Plan mode is off")
    program.write("Cut off\r")
    await hears("(it can be resumed)")
    await hears("(/continue goes on)")
    await hears("> ")
    program.write("/continue\r")
    await hears("Whole.")
    await hears("> ")
    // Several lines that arrive together are one question.
    program.write("First line\rSecond line\r")
    await world.upstream.received("First line\nSecond line")
    await hears("tokens")
    await hears("> ")
    program.write("/quit\r")
    expect((await program.ended).code).toBe(0)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: no styles
    expect(program.out()).not.toMatch(/\u001b\[(1|2|31|32|33)m/)
    expect(harmful.test("\u001b")).toBe(true)
  })
})
