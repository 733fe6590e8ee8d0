import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import ts from "typescript"
import { describe, expect, it } from "vitest"

const source = join(__dirname, "../../src")

const modules = readdirSync(source, { recursive: true, encoding: "utf8" })
  .filter((file) => /\.tsx?$/.test(file) && !file.endsWith(".d.ts"))
  .sort()

interface Documented {
  readonly place: string
  readonly problems: ReadonlyArray<string>
}

const textOf = (comment: ts.JSDoc["comment"]): string => ts.getTextOfJSDocComment(comment) ?? ""

/** At least a few words. Chinese, or a list, would be words as well. */
const saysSomething = (text: string) => text.split(/\s+/).filter((word) => word.length > 0).length >= 3

/** `export type A = typeof A.Type` says by itself what it is. */
const namesSchema = (node: ts.Statement) =>
  ts.isTypeAliasDeclaration(node) &&
  ts.isTypeQueryNode(node.type) &&
  /\.(Type|Encoded)$/.test(node.type.exprName.getText())

const isExported = (node: ts.Statement) =>
  ts.canHaveModifiers(node) &&
  (ts.getModifiers(node)?.some((modifier) => modifier.kind === ts.SyntaxKind.ExportKeyword) ?? false)

const nameOf = (node: ts.Statement): string => {
  if (ts.isVariableStatement(node)) return node.declarationList.declarations.map((one) => one.name.getText()).join(", ")
  if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return node.name.text
  if (ts.isFunctionDeclaration(node) || ts.isClassDeclaration(node)) return node.name?.text ?? "default"
  return node.getText().slice(0, 40)
}

const problemsOf = (node: ts.Statement): ReadonlyArray<string> => {
  const docs = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc)
  // The module's own comment stands before the first statement and belongs to it as well, if nothing is between them.
  const own = docs.at(-1)
  if (own === undefined) return ["no doc comment"]
  const tags = new Map((own.tags ?? []).map((tag) => [tag.tagName.text, textOf(tag.comment)]))
  return [
    ...(saysSomething(textOf(own.comment)) || namesSchema(node) ? [] : ["no sentence"]),
    ...(/^\d+\.\d+\.\d+$/.test(tags.get("since") ?? "") ? [] : ["no @since"]),
    ...((tags.get("category") ?? "") === "" ? ["no @category"] : [])
  ]
}

/** The comment at the top of a module: what it is for. */
const moduleProblems = (text: string): ReadonlyArray<string> => {
  const [range] = ts.getLeadingCommentRanges(text, 0) ?? []
  const comment = range === undefined ? "" : text.slice(range.pos, range.end)
  if (!comment.startsWith("/**")) return ["no comment at the top of the module"]
  const words = comment.replace(/^\s*\/?\*+\/?/gm, "").replace(/@\w+.*$/gm, "")
  return [
    ...(saysSomething(words) ? [] : ["the module's comment says nothing"]),
    ...(/@since \d+\.\d+\.\d+/.test(comment) ? [] : ["the module's comment has no @since"])
  ]
}

const documented = (file: string, text: string): ReadonlyArray<Documented> => {
  const parsed = ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true)
  return [
    { place: file, problems: moduleProblems(text) },
    ...parsed.statements.filter(isExported).map((node) => ({
      place: `${file}:${parsed.getLineAndCharacterOfPosition(node.getStart()).line + 1} ${nameOf(node)}`,
      problems: problemsOf(node)
    }))
  ]
}

const wanting = (all: ReadonlyArray<Documented>) =>
  all.filter(({ problems }) => problems.length > 0).map(({ place, problems }) => `${place}: ${problems.join(", ")}`)

describe("the entry point for tests", () => {
  it("exports every module of its room", () => {
    const barrel = readFileSync(join(source, "testing/index.ts"), "utf8")
    const exported = [...barrel.matchAll(/^export \* as (\w+) from "\.\/(\w+)\.js"$/gm)]
    for (const [, name, file] of exported) expect(name).toBe(file)
    const room = modules.flatMap((file) => /^testing\/([A-Z]\w*)\.ts$/.exec(file)?.[1] ?? [])
    expect(exported.map(([, name]) => name)).toEqual(room)
  })
})

describe("doc comments", () => {
  it("says what every module and every export of it is for, since when, and where it belongs", () => {
    const all = modules.flatMap((file) => documented(file, readFileSync(join(source, file), "utf8")))
    expect(all.length).toBeGreaterThan(500)
    expect(wanting(all)).toEqual([])
  })

  it("would notice a missing one", () => {
    const text = `/**
 * A module of some kind.
 *
 * @since 0.1.0
 */
import * as A from "a"

export const bare = A.one

/**
 * @since 0.1.0
 * @category models
 */
export interface Silent {}

/**
 * A thing with a meaning.
 *
 * @since 0.1.0
 */
export class Lost {}

/**
 * @since 0.1.0
 * @category models
 */
export type Named = typeof Named.Type
`
    expect(wanting(documented("a.ts", text))).toEqual([
      "a.ts:8 bare: no doc comment",
      "a.ts:14 Silent: no sentence",
      "a.ts:21 Lost: no @category"
    ])
    expect(wanting(documented("b.ts", "export const a = 1"))).toEqual([
      "b.ts: no comment at the top of the module",
      "b.ts:1 a: no doc comment"
    ])
  })
})
