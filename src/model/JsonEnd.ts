/**
 * Whether a JSON text that grows is complete, without reading it again for each of its pieces.
 *
 * @since 0.1.0
 */

/**
 * - `push`: takes the next piece
 * - `isReached`: whether the pieces so far, which are this text, are one complete object, array or string
 *
 * @since 0.1.0
 * @category models
 */
export interface JsonEnd {
  readonly push: (piece: string) => void
  readonly isReached: (text: string) => boolean
}

/** What may stand around a value. */
const isBlank = (char: string | undefined): boolean => char === " " || char === "\n" || char === "\r" || char === "\t"

/**
 * The end of a text of which nothing has come yet.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (): JsonEnd => {
  let depth = 0
  let quoted = false
  let escaped = false
  /** Whether the brackets and quotes of the value are closed, and whether anything stands behind them. */
  let closed = false
  let spoiled = false
  let sound: boolean | undefined

  const take = (char: string | undefined): void => {
    if (closed) {
      spoiled ||= !isBlank(char)
    } else if (quoted) {
      if (!escaped && char === '"') quoted = false
      escaped = !escaped && char === "\\"
      closed = !quoted && depth === 0
    } else if (char === '"') {
      quoted = true
    } else if (char === "{" || char === "[") {
      depth++
    } else if (char === "}" || char === "]") {
      depth--
      closed = depth <= 0
    }
  }

  return {
    push: (piece) => {
      for (let i = 0; i < piece.length && !spoiled; i++) take(piece[i])
    },
    isReached: (text) => {
      if (!closed || spoiled) return false
      sound ??= isJson(text)
      return sound
    }
  }
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
