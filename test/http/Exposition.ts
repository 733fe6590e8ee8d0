/** A reader of the text format of Prometheus. */

/** Figures by their name with its labels, and the types of families. */
export interface Exposition {
  readonly figures: ReadonlyMap<string, number>
  readonly types: ReadonlyMap<string, string>
}

/** What a reader of the format makes of a text; fails on any line that the format does not know. */
export const parse = (text: string): Exposition => {
  const figures = new Map<string, number>()
  const types = new Map<string, string>()
  if (text !== "" && !text.endsWith("\n")) throw new Error("The last line has no end")
  for (const line of text.split("\n").slice(0, -1)) {
    const type = /^# TYPE ([a-z_:][a-z0-9_:]*) (counter|gauge|histogram|summary)$/i.exec(line)
    if (type !== null) {
      if (types.has(type[1] ?? "")) throw new Error(`${line} comes twice`)
      types.set(type[1] ?? "", type[2] ?? "")
      continue
    }
    if (/^# HELP [a-z_:][a-z0-9_:]* /i.test(line)) continue
    const sample =
      /^([a-z_:][a-z0-9_:]*)(?:\{((?:[a-z_][a-z0-9_]*="(?:[^"\\]|\\["\\n])*",?)*)\})? (-?\d[\d.e+-]*|NaN|[+-]Inf)$/i.exec(
        line
      )
    if (sample === null) throw new Error(`This is no line of the format: ${line}`)
    const [, name = "", labels = "", value = ""] = sample
    const family = name.replace(/_(bucket|sum|count)$/, "")
    if (!types.has(name) && types.get(family) !== "histogram") throw new Error(`${name} has no type`)
    const key = labels === "" ? name : `${name}{${labels}}`
    if (figures.has(key)) throw new Error(`${key} comes twice`)
    figures.set(key, Number(value.replace("Inf", "Infinity")))
  }
  return { figures, types }
}
