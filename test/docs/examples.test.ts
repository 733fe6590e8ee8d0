import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { problemsOf } from "../readme/compile.js"
import { blocksOf } from "../readme/markdown.js"

const source = join(__dirname, "../../src")

/** The programs in the doc comments of a module. */
const examplesOf = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/^ *\/\*\*\n[\s\S]*?\*\//gm)].flatMap(([comment]) =>
    blocksOf(comment.replaceAll(/^ *\* ?/gm, ""))
      .filter(({ language }) => language === "ts")
      .map((block) => block.text)
  )

const examples = new Map(
  readdirSync(source, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file))
    .sort()
    .map((file) => [file, examplesOf(readFileSync(join(source, file), "utf8"))] as const)
)

/** What others are made of: the modules that use them show how. */
const parts = new Set(
  "Dice EventArbitraries HistoryLaws LimitLaws Observed Plan Recorder Timeline ToolLaws UpstreamBehaviours UpstreamScript".split(
    " "
  )
)

describe("the examples in doc comments", () => {
  it("compile", { timeout: 300_000 }, () => {
    const programs = [...examples].flatMap(([file, texts]) =>
      texts.map((text, index) => [`${file.replace(/\W/g, "-")}-${index + 1}`, text] as const)
    )
    expect(programs.length).toBeGreaterThan(15)
    expect(problemsOf(new Map(programs))).toEqual([])
  })

  it("are with every entry of the kit for tests", () => {
    const without = [...examples].flatMap(([file, texts]) => {
      const [, name = ""] = /^testing\/([A-Z]\w*)\.ts$/.exec(file) ?? []
      return name !== "" && !parts.has(name) && texts.length === 0 ? [name] : []
    })
    expect(without).toEqual([])
  })

  it("would be found wanting", { timeout: 300_000 }, () => {
    const text =
      '/**\n * A module.\n *\n * ```ts\n * import { Law } from "runlet/testing"\n *\n * Law.nothing\n * ```\n */\n'
    const [example = ""] = examplesOf(text)
    expect(example).toBe('import { Law } from "runlet/testing"\n\nLaw.nothing')
    expect(problemsOf(new Map([["wrong", example]]))).toEqual([expect.stringContaining("'nothing' does not exist")])
  })
})
