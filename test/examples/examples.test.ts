import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type { ToolPhase } from "../../src/domain/AgentEvent.js"
import { HttpTool, type Tool } from "../../src/index.js"
import { bundle, run, start } from "./support.js"

const sourceOf = (name: string) => readFileSync(join(__dirname, `${name}.ts`), "utf8")

const printed = async (name: string): Promise<ReadonlyArray<string>> => {
  const { code, output } = await run(sourceOf(name), name)
  expect({ code, output }).toMatchObject({ code: 0 })
  return output.trimEnd().split("\n")
}

describe("the examples", () => {
  it("embeds the engine in less than 60 lines", async () => {
    expect(sourceOf("embed").trimEnd().split("\n").length).toBeLessThan(60)
    const [tool, whole, view, end] = await printed("embed")
    expect(tool).toBe('count_words {"words":3}')
    expect(whole).toMatch(/^completed \d\d$/)
    expect(view).toBe("streaming 1")
    expect(end).toBe("cancelled keeping its text")
  })

  it("resumes by a policy of its own", async () => {
    expect(await printed("own-policy")).toEqual([
      "attempt 2 keeps nothing",
      "completed",
      "attempt 2 keeps everything",
      "completed"
    ])
  })

  it("writes after approval, in the transaction that records it", async () => {
    expect(await printed("write-tool")).toEqual([
      'asked: {"before":"nothing yet","after":"buy milk","version":1}',
      'applied: {"version":2}',
      '[{"text":"buy milk","version":2}]'
    ])
  })

  it("reads by a toolkit and writes by a tool that shows its work", async () => {
    expect(await printed("toolkit")).toEqual([
      "count_jars, done: 3",
      'take_jars asks: {"before":3,"after":1,"version":1}',
      'take_jars, applied: {"left":1}',
      'take_jars, done: {"error":"There are only 1 jars."}'
    ])
  })

  it("has its spans below those of the program", async () => {
    const said = (await printed("traced")).join("\n")
    const spans = said.split(/^\}$/m).flatMap((text) => {
      const [, name] = /^ {2}name: '(.+)',$/m.exec(text) ?? []
      const [, id] = /^ {2}id: '(.+)',$/m.exec(text) ?? []
      const [, parent] = /parentSpanContext: \{[^}]*spanId: '(\w+)'/.exec(text) ?? []
      return name === undefined ? [] : [{ name, id, parent }]
    })
    const below = (parent: string | undefined, depth: number): ReadonlyArray<string> =>
      spans
        .filter((span) => span.parent === parent)
        .flatMap(({ id, name }) => [`${"  ".repeat(depth)}${name}`, ...below(id, depth + 1)])
    const readme = readFileSync(join(__dirname, "../../README.md"), "utf8")
    const [, shown] = /```text\n(handle order\n[\s\S]*?)\n```/.exec(readme) ?? []
    expect(below(undefined, 0).join("\n")).toBe(shown)
    expect(said).not.toContain("/long")
  })

  const toolServer = Effect.acquireRelease(
    Effect.gen(function* () {
      const file = yield* Effect.promise(() => bundle(sourceOf("http-tool-server"), "http-tool-server"))
      return start(file, { PORT: "0" })
    }),
    (program) => Effect.promise(program.close)
  )

  it.scopedLive("serves a write tool over HTTP", () =>
    Effect.gen(function* () {
      const program = yield* toolServer
      const url = yield* Effect.sync(() => program.output().trim()).pipe(
        Effect.repeat({ until: (text) => text !== "", schedule: Schedule.spaced("20 millis") }),
        Effect.timeout("20 seconds"),
        Effect.flatMap(() => Effect.sync(() => program.output().trim()))
      )
      const tool = yield* HttpTool.make({
        name: "set_note",
        description: "Replaces the note",
        kind: "write",
        parameters: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
        url,
        statusUrl: url
      })
      const call = (phase: ToolPhase, toolCallId: string, idempotencyKey: string): Tool.ToolContext => ({
        user: "local",
        runId: "run",
        conversationId: "conversation",
        toolCallId,
        phase,
        idempotencyKey,
        currentDocument: null,
        progress: () => Effect.void
      })
      const preview = (id: string, text: string) => tool.preview?.({ text }, call("preview", id, `preview ${id}`))
      const commit = (id: string, text: string, key: string) => tool.commit?.({ text }, call("commit", id, key))

      expect(yield* preview("a", "milk") ?? Effect.void).toEqual({ before: "nothing yet", after: "milk" })
      expect(yield* preview("b", "bread") ?? Effect.void).toEqual({ before: "nothing yet", after: "bread" })
      expect(yield* tool.probe?.(call("commit", "a", "first")) ?? Effect.void).toEqual({ state: "absent" })
      expect(yield* commit("a", "milk", "first") ?? Effect.void).toEqual({ result: { version: 2 } })
      expect(yield* commit("a", "milk", "first") ?? Effect.void).toEqual({ result: { version: 2 } })
      expect(yield* tool.probe?.(call("commit", "a", "first")) ?? Effect.void).toEqual({
        state: "applied",
        result: { version: 2 }
      })
      expect(yield* Effect.flip(commit("b", "bread", "second") ?? Effect.fail(undefined))).toMatchObject({
        _tag: "ToolConflict",
        message: "The note has changed since it was shown."
      })
    }).pipe(Effect.provide(NodeHttpClient.layerUndici))
  )
})
