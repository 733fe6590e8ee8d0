/**
 * Secrets as patterns: where they stand in a text, also when they are escaped, and what at its end may become one.
 *
 * @since 0.1.0
 */
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

/** A text without its escapes, and where each of its code units stood. */
interface Plain {
  readonly text: string
  readonly at: (index: number) => number
}

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

const inStrings = /\\+(?:u(?<unicode>[0-9a-fA-F]{4})|(?<letter>["'\\/bfnrt])?)/g
const inAddresses = /%(?<percent>[2-7][0-9A-Fa-f])/g
const escapes = new RegExp(`${inStrings.source}|${inAddresses.source}`, "g")
const controls: { readonly [letter: string]: string } = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }

const asItIs = (text: string): Plain => ({ text, at: (index) => index })

/** A secret may have such characters itself, or end in the middle of what its text goes on with: every way is read. */
const readings = (text: string): ReadonlyArray<Plain> => {
  const [strings, addresses] = [text.includes("\\"), text.includes("%")]
  return [
    asItIs(text),
    ...(strings ? [without(text, inStrings)] : []),
    ...(addresses ? [without(text, inAddresses)] : []),
    ...(strings && addresses ? [without(text, escapes)] : [])
  ]
}

const without = (text: string, escapes: RegExp): Plain => {
  let out = ""
  const places: Array<number> = []
  const add = (piece: string, from: number, step: number) => {
    for (let i = 0; i < piece.length; i++) places.push(from + i * step)
    out += piece
  }
  let done = 0
  for (const match of text.matchAll(escapes)) {
    const { letter = "\\", percent, unicode = percent } = match.groups ?? {}
    add(text.slice(done, match.index), done, 1)
    add(
      unicode === undefined ? (controls[letter] ?? letter) : String.fromCharCode(Number.parseInt(unicode, 16)),
      match.index,
      0
    )
    done = match.index + match[0].length
  }
  add(text.slice(done), done, 1)
  places.push(text.length)
  return { text: out, at: (index) => places[index] ?? text.length }
}

/**
 * The text without its escapes.
 *
 * @since 0.1.0
 * @category texts
 */
export const plain = (text: string): string =>
  text.includes("\\") || text.includes("%") ? without(text, escapes).text : text

/** An escape that the end of the text cuts off. A run of backslashes is looked at once. */
const cutEscape = /(?:(?<!\\)\\+(?:u[0-9a-fA-F]{0,3})?|%[2-7]?)$/

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

/**
 * A value that has what looks like an escape itself is not what its text becomes without escapes. So it is also looked for
 * as it would be read then, and in quotes, because nothing that remembers how it was written is left where that is short.
 */
const spellings = (value: string): ReadonlyArray<string> => [
  value,
  inQuotes(value),
  ...[plain(value)].filter((text) => text.length >= minLength)
]

const ofValue = (value: string): Shape => {
  const more = (kept: number, length: number) => `${quoted(value.slice(0, kept))}[\\s\\S]{0,${length - kept}}$`
  const short = more(firstStep, minLength - 1)
  return {
    trigrams: [value, inQuotes(value), inQuotes(inQuotes(value))].map((_) => _.slice(0, firstStep)),
    whole: quoted(value),
    begun: value.length > minLength ? `(?:${short}|${more(minLength, value.length - 1)})` : short
  }
}

const escaped: ReadonlyArray<string> = [
  "u00",
  ..."234567".split("").flatMap((high) => "0123456789abcdefABCDEF".split("").map((low) => `%${high}${low}`))
]

/** A table of as many bits as three code units of seven bits leave after some folding. */
const size = 1 << 15
const slot = (a: number, b: number, c: number): number => ((a << 10) ^ (b << 5) ^ c) & (size - 1)

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
  // Of two that begin alike the longer one is the secret.
  const values = [...new Set(options.values.flatMap(spellings))].sort((a, b) => b.length - a.length)
  const exact = [...values.map(ofValue), ...options.forms]
  const groups = [
    { shapes: exact, flags: "g", reach: Number.POSITIVE_INFINITY },
    { shapes: options.labels, flags: "gi", reach: labelReach }
  ].map(({ flags, reach, shapes }) => ({
    whole: joined(
      shapes.map((_) => _.whole),
      flags
    ),
    begun: joined(
      shapes.map((_) => _.begun),
      flags
    ),
    reach
  }))
  const table = new Uint8Array(size)
  for (const trigram of [...exact, ...options.labels].flatMap((_) => _.trigrams).concat(escaped, "--B")) {
    table[slot(trigram.charCodeAt(0), trigram.charCodeAt(1), trigram.charCodeAt(2))] = 1
  }
  const longest = values[0]?.length ?? 0

  /** Where the text ends in the middle of a value. */
  const cutOff = (text: string): ReadonlyArray<Range> => {
    const end = text.slice(Math.max(0, text.length - longest + 1))
    return values.flatMap((value) => {
      const at = end.lastIndexOf(value.slice(0, minLength))
      return at !== -1 && value.startsWith(end.slice(at)) ? [[text.length - end.length + at, text.length] as const] : []
    })
  }

  const found = ({ at, text }: Plain, complete: boolean): ReadonlyArray<Range> => {
    const ranges: Array<Range> = [...privateKeys(text).ranges, ...(complete ? cutOff(text) : [])]
    for (const { whole } of groups) {
      for (const match of text.matchAll(whole)) {
        const kept = match.slice(1).find((group) => group !== undefined)?.length ?? 0
        ranges.push([match.index + kept, match.index + match[0].length])
      }
    }
    return ranges.map(([from, to]) => [at(from), at(to)])
  }

  const begun = ({ at, text }: Plain): number => {
    // What an escape will be that is not complete, is not known: it counts as nothing yet.
    const end = text.search(cutEscape)
    const known = end === -1 ? text : text.slice(0, end)
    const indices = [
      ...groups.map(({ begun, reach }) => {
        begun.lastIndex = Math.max(0, known.length - reach)
        return begun.exec(known)?.index ?? -1
      }),
      known.search(keyHeaderCut),
      privateKeys(known).open ?? -1
    ].filter((index) => index !== -1)
    return at(Math.min(known.length, ...indices))
  }

  return {
    suspicious: (text, before = 0, last = 0) => {
      let a = before
      let b = last
      for (let i = 0; i < text.length; i++) {
        const c = text.charCodeAt(i)
        if (table[slot(a, b, c)] === 1) return true
        a = b
        b = c
      }
      return false
    },
    find: (text, complete) =>
      readings(text)
        .flatMap((reading) => found(reading, complete))
        .sort(([a], [b]) => a - b),
    begun: (text) => Math.min(...readings(text).map(begun))
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
