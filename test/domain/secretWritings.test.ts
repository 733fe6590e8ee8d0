import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as Secrets from "../../src/domain/Secrets.js"
import { ofUrl } from "../../src/domain/SecretValues.js"

const json = (text: string) => JSON.stringify(text).slice(1, -1)
const ascii = (text: string) =>
  json(text).replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
const upper = (text: string) =>
  ascii(text).replace(/\\u([0-9a-f]{4})/g, (_, code: string) => `\\u${code.toUpperCase()}`)
const html = (text: string) =>
  json(text).replace(/[<>&]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
const slashes = (text: string) => json(text).replaceAll("/", "\\/")
const uri = encodeURIComponent

/** Ways to write a text down, each as one serializer does it throughout. */
const writings: { readonly [name: string]: (text: string) => string } = {
  "as it is": (text) => text,
  JSON: json,
  "JSON in JSON": (text) => json(json(text)),
  "JSON in JSON in JSON": (text) => json(json(json(text))),
  "JSON without other letters": ascii,
  "JSON without other letters, in JSON": (text) => json(ascii(text)),
  "JSON without other letters, in capitals": upper,
  "JSON for pages": html,
  "JSON with slashes": slashes,
  "an address": uri,
  "an address, in lower case": (text) => uri(text).replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
  "an address in an address": (text) => uri(uri(text)),
  "an address in JSON": (text) => json(uri(text)),
  "JSON in an address": (text) => uri(json(text)),
  "JSON with slashes in an address": (text) => uri(slashes(text)),
  "a form": (text) => new URLSearchParams({ a: text }).toString().slice(2)
}

/** Values that are hard to find: they have what looks like escapes, also where they begin and end. */
const values = [
  "correct-horse-battery",
  'nabc"defgh1',
  '"quoted-value"',
  "\\begins-and-ends\\",
  'a\\nb"c\\td/e%41f',
  'ab"cdefgh\\',
  'a\\b\\\\cdefgh\\u0041"',
  "a\\é&b<c>d\\é",
  'p\\"é\\&%C3%A9',
  'abcdef!"%7',
  '%41bc!defgh"',
  '0abc!defgh/"%2',
  "%41%42%43",
  "\\n\\n\\n\\n\\",
  "秘密の合言葉です",
  "\uFEFF-秘密-key-\uFEFF",
  "a秘b密c合d言",
  "pässwörd-ñandú",
  "😀-smile-😀-value",
  "/ab/cd/ef/gh+12==",
  "ab/cd/ef/gh",
  "pass word with spaces",
  "two\nlines\tand more",
  "first-1\r\nsecond-2"
]

const around: ReadonlyArray<readonly [before: string, after: string]> = [
  ["", ""],
  ["the key is ", " indeed"],
  ["C:\\", "new"],
  ['x"', '"y'],
  ["100%", "1"],
  ["5%2", "71"],
  ["row\n", "\nrow"]
]

/** A text at once, and in pieces of different sizes. */
const ways = ({ stream, text: whole }: Secrets.Cleaner, text: string): ReadonlyArray<string> => [
  whole(text),
  ...[text.length, 5, 2, 1].map((size) => {
    const one = stream()
    let out = ""
    for (let at = 0; at < text.length; at += size) out += one.push(text.slice(at, at + size))
    return out + one.end()
  })
]

/** How much of a text in a row is in another one. */
const longest = (part: string, text: string): number => {
  let most = 0
  for (let from = 0; from < part.length; from++) {
    while (from + most < part.length && text.includes(part.slice(from, from + most + 1))) most++
  }
  return most
}

/** What so many characters need, and some more: the neighbours may look like a part of the value. */
const written = (write: (text: string) => string, value: string, characters: number): number =>
  Math.max(8, write([...value].slice(0, characters).join("")).length + 3)

describe.each(Object.entries(writings))("a secret in %s", (_, write) => {
  it.each(values)("is hidden: %j", (value) => {
    const { said } = Secrets.make([value])
    for (const [before, after] of around) {
      const text = write(before + value + after)
      for (const out of ways(said, text)) {
        expect(out, text).toContain("[redacted]")
        // Two characters are told before anybody can know.
        expect(longest(write(value), out.replaceAll("[redacted]", "\n")), `${text} becomes ${out}`).toBeLessThanOrEqual(
          written(write, value, 2)
        )
      }
    }
  })

  it("is hidden when the text was cut in the middle of it, also of an escape", () => {
    for (const value of values) {
      const { said } = Secrets.make([value])
      for (let end = 1; end < write(value).length; end++) {
        const text = `cut: ${write(value).slice(0, end)}`
        const out = said.text(text)
        expect(longest(write(value), out), `${text} becomes ${out}`).toBeLessThanOrEqual(written(write, value, 8))
      }
    }
  })

  it("is hidden when nothing came for a while in the middle of it", () => {
    for (const value of values) {
      const { said } = Secrets.make([value])
      const text = write(value)
      for (let end = 2; end < text.length; end += 3) {
        const stream = said.stream()
        const first = stream.push(text.slice(0, end)) + stream.end()
        const rest = [...text.slice(end)].map((piece) => stream.push(piece)).join("") + stream.end()
        const out = `${first}${rest}`.replaceAll("[redacted]", "\n")
        expect(longest(text, out), `${text} becomes ${out}`).toBeLessThanOrEqual(written(write, value, 8))
      }
    }
  })
})

describe("several secrets", () => {
  it.each([
    [["abcdefghij", "ghijklmnop"], "is abcdefghijklmnop!", "is [redacted]!"],
    [["abcdefghij", "ijklmnopqr"], "is abcdefghijklmnopqr!", "is [redacted]!"],
    [["abcdefghij", "ijklmnopqr"], "is abcdefghijk then", "is [redacted]k then"],
    [["abcdefgh", "cdefghijkl", "ghijklmnop"], "is abcdefghijklmnop!", "is [redacted]!"],
    [["abc-12345-abc"], "is abc-12345-abc", "is [redacted]"],
    [["abc-12345-abc"], "is abc-12345-abc def", "is [redacted] def"],
    [["abc-12345-abc"], "is abc-12345-abc-12345-abc", "is [redacted]"],
    [["a-part.and-more"], "is sk-proj-bbbbbbbbbbbbbbbbbbbb1-a-part.and-more!", "is [redacted]!"],
    [["abc12345"], "is sk-proj-bbbbbbbbbbbbbbbbbbbb1-abc x", "is [redacted] x"],
    [["abcabcabcabc-1234"], "is abcabcabcabc", "is [redacted]"]
  ])("%j are hidden where they lie over each other: %s", (secrets, text, clean) => {
    for (const cleaner of Object.values(Secrets.make(secrets))) {
      const [whole, atOnce, ...pieces] = ways(cleaner, text)
      expect([whole, atOnce]).toEqual([clean, clean])
      for (const out of pieces) {
        for (const secret of secrets) {
          expect(longest(secret, out.replaceAll("[redacted]", "\n")), out).toBeLessThanOrEqual(2)
        }
      }
    }
  })

  const letters = Array.from({ length: 120 }, (_, at) => String.fromCharCode(0x4e00 + at))
  const stretch = FastCheck.tuple(FastCheck.nat(100), FastCheck.integer({ min: 8, max: 20 }))

  it.prop(
    "are hidden, and nothing else is, wherever they are in each other and wherever the text is cut",
    [FastCheck.array(stretch, { minLength: 1, maxLength: 8 }), FastCheck.array(FastCheck.nat(119), { maxLength: 30 })],
    ([stretches, cuts]) => {
      const all = stretches.map(([from, length]) => [from, Math.min(from + length, letters.length)] as const)
      const { said } = Secrets.make(all.map(([from, to]) => letters.slice(from, to).join("")))
      const stream = said.stream()
      const places = [0, ...[...new Set(cuts)].sort((a, b) => a - b), letters.length]
      const pieces = places.map((place, at) => stream.push(letters.slice(place, places[at + 1]).join("")))
      const out = pieces.join("") + stream.end()
      for (const [place, letter] of letters.entries()) {
        const within = all.filter(([from, to]) => from <= place && place < to).map(([from]) => place - from)
        // Each letter is there once, so that it says where it stood.
        if (within.length === 0) expect(out).toContain(letter)
        else if (within.some((depth) => depth >= 2)) expect(out).not.toContain(letter)
        expect(said.text(letters.join("")).includes(letter)).toBe(within.length === 0)
      }
    },
    { fastCheck: { numRuns: 200 } }
  )
})

it("a text with every kind of escape in it is read in a time that goes with its length", { timeout: 45_000 }, () => {
  const unit = "%5c\\u0025%255c\\\\u005c%2541\\\\\\\\u0025 41\\\\n%5Cu0041%25%35%63 key "
  const { said, told } = Secrets.make(["correct-horse-battery-staple"])
  for (const length of [9_000, 270_000]) {
    const text = unit.repeat(Math.ceil(length / unit.length)).slice(0, length)
    const stream = said.stream()
    let out = told.text(text).length
    for (let at = 0; at < 9_000; at += 3) out += stream.push(text.slice(at, at + 3)).length
    // Five seconds of a fast machine when each of the thirty readings is looked through for each of the pieces.
    expect(out + stream.end().length).toBe(length + 9_000)
  }
})

it("an address with a bare percent sign has secrets too", () => {
  expect(ofUrl("http://user:100%25-sure@host/")).toContain("100%-sure")
  expect(ofUrl("http://user:100%-of-it@host/")).toContain("100%-of-it")
})
