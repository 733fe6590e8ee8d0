/**
 * Texts in which characters are escaped, as strings of JSON and addresses have them, at any depth that occurs.
 *
 * @since 0.1.0
 */

/**
 * A text as somebody reads it, and where each of its code units stood when it was written.
 *
 * @since 0.1.0
 * @category models
 */
export interface Reading {
  readonly text: string
  readonly at: (index: number) => number
}

/** An escape of one kind: the character that all of them begin with, and what they stand for. */
interface Kind {
  readonly sign: string
  readonly escape: RegExp
  readonly meant: (escape: string) => string
}

const controls: { readonly [letter: string]: string } = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" }

const inStrings: Kind = {
  sign: "\\",
  escape: /\\(?:u[0-9a-fA-F]{4}|["'\\/bfnrt])/g,
  meant: (escape) =>
    escape.length > 2
      ? String.fromCharCode(Number.parseInt(escape.slice(2), 16))
      : (controls[escape.slice(1)] ?? escape.slice(1))
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true })

const inAddresses: Kind = {
  sign: "%",
  escape:
    /%(?:[0-7][0-9a-f]|[cd][0-9a-f]%[89ab][0-9a-f]|e[0-9a-f](?:%[89ab][0-9a-f]){2}|f[0-7](?:%[89ab][0-9a-f]){3})/gi,
  meant: (escape) =>
    escape.length === 3
      ? String.fromCharCode(Number.parseInt(escape.slice(1), 16))
      : utf8.decode(Uint8Array.from(escape.slice(1).split("%"), (code) => Number.parseInt(code, 16)))
}

const kinds = [inStrings, inAddresses]

/** What an escape became, and where it stood. */
interface Undone {
  readonly from: number
  readonly to: number
  readonly escapeFrom: number
  readonly escapeTo: number
}

/** Where a code unit stood before these were undone: all that is none of theirs is as far behind them as it was. */
const placeIn = (all: ReadonlyArray<Undone>, index: number): number => {
  let low = 0
  let high = all.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((all[middle]?.from ?? 0) <= index) low = middle + 1
    else high = middle
  }
  const last = all[low - 1]
  if (last === undefined) return index
  return index < last.to ? last.escapeFrom : last.escapeTo + index - last.to
}

const without = ({ at, text }: Reading, { escape, meant }: Kind): Reading => {
  let out = ""
  let done = 0
  const all: Array<Undone> = []
  for (const { 0: whole, index } of text.matchAll(escape)) {
    out += text.slice(done, index)
    const from = out.length
    out += meant(whole)
    done = index + whole.length
    all.push({ from, to: out.length, escapeFrom: index, escapeTo: done })
  }
  return { text: out + text.slice(done), at: (index) => at(placeIn(all, index)) }
}

/** JSON in JSON and addresses in addresses are read, to this depth. */
const deepest = 4

/** All readings of a text are together no longer than this, or than so many times the text: the deepest are left out. */
const mostRead = 1 << 18
const mostTimes = 8

/** An escape that the end of the text cuts off. A run of backslashes is looked at once. */
const cutEscape =
  /(?:(?<!\\)\\+(?:u[0-9a-f]{0,3})?|%(?:[0-7]|[c-f][0-9a-f]?|[c-f][0-9a-f](?:%[89ab][0-9a-f]){0,2}%[89ab]?|[ef][0-9a-f]%[89ab][0-9a-f]|f[0-7](?:%[89ab][0-9a-f]){2})?)$/i

/** What an escape will be that is not complete is not known, so it counts as nothing yet. */
const known = (reading: Reading): ReadonlyArray<Reading> => {
  const end = reading.text.search(cutEscape)
  return end === -1 ? [reading] : [reading, { text: reading.text.slice(0, end), at: reading.at }]
}

const every = (text: string, seen: (reading: Reading) => ReadonlyArray<Reading>): ReadonlyArray<Reading> => {
  const all = new Map<string, Reading>()
  let left = Math.max(mostRead, mostTimes * text.length)
  /** Each text is read once, however it came about. */
  const added = (reading: Reading): ReadonlyArray<Reading> =>
    seen(reading).filter((reading) => {
      const isNew = left > 0 && !all.has(reading.text)
      if (isNew) {
        all.set(reading.text, reading)
        left -= reading.text.length
      }
      return isNew
    })
  let newest = added({ text, at: (index) => index })
  for (let depth = 0; depth < deepest; depth++) {
    newest = newest.flatMap((reading) =>
      kinds.flatMap((kind) => (left > 0 && reading.text.includes(kind.sign) ? added(without(reading, kind)) : []))
    )
  }
  return [...all.values()]
}

/**
 * The ways to read a text: as it is, and without escapes, of one kind after the other. Each time exactly as their reader
 * would do it, because a secret may have such characters itself, also where it begins and ends.
 *
 * @since 0.1.0
 * @category texts
 */
export const readings = (text: string): ReadonlyArray<Reading> => every(text, (reading) => [reading])

/**
 * The ways to read a text that may go on, also up to where each of them depends on what comes.
 *
 * @since 0.1.0
 * @category texts
 */
export const begunReadings = (text: string): ReadonlyArray<Reading> => every(text, known)
