import { closeSync, existsSync, openSync, readdirSync, statSync, writeFileSync, writeSync } from "node:fs"
import { join } from "node:path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import { describe, expect, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Backup from "../../src/cli/Backup.js"
import { RunStore } from "../../src/store/RunStore.js"
import * as Sqlite from "../../src/store/Sqlite.js"
import { append, begin, end, seqsOf, texts, upTo } from "../../src/testing/store/fixtures.js"
import { databaseFile } from "../store/support.js"

/** Saves, and gives back what was said. */
const save = (data: string, file: string, json = false) =>
  Effect.gen(function* () {
    const said: Array<string> = []
    const console = yield* Console.consoleWith(Effect.succeed)
    yield* Backup.backup({ data }, file, json).pipe(
      Console.withConsole({ ...console, log: (line: string) => Effect.sync(() => said.push(line)) }),
      Effect.withConfigProvider(ConfigProvider.fromMap(new Map())),
      Effect.provide(NodeContext.layer)
    )
    return said
  })

const running = { status: "running" } as const

describe("backup", () => {
  it.scopedLive("is one moment of the database, whole, while others write to it", () =>
    Effect.gen(function* () {
      const data = yield* databaseFile
      const file = join(data, "..", "copy.db")
      const opened = yield* Layer.build(Sqlite.layer({ filename: data }))
      const writing = yield* Effect.gen(function* () {
        const ended = yield* begin()
        yield* end(ended)
        const run = yield* begin()
        const write = Effect.forkScoped(
          Effect.forever(
            Effect.zipRight(
              append({ key: run.key, epoch: run.epoch, events: texts(1), set: running }),
              Effect.sleep("1 millis")
            )
          )
        )
        return { fiber: yield* write, key: run.key }
      }).pipe(Effect.provide(opened))
      yield* Effect.sleep("20 millis")
      const said = yield* save(data, file)
      expect(said).toHaveLength(1)
      expect(said[0]).toMatch(/^Saved 2 runs of .* to .*copy\.db \(\d+(\.\d)? (bytes|kB|MB)\)$/)
      const another = join(data, "..", "another.db")
      const [told = ""] = yield* save(data, another, true)
      expect(JSON.parse(told)).toEqual({ data, file: another, runs: 2, bytes: statSync(another).size })
      yield* Effect.sleep("20 millis")
      yield* Fiber.interrupt(writing.fiber)

      expect(statSync(file).mode & 0o777).toBe(0o600)
      expect(readdirSync(join(data, "..")).filter((name) => name.includes("partial"))).toEqual([])
      const check = Effect.gen(function* () {
        const store = yield* RunStore
        const seqs = yield* seqsOf(writing.key)
        expect(seqs.length).toBeGreaterThanOrEqual(3)
        expect(seqs).toEqual(upTo(seqs.length))
        expect((yield* store.list({ userId: "alice", limit: 10 })).items[0]?.lastSeq).toBe(seqs.length)
        return seqs.length
      })
      const now = yield* Effect.provide(check, opened)
      const then = yield* Effect.provide(check, Layer.fresh(Sqlite.layer({ filename: file })))
      expect(then).toBeLessThan(now)
    })
  )

  it.scoped("what is in the way is told in one line, and nothing is left behind", () =>
    Effect.gen(function* () {
      const data = yield* databaseFile
      const dir = join(data, "..")
      const target = join(dir, "copy.db")
      const refused = (from: string, to: string) => Effect.flip(save(from, to))
      expect(yield* refused(data, target)).toMatchObject({ exitCode: 1, message: expect.stringContaining("--data") })
      expect(existsSync(data)).toBe(false)

      yield* Effect.scoped(Layer.build(Sqlite.layer({ filename: data })))
      writeFileSync(target, "somebody's")
      expect(yield* refused(data, target)).toMatchObject({
        exitCode: 1,
        message: `${target} exists already. Choose another name, or remove it`
      })
      expect(statSync(target).size).toBe("somebody's".length)
      expect(yield* refused(data, join(dir, "nowhere", "copy.db"))).toMatchObject({ exitCode: 1 })

      const other = join(dir, "other.db")
      writeFileSync(other, "this is no database at all, but long enough to look at".repeat(50))
      expect(yield* refused(other, join(dir, "b.db"))).toMatchObject({ exitCode: 1 })

      expect(readdirSync(dir).filter((name) => !/^(test|other)\.db/.test(name))).toEqual(["copy.db"])
    })
  )

  it.scoped("a damaged database is not saved as if it were sound", () =>
    Effect.gen(function* () {
      const data = yield* databaseFile
      yield* Effect.gen(function* () {
        const run = yield* begin()
        yield* append({ key: run.key, epoch: run.epoch, events: texts(5000), set: running })
      }).pipe(Effect.provide(Sqlite.layer({ filename: data })))
      const pages = Math.floor(statSync(data).size / 4096)
      const file = openSync(data, "r+")
      writeSync(file, Buffer.alloc(4096, 0x5a), 0, 4096, Math.floor(pages / 2) * 4096)
      closeSync(file)
      const target = join(data, "..", "copy.db")
      expect(yield* Effect.flip(save(data, target))).toMatchObject({
        exitCode: 1,
        message: `The database ${data} is damaged, nothing was saved. See what \`runlet doctor\` says`
      })
      expect(readdirSync(join(data, "..")).filter((name) => name.startsWith("copy"))).toEqual([])
    })
  )
})
