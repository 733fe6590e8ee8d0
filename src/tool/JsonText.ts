/**
 * What gets lost when JSON text is read: of two members of one name the first, and the last digits of long numbers.
 * Whoever must not lose anything asks before.
 *
 * @since 0.1.0
 */

import { wellFormed } from "./Json.js"

/**
 * Where something would be lost, and what to do about it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Loss {
  readonly path: ReadonlyArray<string | number>
  readonly message: string
}

/**
 * Writes the path of a member the way JavaScript would: `messages[0].role`.
 *
 * @since 0.1.0
 * @category text
 */
export const pathText = (path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>((text, key) => {
    if (typeof key === "number") return `${text}[${key}]`
    return text === "" ? String(key) : `${text}.${String(key)}`
  }, "")

/** An object or array that is being read. `keys` are the names of an object so far, `at` the member that comes. */
interface Level {
  readonly keys: Set<string> | undefined
  at: string | number
}

/** Beyond the range of a double, or an integer that would be written differently when it is written again. */
const isInexact = (text: string): boolean => {
  const value = Number(text)
  return !Number.isFinite(value) || (text.length > 15 && /^-?\d+$/.test(text) && String(value) !== text)
}

/** Where the string that begins at `from` ends, its closing quote included. */
const endOfString = (text: string, from: number): number => {
  let end = from + 1
  while (text[end] !== '"') end += text[end] === "\\" ? 2 : 1
  return end + 1
}

const number = /-?[0-9][0-9.eE+-]*/y

const shown = (key: string): string => (key.length > 100 ? `${key.slice(0, 100)}…` : key)

/**
 * What would be lost first of a text that is valid JSON.
 *
 * @since 0.1.0
 * @category reading
 */
export const lossOf = (text: string): Loss | undefined => {
  const levels: Array<Level> = []
  let top: Level | undefined
  let isKey = false
  const path = () => levels.map(({ at }) => (typeof at === "string" ? shown(at) : at))
  let i = 0
  while (i < text.length) {
    const char = text[i]
    switch (char) {
      case "{":
      case "[":
        isKey = char === "{"
        top = { keys: isKey ? new Set() : undefined, at: 0 }
        levels.push(top)
        break
      case "}":
      case "]":
        levels.pop()
        top = levels.at(-1)
        isKey = false
        break
      case ",":
        if (top?.keys === undefined && typeof top?.at === "number") top.at += 1
        isKey = top?.keys !== undefined
        break
      case '"': {
        const end = endOfString(text, i)
        if (isKey && top?.keys !== undefined) {
          const key = wellFormed(JSON.parse(text.slice(i, end)))
          top.at = key
          if (top.keys.has(key)) return { path: path(), message: "stands there twice; send it once" }
          top.keys.add(key)
          isKey = false
        }
        i = end
        continue
      }
      default:
        number.lastIndex = i
        if (char === "-" || (char !== undefined && char >= "0" && char <= "9")) {
          const [token = ""] = number.exec(text) ?? []
          if (isInexact(token)) {
            return { path: path(), message: "is a number that can not be kept exactly; send it as a string" }
          }
          i += Math.max(1, token.length)
          continue
        }
    }
    i++
  }
  return undefined
}
