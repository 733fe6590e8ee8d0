/** What the tests need to know of Markdown. */

/** A fenced block. `mark` is the comment on the line before it, if there is one. */
export interface Block {
  readonly language: string
  readonly mark: string | undefined
  readonly line: number
  readonly text: string
}

/** The fenced blocks of a document, in order. */
export const blocksOf = (markdown: string): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  const lines = markdown.split("\n")
  for (let i = 0; i < lines.length; i++) {
    const language = /^```(\w*)$/.exec(lines[i] ?? "")?.[1]
    if (language === undefined) continue
    const end = lines.indexOf("```", i + 1)
    if (end === -1) throw new Error(`The block in line ${i + 1} has no end`)
    const mark = /^<!-- (.*) -->$/.exec(lines[i - 1] ?? "")?.[1]
    blocks.push({ language, mark, line: i + 1, text: lines.slice(i + 1, end).join("\n") })
    i = end
  }
  return blocks
}

/** The text under a heading of the second level. */
export const section = (markdown: string, heading: string): string => {
  const [, ...rest] = markdown.split(`\n## ${heading}\n`)
  if (rest.length !== 1) throw new Error(`There is not one section ${heading}`)
  return rest[0]?.split("\n## ")[0] ?? ""
}

/** The rows of the tables in a text, without their heads. A cell may hold an escaped bar. */
export const rowsOf = (markdown: string): ReadonlyArray<ReadonlyArray<string>> =>
  markdown.split("\n").flatMap((line, index, lines) => {
    if (!line.startsWith("|") || /^\|[-| ]+\|$/.test(line)) return []
    if (/^\|[-| ]+\|$/.test(lines[index + 1] ?? "")) return []
    return [
      line
        .slice(1, -1)
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim())
    ]
  })

/** The text of a cell that is one piece of code. */
export const codeOf = (cell: string | undefined): string | undefined => /^`([^`]*)`$/.exec(cell ?? "")?.[1]

/** The addresses of headings, as pages of repositories make them. */
export const anchorsOf = (markdown: string): ReadonlyArray<string> =>
  markdown
    .replace(/```[\s\S]*?```/g, "")
    .split("\n")
    .flatMap((line) => /^#+ (.*)$/.exec(line)?.[1] ?? [])
    .map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-")
    )
