/**
 * The calls that the page makes. A refusal is thrown as `Refused`, with what the server said.
 *
 * @since 0.1.0
 */

/**
 * What the server answered instead of doing it.
 *
 * @since 0.1.0
 * @category errors
 */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string
  ) {
    super(message)
  }
}

/**
 * One call with a JSON body and a JSON answer; `undefined` when the answer has none.
 *
 * @since 0.1.0
 * @category calls
 */
export const call = async (method: string, path: string, body?: unknown): Promise<unknown> => {
  const response = await fetch(path, {
    method,
    headers: {
      accept: "application/json",
      prefer: "respond-async",
      ...(body !== undefined && { "content-type": "application/json" })
    },
    ...(body !== undefined && { body: JSON.stringify(body) })
  })
  const text = await response.text()
  const json: unknown = text === "" ? undefined : JSON.parse(text)
  if (response.ok) return json
  throw new Refused(response.status, field(json, "message") ?? `The server answered ${response.status}.`)
}

/**
 * A text field of a JSON object.
 *
 * @since 0.1.0
 * @category json
 */
export const field = (json: unknown, name: string): string | undefined => {
  if (typeof json !== "object" || json === null) return undefined
  const value: unknown = Object.entries(json).find(([key]) => key === name)?.[1]
  return typeof value === "string" ? value : undefined
}
