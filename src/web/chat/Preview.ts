/**
 * What a tool says about a change before it is made: the fields that can be shown better than as JSON. Pure.
 *
 * @since 0.1.0
 */

/**
 * The parts of a preview that are known by name. What a tool does not say is not there.
 *
 * @since 0.1.0
 * @category models
 */
export interface Preview {
  readonly action?: string | undefined
  readonly title?: string | undefined
  readonly titleBefore?: string | undefined
  readonly after?: string | undefined
  readonly diff?: string | undefined
}

/**
 * A text field of a JSON object.
 *
 * @since 0.1.0
 * @category reading
 */
export const field = (json: unknown, name: string): string | undefined => {
  if (typeof json !== "object" || json === null) return undefined
  const value: unknown = Object.entries(json).find(([key]) => key === name)?.[1]
  return typeof value === "string" ? value : undefined
}

/**
 * The preview that a tool gave.
 *
 * @since 0.1.0
 * @category reading
 */
export const of = (json: unknown): Preview => ({
  action: field(json, "action"),
  title: field(json, "title"),
  titleBefore: field(json, "titleBefore"),
  after: field(json, "after"),
  diff: field(json, "diff")
})

/**
 * A line of a diff, and what became of it.
 *
 * @since 0.1.0
 * @category models
 */
export interface DiffLine {
  readonly change: "added" | "removed" | "same"
  readonly text: string
}

/**
 * The lines of a diff, without the marks in front of them.
 *
 * @since 0.1.0
 * @category reading
 */
export const diffLines = (diff: string): ReadonlyArray<DiffLine> =>
  diff.split("\n").map((line) => {
    if (line.startsWith("+")) return { change: "added", text: line.slice(1).replace(/^ /, "") }
    if (line.startsWith("-")) return { change: "removed", text: line.slice(1).replace(/^ /, "") }
    return { change: "same", text: line.replace(/^ {1,2}/, "") }
  })

/**
 * Any value as text for people.
 *
 * @since 0.1.0
 * @category text
 */
export const show = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value, undefined, 2) ?? "")

/**
 * A field of an input as a person edits it: text as it is, anything else as JSON.
 *
 * @since 0.1.0
 * @category editing
 */
export interface Field {
  /** Absent for an input that is no object; any text, the empty one too, is the name of a part. */
  readonly name: string | undefined
  readonly isText: boolean
  readonly value: string
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * An input as fields. What is no object is one field without a name.
 *
 * @since 0.1.0
 * @category editing
 */
export const fieldsOf = (input: unknown): ReadonlyArray<Field> =>
  isRecord(input)
    ? Object.entries(input).map(([name, value]) => ({ name, isText: typeof value === "string", value: show(value) }))
    : [{ name: undefined, isText: false, value: JSON.stringify(input, undefined, 2) ?? "" }]

/**
 * The input that edited fields make; throws a `SyntaxError` when one of them is not the JSON that it must be.
 *
 * @since 0.1.0
 * @category editing
 */
export const inputOf = (fields: ReadonlyArray<Field>): unknown => {
  const value = ({ isText, value }: Field): unknown => (isText ? value : JSON.parse(value))
  const whole = fields.find(({ name }) => name === undefined)
  if (whole !== undefined) return value(whole)
  return Object.fromEntries(fields.map((one) => [one.name, value(one)]))
}
