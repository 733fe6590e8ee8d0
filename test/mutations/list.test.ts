import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"

interface Mutation {
  readonly name: string
  readonly by: string
  readonly edits: ReadonlyArray<{ readonly file: string; readonly find: string; readonly replace: string }>
}

const here = (path: string) => new URL(path, import.meta.url)
const { mutations }: { readonly mutations: ReadonlyArray<Mutation> } = await import(here("mutations.mjs").href)

describe("the list of mistakes", () => {
  it("fits the sources: each has its place, once", () => {
    const lost = mutations.flatMap(({ edits, name }) =>
      edits
        .filter(({ file, find }) => readFileSync(here(`../../src/${file}`), "utf8").split(find).length !== 2)
        .map(({ file }) => `${name}: ${file}`)
    )
    expect(lost).toEqual([])
  })

  it("names each once, and says what looks at it", () => {
    expect(new Set(mutations.map(({ name }) => name)).size).toBe(mutations.length)
    expect(mutations.length).toBeGreaterThan(60)
    for (const { by } of mutations) expect(readFileSync(here(`by/${by}.ts`), "utf8")).not.toBe("")
    for (const { edits } of mutations) for (const { find, replace } of edits) expect(replace).not.toBe(find)
  })
})
