import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { ToolPhase } from "../../src/domain/AgentEvent.js"
import type { CurrentDocument } from "../../src/domain/RunInput.js"
import * as Sqlite from "../../src/store/Sqlite.js"
import * as Diff from "../../src/tool/documents/Diff.js"
import { Documents } from "../../src/tool/documents/Documents.js"
import * as DocumentTools from "../../src/tool/documents/DocumentTools.js"
import * as MemoryDocuments from "../../src/tool/documents/MemoryDocuments.js"
import * as Search from "../../src/tool/documents/Search.js"
import * as SqliteDocuments from "../../src/tool/documents/SqliteDocuments.js"
import * as Json from "../../src/tool/Json.js"
import { ReadClient, WriteClient } from "../../src/tool/SqlClients.js"
import { ToolConflict } from "../../src/tool/Tool.js"
import * as ToolRunner from "../../src/tool/ToolRunner.js"

interface Call {
  readonly user?: string
  readonly key?: string
  readonly preview?: unknown
  readonly open?: CurrentDocument
}

const limits = { timeoutMs: 5000, maxResultBytes: 262_144 }

const context = (phase: ToolPhase, { key = "key", open, preview, user = "alice" }: Call) => ({
  user,
  runId: "run",
  conversationId: "conversation",
  toolCallId: "call",
  phase,
  idempotencyKey: key,
  currentDocument: open ?? null,
  preview,
  progress: () => Effect.void
})

const find = (name: string) =>
  Effect.flatMap(DocumentTools.make, (tools) => {
    const tool = tools.find((tool) => tool.name === name)
    return tool === undefined ? Effect.dieMessage(`no tool ${name}`) : Effect.succeed(tool)
  })

const call = (name: string, phase: ToolPhase, input: unknown, options: Call = {}) =>
  Effect.gen(function* () {
    const tool = yield* find(name)
    const checked = yield* tool.check(input)
    return yield* ToolRunner.run({ tool, phase, input: checked, context: context(phase, options), ...limits })
  })

/** What the engine does with a commit: its `within` and the record of its result in one transaction. */
const transact = (within: Effect.Effect<void, ToolConflict>) =>
  Effect.flatMap(Effect.serviceOption(WriteClient), (client) =>
    Option.isNone(client) ? within : Effect.catchTag(client.value.withTransaction(within), "SqlError", Effect.die)
  )

const commit = (name: string, input: unknown, options: Call = {}) =>
  Effect.gen(function* () {
    const outcome = yield* call(name, "commit", input, options)
    if (outcome._tag === "Settled" && outcome.ok) {
      yield* transact(outcome.within ?? Effect.void)
    }
    return outcome
  })

/** A write as a person confirms it: preview, then commit of what was shown. */
const confirmed = (name: string, input: unknown, options: Call = {}) =>
  Effect.gen(function* () {
    const shown = yield* call(name, "preview", input, options)
    if (shown._tag !== "Settled" || !shown.ok) {
      return yield* Effect.dieMessage(`no preview: ${JSON.stringify(shown)}`)
    }
    return yield* commit(name, input, { ...options, preview: shown.result })
  })

const idOf = (outcome: ToolRunner.ToolOutcome): string => {
  const result = outcome._tag === "Settled" ? outcome.result : null
  const id = typeof result === "object" && result !== null && "id" in result ? result.id : undefined
  return typeof id === "string" ? id : expect.fail(`no id in ${JSON.stringify(outcome)}`)
}

const file = Layer.unwrapScoped(
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const directory = yield* fs.makeTempDirectoryScoped()
    return Sqlite.layer({ filename: `${directory}/test.db` })
  })
).pipe(Layer.provide(NodeFileSystem.layer))

const backends = [
  ["memory", MemoryDocuments.layer],
  ["sqlite", Layer.provideMerge(SqliteDocuments.layer, file)]
] as const

for (const [backend, layer] of backends) {
  const test = <A, E>(title: string, body: () => Effect.Effect<A, E, Documents>) =>
    it.scoped(title, () => Effect.provide(body(), layer))

  describe(`documents in ${backend}`, () => {
    test("the product's pages are found by a question, in both languages", () =>
      Effect.gen(function* () {
        const documents = yield* Documents
        const best = (query: string) =>
          Effect.map(documents.search({ user: "alice", query, limit: 3 }), (hits) => hits.map(({ id }) => id))
        expect((yield* best("How does a client resume a run?"))[0]).toBe("runlet/resume")
        expect((yield* best("how do approvals work"))[0]).toBe("runlet/approvals")
        expect((yield* best("Connecting a real model?"))[0]).toBe("runlet/models")
        expect((yield* best("cancelling"))[0]).toBe("runlet/cancel")
        expect((yield* best("断线后如何恢复？"))[0]).toBe("runlet/zh")
        expect((yield* best("审批"))[0]).toBe("runlet/zh")
        expect(yield* best("id")).not.toEqual([])
        expect(yield* best("zzzyyyxxx")).toEqual([])
        expect(yield* best("")).toEqual([])
        for (const odd of ['"', "'; DROP TABLE documents; --", "a OR b NEAR(", "%", "_", "\\", "*", "\u0000", "🐼"]) {
          yield* best(odd)
        }
      }))

    test("reading gives the text in parts, and its hash", () =>
      Effect.gen(function* () {
        const text = "0123456789".repeat(1500)
        const id = idOf(yield* confirmed("document_write", { title: " Long ", text }))
        const first = yield* call("document_read", "execute", { id })
        expect(first).toMatchObject({
          ok: true,
          result: { title: "Long", version: 1, nextOffset: 12_000, readOnly: false, contentHash: Json.sha256(text) }
        })
        expect(yield* call("document_read", "execute", { id, offset: 12_000 })).toMatchObject({
          result: { text: text.slice(12_000) }
        })
        expect(yield* call("document_read", "execute", {}, { open: { id } })).toMatchObject({ result: { id } })
        expect(yield* call("document_read", "execute", {})).toMatchObject({ ok: false })
        const documents = yield* Documents
        expect(yield* documents.describe({ user: "alice", id })).toMatchObject(
          Option.some({ title: "Long", version: 1, contentHash: Json.sha256(text) })
        )
      }))

    test("what belongs to somebody else does not exist", () =>
      Effect.gen(function* () {
        const id = idOf(yield* confirmed("document_write", { title: "Diary", text: "a secret zebra" }))
        yield* confirmed("memory_write", { text: "likes zebras" }, { key: "memory" })
        const bob = { user: "bob" }
        const missing = yield* call("document_read", "execute", { id: "doc_nothing" }, bob)
        expect(JSON.stringify(yield* call("document_read", "execute", { id }, bob))).toBe(
          JSON.stringify(missing).replaceAll("doc_nothing", id)
        )
        expect(yield* call("document_search", "execute", { query: "zebra" }, bob)).toMatchObject({
          result: { results: [] }
        })
        expect(yield* call("memory_recall", "execute", {}, bob)).toMatchObject({ result: { memories: [] } })
        expect(yield* call("document_update", "preview", { id, text: "x" }, bob)).toMatchObject({ ok: false })
        expect(yield* commit("document_update", { id, text: "x" }, { ...bob, preview: { version: 1 } })).toMatchObject({
          _tag: "Conflict"
        })
        const documents = yield* Documents
        const forged = yield* documents.update({ user: "bob", key: "k", id, version: 1, title: "x", text: "x" })
        expect(yield* Effect.flip(transact(forged.within ?? Effect.void))).toBeInstanceOf(ToolConflict)
        expect((yield* documents.list({ user: "bob" })).every(({ readOnly }) => readOnly)).toBe(true)
        // The same key of another user is another act.
        expect(idOf(yield* confirmed("document_write", { title: "Diary", text: "mine" }, bob))).not.toBe(id)
        expect(yield* call("document_read", "execute", { id })).toMatchObject({ result: { text: "a secret zebra" } })
      }))

    test("a write shows what it does, and does it exactly once for a key", () =>
      Effect.gen(function* () {
        const input = { title: "List", text: "one\ntwo" }
        expect(yield* call("document_write", "preview", input)).toMatchObject({
          ok: true,
          result: { action: "create", title: "List", after: "one\ntwo", diff: "+ one\n+ two" }
        })
        const documents = yield* Documents
        const own = Effect.map(documents.list({ user: "alice" }), (all) => all.filter(({ readOnly }) => !readOnly))
        expect(yield* own).toEqual([])
        const first = yield* call("document_write", "commit", input)
        const again = yield* call("document_write", "commit", input)
        expect(first).toEqual({ ...again, within: expect.anything() })
        for (const outcome of [first, again]) {
          yield* transact(outcome._tag === "Settled" ? (outcome.within ?? Effect.void) : Effect.void)
        }
        expect(yield* own).toHaveLength(1)
        const later = yield* commit("document_write", input)
        expect(later).toMatchObject({ result: { id: idOf(first) } })
        expect(yield* own).toHaveLength(1)
        yield* commit("document_write", input, { key: "another" })
        expect(yield* own).toHaveLength(2)
      }))

    test("whether an act has happened is known exactly", () =>
      Effect.gen(function* () {
        const tool = yield* find("document_write")
        const probe = ToolRunner.probe(tool, context("commit", {}), limits)
        expect(yield* probe).toEqual({ state: "absent" })
        const outcome = yield* call("document_write", "commit", { title: "T", text: "t" })
        expect(yield* probe).toEqual({ state: "absent" })
        yield* transact(outcome._tag === "Settled" ? (outcome.within ?? Effect.void) : Effect.void)
        expect(yield* probe).toMatchObject({ state: "applied", result: { id: idOf(outcome), version: 1 } })
        expect(yield* ToolRunner.probe(tool, context("commit", { user: "bob" }), limits)).toEqual({ state: "absent" })
      }))

    test("an update shows the difference and applies to what was shown alone", () =>
      Effect.gen(function* () {
        const id = idOf(yield* confirmed("document_write", { title: "List", text: "one\ntwo\nthree" }))
        const input = { id, find: "two", replace: "2" }
        const shown = yield* call("document_update", "preview", input)
        expect(shown).toMatchObject({
          result: { title: "List", version: 1, before: "one\ntwo\nthree", after: "one\n2\nthree" }
        })
        expect(shown).toMatchObject({ result: { diff: "  one\n- two\n+ 2\n  three" } })
        const preview = shown._tag === "Settled" ? shown.result : null
        const first = yield* commit("document_update", input, { key: "first", preview })
        expect(first).toMatchObject({ ok: true, result: { id, version: 2 } })
        const second = yield* commit("document_update", { id, text: "other" }, { key: "second", preview })
        expect(second).toMatchObject({ _tag: "Conflict" })
        expect(yield* call("document_read", "execute", { id })).toMatchObject({ result: { text: "one\n2\nthree" } })
        // The key is looked at before the version: the act's own effect is no conflict.
        expect(yield* commit("document_update", input, { key: "first", preview })).toMatchObject({
          ok: true,
          result: { version: 2 }
        })
        expect(yield* commit("document_update", { id, text: "x" }, { key: "unseen" })).toMatchObject({ ok: false })
      }))

    test("of two commits that race only one is applied", () =>
      Effect.gen(function* () {
        const id = idOf(yield* confirmed("document_write", { title: "List", text: "v1" }))
        const preview = { version: 1 }
        const one = yield* call("document_update", "commit", { id, text: "one" }, { key: "one", preview })
        const two = yield* call("document_update", "commit", { id, text: "two" }, { key: "two", preview })
        const within = (outcome: ToolRunner.ToolOutcome) =>
          outcome._tag === "Settled" ? (outcome.within ?? Effect.void) : Effect.dieMessage("not settled")
        yield* transact(within(one))
        expect(yield* Effect.flip(transact(within(two)))).toBeInstanceOf(ToolConflict)
        expect(yield* call("document_read", "execute", { id })).toMatchObject({ result: { text: "one", version: 2 } })
        // The refused act left no trace: it may be shown and tried again.
        const documents = yield* Documents
        expect(yield* documents.applied({ user: "alice", key: "two" })).toEqual(Option.none())
        expect((yield* documents.search({ user: "alice", query: "one", limit: 5 })).map((hit) => hit.id)).toContain(id)
      }))

    test("changes that make no sense are refused before anybody is asked", () =>
      Effect.gen(function* () {
        const id = idOf(yield* confirmed("document_write", { title: "List", text: "a a" }))
        const refused = [
          { id },
          { id, title: "List" },
          { id, text: "a a" },
          { id, find: "b", replace: "c" },
          { id, find: "a", replace: "c" },
          { id, find: "a a", replace: "c", text: "d" },
          { id: "runlet/runs", text: "mine now" },
          { id: "doc_nothing", text: "x" }
        ]
        for (const input of refused) {
          expect(yield* call("document_update", "preview", input)).toMatchObject({ _tag: "Settled", ok: false })
        }
        const tool = yield* find("document_write")
        for (const input of [{ title: "", text: "x" }, { title: "x", text: "y".repeat(20_001) }, { text: "x" }]) {
          expect((yield* Effect.either(tool.check(input)))._tag).toBe("Left")
        }
      }))

    test("memories are kept and recalled", () =>
      Effect.gen(function* () {
        yield* confirmed("memory_write", { text: "My dog is called Rex" }, { key: "a" })
        yield* confirmed("memory_write", { text: "我喜欢喝绿茶" }, { key: "b" })
        expect(yield* call("memory_recall", "execute", { query: "the dog" })).toMatchObject({
          result: { memories: [{ text: "My dog is called Rex" }] }
        })
        expect(yield* call("memory_recall", "execute", { query: "绿茶" })).toMatchObject({
          result: { memories: [{ text: "我喜欢喝绿茶" }] }
        })
        const all = yield* call("memory_recall", "execute", {})
        expect(all._tag === "Settled" && JSON.stringify(all.result)).toMatch(/Rex/)
        expect(yield* call("memory_recall", "execute", { query: "zebra" })).toMatchObject({ result: { memories: [] } })
      }))

    test("any text is kept exactly", () =>
      Effect.forEach(
        ["a\u0000b", "😀 é 🇨🇭", '{"__proto__":1}', "line\r\nline", "<img src=x onerror=1>"],
        (text, index) =>
          Effect.gen(function* () {
            const id = idOf(yield* confirmed("document_write", { title: "T", text }, { key: `k${index}` }))
            expect(yield* call("document_read", "execute", { id })).toMatchObject({ result: { text } })
          })
      ))
  })
}

describe("documents in a file", () => {
  it.scoped("survive, with the product's pages brought up to date", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const filename = `${yield* fs.makeTempDirectoryScoped()}/test.db`
      const page = (id: string, text: string) => ({
        id,
        title: id,
        text,
        version: 1,
        contentHash: Json.sha256(text),
        readOnly: true,
        updatedAt: 0
      })
      const opened = (seed: ReadonlyArray<ReturnType<typeof page>>) =>
        Layer.provideMerge(SqliteDocuments.layerWith(seed), Sqlite.layer({ filename }))
      const id = yield* Effect.map(confirmed("document_write", { title: "Mine", text: "elephant" }), idOf).pipe(
        Effect.provide(opened([page("a", "apple"), page("b", "banana")]))
      )
      yield* Effect.gen(function* () {
        const documents = yield* Documents
        const found = (query: string) =>
          Effect.map(documents.search({ user: "alice", query, limit: 9 }), (hits) => hits.map((hit) => hit.id))
        expect(yield* found("elephant")).toEqual([id])
        expect(yield* found("banana")).toEqual([])
        expect(yield* found("apple")).toEqual([])
        expect(yield* found("apricot")).toEqual(["a"])
        expect(yield* found("cherry")).toEqual(["c"])
        const read = yield* ReadClient
        yield* read`SELECT 1`
      }).pipe(Effect.provide(opened([page("a", "apricot"), page("c", "cherry")])))
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )
})

describe("search terms", () => {
  it("leaves out what every sentence holds, and endings", () => {
    expect(Search.terms("How does a client resume the runs?")).toEqual(["client", "resume", "run"])
    expect(Search.terms("what is it")).toEqual(["what", "is", "it"])
    expect(Search.terms("断线恢复")).toEqual(["断线", "线恢", "恢复"])
    expect(Search.terms("")).toEqual([])
  })
  it("shows the sentences that matched", () => {
    const text = "# Title\n\nNothing here. The cat sat down. It slept.\n\nThe end."
    expect(Search.excerpt(text, ["cat"], 30)).toBe("The cat sat down. It slept.")
  })
})

describe("differences", () => {
  it("keep a little of what stays", () => {
    const before = ["1", "2", "3", "4", "5", "6", "7", "8", "9"].join("\n")
    expect(Diff.lines(before, before.replace("5", "five"), 1)).toBe("…\n  4\n- 5\n+ five\n  6\n…")
    expect(Diff.lines("", "a")).toBe("+ a")
    expect(Diff.lines("a", "")).toBe("- a")
    expect(Diff.lines("a\nb\nc", "a\nx\nb\nc")).toBe("  a\n+ x\n  b\n  c")
  })
  it("can be applied: what stays and what comes is the new text", () => {
    const texts = ["a\nb\nc\nd", "b\nc\nx\nd\ne", "", "z", "a\na\na\nb"]
    for (const before of texts) {
      for (const after of texts) {
        const out = Diff.lines(before, after, 100).split("\n")
        const side = (mark: string) =>
          out
            .filter((line) => line.startsWith("  ") || line.startsWith(mark))
            .map((line) => line.slice(2))
            .join("\n")
        expect(side("- ")).toBe(before)
        expect(side("+ ")).toBe(after)
      }
    }
  })
})
