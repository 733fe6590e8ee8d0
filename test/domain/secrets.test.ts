import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as Secrets from "../../src/domain/Secrets.js"

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
const letters = (alphabet: string, minLength: number, maxLength: number) =>
  FastCheck.array(FastCheck.constantFrom(...alphabet), { minLength, maxLength }).map((_) => _.join(""))

/** What an operator may have configured. */
const configured = FastCheck.oneof(
  letters(alphanumeric, 12, 60),
  letters(`${alphanumeric}-_.~+/=`, 12, 60),
  letters(`${alphanumeric}!"§$%&/()=?\\'*#;,:<> 秘密é`, 12, 40)
).filter((value) => value.trim() === value && new Set(value).size > 6)

/** What the issuers of the world hand out. */
const issued = FastCheck.oneof(
  letters(alphanumeric, 20, 60).map((_) => `sk-proj-${_}7`),
  letters(alphanumeric, 36, 36).map((_) => `ghp_${_}`),
  letters(`${alphanumeric}_`, 40, 60).map((_) => `github_pat_${_}`),
  letters("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 16, 16).map((_) => `AKIA${_}`),
  letters(`${alphanumeric}-_`, 35, 35).map((_) => `AIza${_}`),
  letters(alphanumeric, 20, 30).map((_) => `xoxb-1${_}`),
  letters(`${alphanumeric}-_`, 20, 60).map((_) => `glpat-${_}`),
  FastCheck.tuple(letters(`${alphanumeric}-_`, 22, 22), letters(`${alphanumeric}-_`, 43, 43)).map(
    ([id, key]) => `SG.${id}.${key}`
  ),
  FastCheck.tuple(
    letters(`${alphanumeric}-_`, 10, 40),
    letters(alphanumeric, 10, 80),
    letters(alphanumeric, 20, 43)
  ).map(([a, b, c]) => `eyJ${a}.eyJ${b}.${c}`),
  letters(`${alphanumeric}+/`, 60, 400).map(
    (_) => `-----BEGIN PRIVATE KEY-----\n${_.replace(/.{64}/g, "$&\n")}\n-----END PRIVATE KEY-----`
  )
)

const unicode = (text: string) =>
  [...text].map((char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`).join("")
const json = (text: string) => JSON.stringify(text).slice(1, -1)

/** Ways to write the same text down. Only what is one code unit a character can be written the third way. */
const writings: ReadonlyArray<(text: string) => string> = [
  (text) => text,
  json,
  (text) => text.replace(/[\x20-\x7e]/g, (char, at: number) => (at % 3 === 1 ? unicode(char) : json(char))),
  (text) => json(json(text)),
  (text) => text.replace(/[\\%"'\x21-\x2f]/g, (char) => `%${char.charCodeAt(0).toString(16).padStart(2, "0")}`)
]

const words = FastCheck.array(
  FastCheck.constantFrom(
    "the ",
    "a task, ",
    "key: ",
    "春眠不觉晓 ",
    "\n",
    "bearer of news ",
    '{"a":1} ',
    "100% ",
    "C:\\new ",
    "-----\n"
  ),
  { maxLength: 6 }
).map((_) => _.join(""))

const cuts = FastCheck.array(FastCheck.nat(997), { maxLength: 12 })

const pieces = (text: string, at: ReadonlyArray<number>): ReadonlyArray<string> => {
  const places = [...new Set(at.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b)
  return [0, ...places].map((start, index) => text.slice(start, places[index] ?? text.length))
}

/** The text as somebody would read it who knows about escapes. */
const readings = (text: string): ReadonlyArray<string> => {
  const once = (_: string) =>
    _.replace(/\\+u([0-9a-fA-F]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
      .replace(/\\+(["\\/])/g, "$1")
      .replace(/\\+n/g, "\n")
      .replace(/%([2-7][0-9a-fA-F])/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
  return [text, once(text), once(once(text))]
}

const pushAll = (stream: ReturnType<Secrets.Cleaner["stream"]>, all: ReadonlyArray<string>) =>
  all.map((piece) => stream.push(piece)).join("") + stream.end()

describe("a secret", () => {
  it.prop(
    "of the configuration is in no text, however it is written and cut",
    [configured, words, words, FastCheck.nat(), cuts],
    ([secret, before, after, n, at]) => {
      const { said, told } = Secrets.make([secret])
      const write = writings[n % writings.length] ?? json
      const text = before + write(secret) + after
      const outs = [
        said.text(text),
        told.text(text),
        pushAll(said.stream(), pieces(text, at)),
        pushAll(told.stream(), pieces(text, at))
      ]
      for (const out of outs) for (const read of readings(out)) expect(read).not.toContain(secret)
      expect(outs[0]).toContain("[redacted]")
    },
    { fastCheck: { numRuns: 500 } }
  )

  it.prop(
    "of a well-known form is in no text, however it is written and cut",
    [issued, words, words, FastCheck.constantFrom(...writings.slice(0, 4)), cuts],
    ([secret, before, after, write, at]) => {
      const { said, told } = Secrets.make([])
      const text = `${before} ${write(secret)} ${after}`
      const outs = [
        said.text(text),
        told.text(text),
        pushAll(said.stream(), pieces(text, at)),
        pushAll(told.stream(), pieces(text, at))
      ]
      for (const out of outs) for (const read of readings(out)) expect(read).not.toContain(secret)
    },
    { fastCheck: { numRuns: 500 } }
  )

  it.prop(
    "is in no JSON data, as a value or as a name",
    [configured, FastCheck.jsonValue(), FastCheck.boolean()],
    ([secret, value, asName]) => {
      const { told } = Secrets.make([secret])
      const clean = told.json({ deep: [asName ? { [`x${secret}`]: value } : [value, `a ${secret} b`]] })
      expect(JSON.stringify(clean)).not.toContain(json(secret))
    },
    { fastCheck: { numRuns: 300 } }
  )
})

describe("what is no secret", () => {
  it.prop(
    "stays as it is, and passes at once",
    [FastCheck.array(FastCheck.fullUnicodeString(), { maxLength: 8 })],
    ([all]) => {
      const { said } = Secrets.make(["correct-horse-battery-staple"])
      const text = all.join("")
      expect(said.text(text)).toBe(text)
      expect(pushAll(said.stream(), all)).toBe(text)
    },
    { fastCheck: { numRuns: 1000 } }
  )

  it("may look a little like one", () => {
    const { said } = Secrets.make(["correct-horse-battery-staple"])
    for (const text of [
      "Use `Authorization: Bearer <token>` and set API_KEY=your-key-here.",
      "the bearer authentication scheme, the bearer internationalization",
      ".sk-navigation-primary-dark-theme-container { color: red }",
      "ask-me, task-3, risk-averse-investors-of-2024-and-later",
      "https://example.com/a%20b?page=2&key=abcdefgh",
      "C:\\Users\\new\\table, a\\nb, \\u00e9",
      "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
      "correct answers, correct-horse-shoe",
      'eyJ is how base64 of {" begins',
      "2f1a3c4e5b6d7f8091a2b3c4d5e6f708192a3b4c",
      "run_01890000-0000-7000-8000-000000000001"
    ]) {
      expect(said.text(text)).toBe(text)
      expect(pushAll(said.stream(), [...text])).toBe(text)
    }
  })

  it("is the same value, not a copy", () => {
    const { told } = Secrets.make([])
    const value = { a: [1, "two", { three: null }], ["__proto__"]: "x" }
    expect(told.json(value)).toBe(value)
    const hostile = JSON.parse('{"__proto__":{"x":"sk-proj-abcdefghij0123456789"},"constructor":1}')
    const clean = told.json(hostile)
    expect(JSON.stringify(clean)).toBe('{"__proto__":{"x":"[redacted]"},"constructor":1}')
    expect(Object.getPrototypeOf(clean)).toBe(Object.prototype)
  })
})

describe("what tools tell", () => {
  const { said, told } = Secrets.make([])

  it("is secret behind certain names", () => {
    expect(told.json({ device_code: "GmRhmhcxhwAzkoEqiMEg", user_code: "WDJB-MJHT", interval: 5 })).toEqual({
      device_code: "[redacted]",
      user_code: "WDJB-MJHT",
      interval: 5
    })
    expect(told.json({ headers: { "Set-Cookie": ["a=bcdefg; HttpOnly", "none"], ok: true } })).toEqual({
      headers: { "Set-Cookie": ["[redacted]", "none"], ok: true }
    })
    for (const [text, clean] of [
      ["Cookie: sid=abcdef; theme=dark\r\nnext", "Cookie: [redacted]\r\nnext"],
      ["GET /v1?api=1&key=abcdef0123 failed", "GET /v1?api=1&key=[redacted] failed"],
      ['{"refresh_token": "1//abcdef", "x": 1}', '{"refresh_token": "[redacted]", "x": 1}'],
      ['{\\"access_token\\":\\"abcdef\\"}', '{\\"access_token\\":\\"[redacted]\\"}'],
      ["Authorization: Basic dXNlcjpwYXNz", "Authorization: [redacted]"],
      ["X-Api-Key=abcdef123", "X-Api-Key=[redacted]"]
    ] as const) {
      expect(told.text(text)).toBe(clean)
      expect(pushAll(told.stream(), [...text])).toBe(clean)
      expect(said.text(text)).toBe(text)
    }
  })
})

describe("what is held back", () => {
  const { said } = Secrets.make(["correct-horse-battery-staple"])

  it("is told when the text ends, unless much of a secret stands there", () => {
    const stream = said.stream()
    expect(stream.push("a corr")).toBe("a ")
    expect(stream.end()).toBe("corr")
    expect(stream.push("correct-horse-bat") + stream.end()).toBe("[redacted]")
    expect(said.text("cut: correct-horse-bat")).toBe("cut: [redacted]")
  })

  it("is recognised also when it was told in part", () => {
    const stream = said.stream()
    const first = stream.push("is corr") + stream.end()
    expect(first + stream.push("ect-horse-battery-staple!") + stream.end()).toBe("is corr[redacted]!")
  })

  it("does not show how much of a guess is right", () => {
    const held = (guess: string) => guess.length - said.stream().push(guess).length
    for (const guess of ["corX", "corrX", "correX", "correct"]) expect(held(guess)).toBe(guess.length)
    for (const guess of ["correct-X", "correct-hX", "correct-horX"]) expect(held(guess)).toBe(guess.length)
  })

  it("is told when it becomes too long to be one", () => {
    const stream = Secrets.make([]).said.stream()
    const piece = "sk-abc-".repeat(3_000)
    const told = [1, 2, 3].map(() => stream.push(piece)).join("") + stream.end()
    expect(told === piece.repeat(3)).toBe(true)
  })

  it("has an end", () => {
    const stream = Secrets.make([]).said.stream()
    let told = ""
    let most = 0
    for (let i = 0; i < 2000; i++) {
      told += stream.push(i === 0 ? "key sk-proj-" : "a1b2c3d4e5".repeat(10))
      most = Math.max(most, told.length)
    }
    told += stream.push(" done") + stream.end()
    expect(told).toBe("key [redacted] done")
  })
})

it("hostile text takes no more time than its length", { timeout: 45_000 }, () => {
  const { said, told } = Secrets.make(["correct-horse-battery-staple", "-----BEGIN-it-is-a-value"])
  const beginnings = [
    "sk-",
    "sk_live_",
    "ghp_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "AKIA",
    "AIza",
    "npm_",
    "hf_",
    "gsk_"
  ]
    .concat([
      "xai-",
      "ya29.",
      "SG.",
      "SG.a",
      "eyJ",
      "eyJaaaaaaaa",
      "Bearer ",
      "Bearer a",
      "-----BEGIN PRIVATE KEY-----"
    ])
    .concat([
      "cookie=",
      "authorization: ",
      'key="',
      "api_key=",
      "device_code:",
      "?key=",
      "corr",
      "correct-",
      "-----BEGIN-"
    ])
    .concat(["\\", "\\u00", "%41", "%", "-"])
  // What may stand between two of them, and behind the last one: something that makes all of it no secret.
  for (const unit of beginnings.flatMap((begin) => ["", ".", " ", "\\"].map((between) => begin + between))) {
    // Quadratic work on this much text takes minutes.
    const text = `${unit.repeat(Math.ceil(40_000 / unit.length))} .`
    const [pieces, whole] = [told.stream(), said.stream()]
    let out = said.text(text).length + told.text(text).length + whole.push(text).length + whole.end().length
    for (let i = 0; i < text.length; i += 4000) out += pieces.push(text.slice(i, i + 4000)).length
    out += pieces.end().length
    // A marker may be longer than what it stands for.
    expect(out).toBeLessThanOrEqual(8 * text.length)
  }
})
