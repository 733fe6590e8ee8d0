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

/** One that does not compile, to see that this is noticed. */
const [wrong = ""] = examplesOf(`/**
 * A module.
 *
 * \`\`\`ts
 * import { Law } from "runlet/testing"
 *
 * Law.nothing
 * \`\`\`
 */
`)

describe("the examples in doc comments", () => {
  it("compile, and would be found out if they did not", { timeout: 300_000 }, () => {
    expect(wrong).toBe('import { Law } from "runlet/testing"\n\nLaw.nothing')
    const programs = [...examples].flatMap(([file, texts]) =>
      texts.map((text, index) => [`${file.replace(/\W/g, "-")}-${index + 1}`, text] as const)
    )
    expect(programs.length).toBeGreaterThan(15)
    expect(problemsOf(new Map([...programs, ["wrong", wrong]]))).toEqual([
      expect.stringMatching(/^wrong\.ts \+3: .*'nothing' does not exist/)
    ])
  })

  it("are with every entry of the kit for tests", () => {
    const without = [...examples].flatMap(([file, texts]) => {
      const [, name = ""] = /^testing\/([A-Z]\w*)\.ts$/.exec(file) ?? []
      return name !== "" && !parts.has(name) && texts.length === 0 ? [name] : []
    })
    expect(without).toEqual([])
  })
})
