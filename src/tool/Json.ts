/**
 * Plain JSON data out of anything, and when two pieces of it are the same.
 *
 * @since 0.1.0
 */
import { createHash } from "node:crypto"

/**
 * What a log can hold.
 *
 * @since 0.1.0
 * @category models
 */
export type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [key: string]: Json }

/**
 * As deep as a log can hold: levels of arrays and objects.
 *
 * @since 0.1.0
 * @category constants
 */
export const maxDepth = 128

/**
 * Whether JSON text is nested deeper than `maxDepth`. What reads a value level by level, be it only to say what is
 * wrong with it, needs an end.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isTooDeep = (text: string): boolean => {
  let depth = 0
  let quoted = false
  for (let i = 0; i < text.length; i++) {
    const char = text[i]
    if (char === '"') quoted = !quoted
    else if (quoted) i += char === "\\" ? 1 : 0
    else if (char === "[" || char === "{") depth++
    else if (char === "]" || char === "}") depth--
    if (depth > maxDepth) return true
  }
  return false
}

/**
 * Text with every unpaired surrogate replaced by U+FFFD, so that it survives UTF-8.
 *
 * @since 0.1.0
 * @category conversions
 */
export const wellFormed = (text: string): string => text.replace(/\p{Surrogate}/gu, "\uFFFD")

const isContainer = (value: unknown): value is object => typeof value === "object" && value !== null

/** An own property even where the name is `__proto__`, which an assignment would take for the prototype. */
const put = (target: { [key: string]: Json }, key: string, value: Json): void => {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true })
  } else {
    target[key] = value
  }
}

/** Calls into foreign code: getters, `toJSON`, proxies. */
const guarded = <A>(read: () => A, otherwise: A): A => {
  try {
    return read()
  } catch {
    return otherwise
  }
}

const unreadable = "[unreadable]"

/**
 * The value as JSON data, by the rules of `JSON.stringify` and these further ones, so that nothing a program can
 * return makes it fail:
 *
 * - `undefined`, functions and symbols are `null` at the top and in arrays, and left out of objects
 * - a `bigint` is its decimal text, bytes are base64 text, a `Map` is its entries, a `Set` its members
 * - an `Error` is `{ name, message }`
 * - a circular reference, a getter or `toJSON` that throws, and nesting deeper than 128 levels are a bracketed word
 * - unpaired surrogates are U+FFFD; keys such as `__proto__` are data like any other
 *
 * @since 0.1.0
 * @category conversions
 */
export const toJson = (value: unknown): Json => normalise(value, Number.POSITIVE_INFINITY).json

/** What is surely longer than `budget` bytes is not walked to its end (`cut`): shared references can explode. */
const normalise = (value: unknown, budget: number): { readonly json: Json; readonly cut: boolean } => {
  let left = budget
  let cut = false
  const path = new Set<object>()

  const text = (string: string): Json => {
    const kept = string.length > left ? string.slice(0, Math.max(0, left)) : string
    cut = cut || kept.length < string.length
    left -= kept.length + 1
    return wellFormed(kept)
  }

  const items = (values: Iterable<unknown>, depth: number): Json => {
    const out: Array<Json> = []
    for (const item of values) {
      if (left < 0) {
        cut = true
        break
      }
      out.push(convert(item, depth + 1, true) ?? null)
    }
    return out
  }

  const record = (object: object, depth: number): Json => {
    const out: { [key: string]: Json } = {}
    for (const key of guarded(() => Object.keys(object), [])) {
      if (left < 0) {
        cut = true
        break
      }
      left -= key.length + 3
      const json = convert(
        guarded(() => Reflect.get(object, key), unreadable),
        depth + 1,
        true
      )
      if (json !== undefined) {
        put(out, wellFormed(key), json)
      }
    }
    return out
  }

  const container = (object: object, depth: number, callToJson: boolean): Json | undefined => {
    if (ArrayBuffer.isView(object)) {
      return text(Buffer.from(object.buffer, object.byteOffset, object.byteLength).toString("base64"))
    }
    if (object instanceof ArrayBuffer) {
      return text(Buffer.from(object).toString("base64"))
    }
    if (object instanceof Promise) {
      // Nobody waits for it any more; its rejection must not end the process.
      object.catch(() => undefined)
      return undefined
    }
    const own = callToJson ? guarded<unknown>(() => Reflect.get(object, "toJSON"), undefined) : undefined
    if (typeof own === "function") {
      const answer = guarded<unknown>(() => Reflect.apply(own, object, [""]), unreadable)
      if (answer !== object) {
        return convert(answer, depth, false)
      }
    }
    if (Array.isArray(object) || object instanceof Set || object instanceof Map) {
      return items(object, depth)
    }
    if (object instanceof Error) {
      return { name: text(String(object.name)), message: text(String(object.message)) }
    }
    if (object instanceof RegExp) {
      return text(String(object))
    }
    return record(object, depth)
  }

  const convert = (input: unknown, depth: number, callToJson: boolean): Json | undefined => {
    left -= 1
    switch (typeof input) {
      case "string":
        return text(input)
      case "boolean":
        return input
      case "number":
        return Number.isFinite(input) ? (input === 0 ? 0 : input) : null
      case "bigint":
        return text(input.toString())
      case "undefined":
      case "function":
      case "symbol":
        return undefined
    }
    if (!isContainer(input)) {
      return null
    }
    if (path.has(input)) {
      return "[circular]"
    }
    if (depth > maxDepth) {
      return "[too deep]"
    }
    path.add(input)
    const json = guarded<Json | undefined>(() => container(input, depth, callToJson), unreadable)
    path.delete(input)
    return json
  }

  const json = convert(value, 0, true) ?? null
  return { json, cut }
}

const write = (json: Json): string => {
  if (Array.isArray(json)) {
    return `[${json.map(write).join(",")}]`
  }
  if (isContainer(json)) {
    const members = Object.entries(json)
      .sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
      .map(([key, value]) => `${JSON.stringify(key)}:${write(value)}`)
    return `{${members.join(",")}}`
  }
  return JSON.stringify(json)
}

/**
 * The one text of a JSON value: keys in order of their code units, no blanks. Two values have the same text exactly
 * when they are the same JSON: the order of keys does not matter; types, the order of arrays, and a missing key as
 * against `null` do. JSON has one kind of number, so `1` and `1.0` are the same.
 *
 * @since 0.1.0
 * @category conversions
 */
export const canonical = (value: unknown): string => write(toJson(value))

/**
 * SHA-256 of a text in UTF-8, in hex.
 *
 * @since 0.1.0
 * @category hashing
 */
export const sha256 = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex")

/**
 * SHA-256 of the canonical text, in hex.
 *
 * @since 0.1.0
 * @category hashing
 */
export const hash = (value: unknown): string => sha256(canonical(value))

/**
 * The beginning of a text, at most `maxBytes` long as JSON, never ending inside a surrogate pair.
 *
 * @since 0.1.0
 * @category cutting
 */
export const cut = (text: string, maxBytes: number): string => {
  let low = 0
  let high = Math.min(text.length, Math.max(0, maxBytes))
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (Buffer.byteLength(JSON.stringify(wellFormed(text.slice(0, middle)))) <= maxBytes) {
      low = middle
    } else {
      high = middle - 1
    }
  }
  const last = text.charCodeAt(low - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? low - 1 : low)
}

/**
 * What stands for a result that was too long: its beginning, and a word to the model.
 *
 * @since 0.1.0
 * @category cutting
 */
export const truncated = (text: string, maxBytes: number): Json => {
  const marker = {
    truncated: true,
    message: `This result was longer than ${maxBytes} bytes and was cut. Ask for less, or for one part at a time.`
  }
  const room = maxBytes - Buffer.byteLength(JSON.stringify({ ...marker, text: "" })) + 2
  return { ...marker, text: wellFormed(cut(text, room)) }
}

/**
 * Whether this stands for a result that was too long.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isTruncated = (json: Json): boolean =>
  isContainer(json) && !Array.isArray(json) && "truncated" in json && json.truncated === true && "text" in json

/**
 * The value as JSON data of at most `maxBytes`; a longer one is replaced by its truncated text.
 *
 * @since 0.1.0
 * @category cutting
 */
export const fit = (value: unknown, maxBytes: number): Json => {
  const { cut: incomplete, json } = normalise(value, maxBytes)
  const text = JSON.stringify(json)
  if (!incomplete && Buffer.byteLength(text) <= maxBytes) {
    return json
  }
  if (typeof json === "string") {
    return truncated(json, maxBytes)
  }
  const already = isContainer(json) && !Array.isArray(json) && "truncated" in json && "text" in json ? json.text : null
  return truncated(typeof already === "string" ? already : text, maxBytes)
}
