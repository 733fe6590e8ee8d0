/**
 * Secrets as patterns: where they stand in a text, also when they are escaped, and what at its end may become one.
 *
 * @since 0.1.0
 */
import { begunReadings, type Reading, readings } from "./SecretReadings.js"
import type { Shape } from "./SecretShapes.js"

/**
 * What stands for a secret.
 *
 * @since 0.1.0
 * @category constants
 */
export const marker = "[redacted]"

/**
 * A stretch of a text, its end not included.
 *
 * @since 0.1.0
 * @category models
 */
export type Range = readonly [from: number, to: number]

/**
 * - `suspicious`: whether there may be a secret in a text that goes on from two code units. One look at each character
 * - `find`: where secrets are in a text, by their beginnings; `complete`: it ends here
 * - `begun`: from where on there may be a secret that is not complete
 *
 * @since 0.1.0
 * @category models
 */
export interface Patterns {
  readonly suspicious: (text: string, before?: number, last?: number) => boolean
  readonly find: (text: string, complete: boolean) => ReadonlyArray<Range>
  readonly begun: (text: string) => number
}

/**
 * Shorter values are not looked for: they would be found in ordinary words.
 *
 * @since 0.1.0
 * @category constants
 */
export const minLength = 8

const quoted = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")

const keyBegin = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g
const keyEnd = /-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g
const keyHeaderCut = /-----B[A-Z0-9 ]{0,80}-{0,5}$/

/** Keys in PEM (RFC 7468). One that does not end goes on to the end of the text. */
const privateKeys = (text: string): { readonly ranges: ReadonlyArray<Range>; readonly open: number | undefined } => {
  const ranges: Array<Range> = []
  let from = 0
  while (true) {
    keyBegin.lastIndex = from
    const begin = keyBegin.exec(text)
    if (begin === null) return { ranges, open: undefined }
    keyEnd.lastIndex = keyBegin.lastIndex
    const end = keyEnd.exec(text)
    ranges.push([begin.index, end === null ? text.length : keyEnd.lastIndex])
    if (end === null) return { ranges, open: begin.index }
    from = keyEnd.lastIndex
  }
}

/**
 * How much of a named secret must be there before a text is held back for it, and how much to see that it is not meant.
 * Steps of more than one character, so that nobody finds a secret out by watching what is held back.
 */
const firstStep = 3

const inQuotes = (text: string): string => JSON.stringify(text).slice(1, -1)

/** The same in a form, where a space is a plus. */
const spellings = (value: string): ReadonlyArray<string> => [value, value.replaceAll(" ", "+")]

/** What the beginning of a value looks like in strings, of which some escape more than others. */
const writtenBegin = (begin: string): ReadonlyArray<string> => [
  begin,
  ...[inQuotes(begin), inQuotes(begin).replace(/[/']/g, "\\$&")].flatMap((once) => {
    const twice = inQuotes(once)
    return [once, twice, inQuotes(twice)]
  }),
  ...begin.split("").flatMap((unit) => {
    const code = `u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`
    return [code, `u${code.slice(1).toUpperCase()}`]
  })
]

const ofValue = (value: string): Pick<Shape, "begun" | "trigrams"> => {
  const more = (kept: number, length: number) => `${quoted(value.slice(0, kept))}[\\s\\S]{0,${length - kept}}$`
  const short = more(firstStep, minLength - 1)
  return {
    trigrams: writtenBegin(value.slice(0, firstStep)),
    begun: value.length > minLength ? `(?:${short}|${more(minLength, value.length - 1)})` : short
  }
}

/** The first three characters of an escape. */
const escapes: ReadonlyArray<string> = [
  "u00",
  ..."01234567cdefCDEF".split("").flatMap((high) => "0123456789abcdefABCDEF".split("").map((low) => `%${high}${low}`))
]

/** What stands in the first line of a private key. */
const keyTrigram = "--B"

/** Sets of three code units in a row: a bit for each that can be of seven bits each, where others are folded onto them. */
const size = 1 << 21
const slot = (a: number, b: number, c: number): number => ((a & 127) << 14) | ((b & 127) << 7) | (c & 127)

/** Whether one of these stands in a text that goes on from two code units, by one look at each character. */
const anyOf = (trigrams: ReadonlyArray<string>) => {
  const bits = new Uint8Array(size >> 3)
  for (const trigram of trigrams) {
    const bit = slot(trigram.charCodeAt(0), trigram.charCodeAt(1), trigram.charCodeAt(2))
    bits[bit >> 3] = (bits[bit >> 3] ?? 0) | (1 << (bit & 7))
  }
  return (text: string, before = 0, last = 0): boolean => {
    let a = before
    let b = last
    for (let i = 0; i < text.length; i++) {
      const c = text.charCodeAt(i)
      const bit = slot(a, b, c)
      if (((bits[bit >> 3] ?? 0) & (1 << (bit & 7))) !== 0) return true
      a = b
      b = c
    }
    return false
  }
}

/** Where a value stands in a text, from some place on. */
const placesOf = (value: string, text: string, from = 0): ReadonlyArray<number> => {
  const places: Array<number> = []
  for (let at = text.indexOf(value, from); at !== -1; at = text.indexOf(value, at + 1)) places.push(at)
  return places
}

const noWords = /(?!)/g

/** What a label has begun is no longer than this, so it is not looked for further back. */
const labelReach = 4_224

const joined = (sources: ReadonlyArray<string>, flags: string): RegExp =>
  sources.length === 0 ? noWords : new RegExp(sources.map((source) => `(?:${source})`).join("|"), flags)

/**
 * The patterns of some values, which need `minLength` characters, and of shapes: `forms` as they are written, `labels`
 * in any case.
 *
 * @since 0.1.0
 * @category constructors
 */
export const compile = (options: {
  readonly values: ReadonlyArray<string>
  readonly forms: ReadonlyArray<Shape>
  readonly labels: ReadonlyArray<Shape>
}): Patterns => {
  const values = [...new Set(options.values.flatMap(spellings))]
  const named = values.map(ofValue)
  const groups = [
    { shapes: options.forms, others: named, flags: "g", reach: Number.POSITIVE_INFINITY },
    { shapes: options.labels, others: [], flags: "gi", reach: labelReach }
  ].map(({ flags, others, reach, shapes }) => ({
    whole: joined(
      shapes.map((_) => _.whole),
      flags
    ),
    begun: joined(
      [...others, ...shapes].map((_) => _.begun),
      flags
    ),
    reach
  }))
  const known = [...options.forms, ...options.labels].flatMap((_) => _.trigrams).concat(keyTrigram)
  /** Whether there may be a secret in a text without escapes. */
  const isWorth = anyOf([...values.map((value) => value.slice(0, firstStep)), ...known])

  /** Every place of every value: one may begin in the middle of another one, and of itself. */
  const whole = (text: string): ReadonlyArray<Range> =>
    values.flatMap((value) => placesOf(value, text).map((at) => [at, at + value.length] as const))

  /** Where a text ends in the middle of a value. */
  const cutOff = ({ at, text }: Reading): ReadonlyArray<number> =>
    values.flatMap((value) => {
      const from = Math.max(0, text.length - value.length + 1)
      const place = placesOf(value.slice(0, minLength), text, from).find((place) => value.startsWith(text.slice(place)))
      return place === undefined ? [] : [at(place)]
    })

  const found = ({ at, text }: Reading): ReadonlyArray<Range> => {
    if (!isWorth(text)) return []
    const ranges: Array<Range> = [...privateKeys(text).ranges, ...whole(text)]
    for (const { whole } of groups) {
      for (const match of text.matchAll(whole)) {
        const kept = match.slice(1).find((group) => group !== undefined)?.length ?? 0
        ranges.push([match.index + kept, match.index + match[0].length])
      }
    }
    return ranges.map(([from, to]) => [at(from), at(to)])
  }

  const begun = ({ at, text }: Reading): number => {
    if (!isWorth(text)) return at(text.length)
    const indices = [
      ...groups.map(({ begun, reach }) => {
        begun.lastIndex = Math.max(0, text.length - reach)
        return begun.exec(text)?.index ?? -1
      }),
      text.search(keyHeaderCut),
      privateKeys(text).open ?? -1
    ].filter((index) => index !== -1)
    return at(Math.min(text.length, ...indices))
  }

  return {
    suspicious: anyOf([...named.flatMap((_) => _.trigrams), ...known, ...escapes]),
    find: (text, complete) => {
      const all = complete ? begunReadings(text) : readings(text)
      const cuts = complete ? all.flatMap(cutOff).map((from) => [from, text.length] as const) : []
      return [...all.flatMap(found), ...cuts].sort(([a], [b]) => a - b)
    },
    begun: (text) => Math.min(...begunReadings(text).map(begun))
  }
}

/**
 * The text from `from` on with a marker in the place of every range. Ranges that overlap are one secret.
 *
 * @since 0.1.0
 * @category texts
 */
export const replaced = (text: string, ranges: ReadonlyArray<Range>, from = 0): string => {
  let out = ""
  let done = from
  let marked = false
  for (const [begin, end] of ranges) {
    if (end <= done) continue
    if (begin > done || !marked) out += text.slice(done, Math.max(done, begin)) + marker
    marked = true
    done = end
  }
  return out + text.slice(done)
}
