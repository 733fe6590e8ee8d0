/** What the page works out before anything is drawn. */
import { it } from "@effect/vitest"
import * as fc from "fast-check"
import { describe, expect } from "vitest"
import { RunletError } from "../../src/client/RunletError.js"
import { matching } from "../../src/web/chat/Conversations.js"
import * as Documents from "../../src/web/chat/Documents.js"
import * as Failure from "../../src/web/chat/Failure.js"
import * as Parts from "../../src/web/chat/Parts.js"
import * as Preview from "../../src/web/chat/Preview.js"
import { makeSender } from "../../src/web/chat/Sender.js"
import * as Turns from "../../src/web/chat/Turns.js"
import { bestOf, tables } from "../../src/web/i18n/Languages.js"

describe("the parts of an answer", () => {
  const part = (type: "text" | "reasoning", id: string, text: string, iteration = 1, at = 0) =>
    ({ type, id, text, iteration, startedAt: at, endedAt: at + 1 }) as const
  const call = (toolCallId: string) => ({ type: "tool-call", toolCallId }) as const

  it("make one sentence of what one attempt began and the next one ended", () => {
    const begun = [
      part("reasoning", "r1", "Hm"),
      part("text", "t1", "The tra"),
      part("text", "t2", "in is late.", 1, 9)
    ]
    expect(Parts.joined(begun)).toEqual([
      part("reasoning", "r1", "Hm"),
      { ...part("text", "t1", "The train is late."), endedAt: 10 }
    ])
  })

  it("stay apart where something stands between them, and from turn to turn", () => {
    const apart = [part("text", "t1", "a"), call("c"), part("text", "t1", "b"), part("text", "t1", "c", 2)]
    expect(Parts.joined(apart)).toEqual(apart)
  })

  const anyPart = fc.oneof(
    fc
      .record({
        type: fc.constantFrom("text" as const, "reasoning" as const),
        iteration: fc.constantFrom(1, 2),
        text: fc.string()
      })
      .map(({ iteration, text, type }) => part(type, "p", text, iteration)),
    fc.string().map(call)
  )

  it.prop("say, joined, what they say apart, and again joined the same", [fc.array(anyPart)], ([parts]) => {
    const joined = Parts.joined(parts)
    const said = (all: typeof joined) =>
      all.map((one) => (one.type === "tool-call" ? one.toolCallId : one.text)).join("")
    expect(said(joined)).toBe(said(parts))
    expect(Parts.joined(joined)).toEqual(joined)
  })
})

describe("the turns of a conversation", () => {
  const message = (messageId: string, role: "user" | "assistant", content: string, runId?: string) => ({
    messageId,
    role,
    content,
    runId,
    createdAt: 1
  })
  const run = (runId: string, userMessageId: string, createdAt: number) => ({ runId, userMessageId, createdAt })

  it("have their versions in the order of their making, also when the list of runs is older", () => {
    const turns = Turns.of(
      [message("m1", "user", "a", "r2"), message("x", "assistant", "A", "r2"), message("m2", "user", "b", "r9")],
      [run("r2", "m1", 2), run("r1", "m1", 1)]
    )
    expect(turns).toEqual([
      { key: "r1", question: "a", text: "A", runIds: ["r1", "r2"] },
      { key: "r9", question: "b", text: "", runIds: ["r9"] }
    ])
  })

  it("may have come from elsewhere, without a run", () => {
    expect(Turns.of([message("m1", "user", "a"), message("x", "assistant", "A")], [])).toEqual([
      { key: "m1", question: "a", text: "A", runIds: [] }
    ])
  })

  const turnsOf = fc
    .uniqueArray(fc.integer({ min: 0, max: 30 }), { maxLength: 12 })
    .map((ids) => ids.map((id) => ({ key: `r${id}`, question: `q${id}`, text: "", runIds: [`r${id}`] })))

  it.prop(
    "keep what began here, once, and everything that was loaded, in its order",
    [turnsOf, turnsOf],
    ([shown, loaded]) => {
      const before = new Set(shown.filter((_, index) => index % 2 === 0).map(({ key }) => key))
      const merged = Turns.merge(shown, loaded, before)
      expect(merged.slice(0, loaded.length)).toEqual(loaded)
      const ids = merged.flatMap(({ runIds }) => runIds)
      expect(new Set(ids).size).toBe(ids.length)
      const began = shown.filter(({ key }) => !before.has(key)).map(({ key }) => key)
      expect(ids).toEqual(expect.arrayContaining(began))
    }
  )

  it("have the first that has not ended as the one to wait for, or the last", () => {
    const turns = ["a", "b", "c"].map((key) => ({ key, question: "", text: "", runIds: [`${key}1`, `${key}2`] }))
    expect(Turns.current(turns, (runId) => runId === "a2")).toBe("b2")
    expect(Turns.current(turns, () => true)).toBe("c2")
    expect(Turns.current([], () => true)).toBeUndefined()
  })

  it("are sent along as they were when a question is put differently", () => {
    const turns = ["a", "b"].map((key) => ({ key, question: key, text: key.toUpperCase(), runIds: [] }))
    expect(Turns.branch(turns, 1, "B?", ({ text }) => text)).toEqual([
      { role: "user", content: "a" },
      { role: "assistant", content: "A" },
      { role: "user", content: "B?" }
    ])
    expect(Turns.branch(turns, 0, "A?", ({ text }) => text)).toEqual([{ role: "user", content: "A?" }])
  })
})

describe("an input that is edited", () => {
  it.prop("is the same when nothing is changed", [fc.jsonValue()], ([input]) => {
    const json: unknown = JSON.parse(JSON.stringify(input))
    expect(Preview.inputOf(Preview.fieldsOf(json))).toEqual(json)
  })

  it.each([{ "": "" }, { "": 1, a: 2 }, {}, "", null, [""]])("is the same with and without names: %j", (input) => {
    expect(Preview.inputOf(Preview.fieldsOf(input))).toEqual(input)
  })

  it("must be JSON where it is not text", () => {
    expect(() => Preview.inputOf([{ name: "n", isText: false, value: "{" }])).toThrow(SyntaxError)
  })

  it.prop(
    "shows each line of its change without its mark",
    [fc.array(fc.constantFrom("+ a", "- b", "  c", "…", ""))],
    ([lines]) => {
      const shown = Preview.diffLines(lines.join("\n"))
      expect(shown.map(({ text }) => text).join("")).toBe(lines.join("").replaceAll(/[-+ ]/g, ""))
      expect(shown.filter(({ change }) => change === "added")).toHaveLength(
        lines.filter((line) => line === "+ a").length
      )
    }
  )
})

describe("documents", () => {
  const call = (id: string, text: string, state: "applied" | "rejected" = "applied") => ({
    toolCallId: `${id}${text}`,
    toolName: "document_write",
    kind: "write" as const,
    iteration: 1,
    state,
    input: { text },
    result: { id, title: `Title ${id}`, contentHash: "h" }
  })
  const run = (...toolCalls: ReadonlyArray<ReturnType<typeof call>>) => ({ runId: "r", toolCalls })

  it("are those that were really written, as they were written last", () => {
    const runs = [run(call("1", "old"), call("2", "two")), run(call("1", "new"), call("3", "no", "rejected"))]
    expect(Documents.written(runs)).toEqual([
      { id: "1", title: "Title 1", text: "new", contentHash: "h", runId: "r" },
      { id: "2", title: "Title 2", text: "two", contentHash: "h", runId: "r" }
    ])
  })
})

describe("a search", () => {
  it("finds titles with all of its words, in any case and order", () => {
    const all = ["Ships in the fog", "Fog over trains", "Rain"].map((title) => ({
      title,
      conversationId: title,
      createdAt: 0,
      updatedAt: 0
    }))
    const titles = (search: string) => matching(all, search).map(({ title }) => title)
    expect(titles("fog")).toEqual(["Ships in the fog", "Fog over trains"])
    expect(titles(" FOG  ships ")).toEqual(["Ships in the fog"])
    expect(titles("")).toHaveLength(3)
  })
})

describe("what is sent", () => {
  const lost = new RunletError(0, { _tag: "Unreachable", message: "away" })
  const refused = new RunletError(422, { _tag: "Unprocessable", message: "no" })
  const make = () => {
    let keys = 0
    const waits: Array<number> = []
    const send = makeSender({
      tries: 3,
      pause: async (milliseconds) => void waits.push(milliseconds),
      newKey: () => `key${++keys}`
    })
    const sent: Array<string> = []
    const answering = (...answers: ReadonlyArray<RunletError | string>) => {
      const left = [...answers]
      return {
        wanted: () => true,
        waiting: () => {},
        call: async (key: string) => {
          sent.push(key)
          const answer = left.shift()
          if (answer === undefined || typeof answer !== "string") throw answer ?? lost
          return answer
        }
      }
    }
    return { send, sent, waits, answering }
  }

  it("goes under one key until its fate is known, and longer and longer apart", async () => {
    const { answering, send, sent, waits } = make()
    expect(await send({ what: "a", ...answering(lost, lost, "done") })).toBe("done")
    expect(sent).toEqual(["key1", "key1", "key1"])
    expect(waits).toEqual([1000, 2000])
    await send({ what: "a", ...answering("again") })
    expect(sent.at(-1)).toBe("key2")
  })

  it("keeps its key when it was given up, and takes a new one after a refusal or for other words", async () => {
    const { answering, send, sent } = make()
    await expect(send({ what: "a", ...answering(lost, lost, lost) })).rejects.toBe(lost)
    await send({ what: "a", ...answering("done") })
    await expect(send({ what: "b", ...answering(refused) })).rejects.toBe(refused)
    await send({ what: "b", ...answering("done") })
    expect(sent).toEqual(["key1", "key1", "key1", "key1", "key2", "key3"])
  })

  it("is let go when nobody waits for it", async () => {
    const { answering, send, sent } = make()
    let wanted = true
    const waiting = () => {
      wanted = false
    }
    expect(await send({ what: "a", ...answering(lost, "late"), wanted: () => wanted, waiting })).toBeUndefined()
    expect(sent).toHaveLength(1)
  })
})

describe("the texts", () => {
  it("tell in every language all that they are told", () => {
    for (const [key, entry] of Object.entries(tables.en)) {
      if (typeof entry !== "function") continue
      const other: unknown = Reflect.get(tables["zh-CN"], key)
      if (typeof other !== "function") throw new Error(`${key} is not told anything`)
      const told = Array.from({ length: entry.length }, (_, index) => 7 + index)
      const said: unknown = Reflect.apply(other, undefined, told)
      expect(said, key).toContain("7")
    }
  })

  it("are in the first language that somebody wants and there is", () => {
    expect(bestOf(["fr", "zh-Hant-TW", "en"])).toBe("zh-CN")
    expect(bestOf(["en-GB"])).toBe("en")
    expect(bestOf(["fr"])).toBe("en")
    expect(bestOf([])).toBe("en")
  })

  it("name every failure, and say what the server says where that tells more", () => {
    expect(Failure.ofRun({ code: "truncated", message: "m" })).toEqual({ text: "run.failed.broken", detail: "m" })
    expect(Failure.ofRun({ code: "never_heard_of", message: "m" })).toEqual({ text: "run.failed", detail: "m" })
    expect(Failure.ofError(lost)).toEqual({ text: "refused.unreachable", detail: undefined })
    expect(Failure.ofError(new Error("odd"))).toEqual({ text: "refused.other", detail: "odd" })
  })
  const lost = new RunletError(0, { _tag: "Unreachable", message: "away" })
})
