/**
 * Names, arguments and results of calls as every provider takes them.
 *
 * @since 0.1.0
 */

/**
 * A name that fits the alphabet of providers, so that one bad turn can not make all later requests invalid.
 *
 * @since 0.1.0
 * @category conversions
 */
export const safeName = (name: string): string => {
  const safe = name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 64)
  return safe === "" ? "unknown" : safe
}

/**
 * The JSON object that a text is, `undefined` for any other text.
 *
 * @since 0.1.0
 * @category conversions
 */
export const objectOf = (text: string): { readonly [key: string]: unknown } | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as { readonly [key: string]: unknown })
      : undefined
  } catch {
    return undefined
  }
}

/**
 * What is told to a model of a failed call: an object that says `error`.
 *
 * @since 0.1.0
 * @category conversions
 */
export const errorResult = (result: unknown): unknown =>
  typeof result === "object" && result !== null && "error" in result ? result : { error: result ?? null }
