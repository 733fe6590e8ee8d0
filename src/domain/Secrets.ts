/**
 * What nobody may read, and how it is kept out of everything that is stored, sent or logged: the values that a
 * configuration names and well-known forms of keys and tokens, whole or in pieces, plain or escaped.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { compile, marker, minLength, type Patterns, replaced } from "./SecretPatterns.js"
import { forms, isSecretName, labels } from "./SecretShapes.js"
import { SecretStream } from "./SecretStream.js"

/**
 * Cleans what comes from one kind of source.
 *
 * - `text`: a whole text; the same string when nothing is secret in it. Where it ends in the middle of a configured
 *   value it was cut, and that is replaced too
 * - `json`: every text in JSON data, names of fields included; the same value when nothing is secret in it
 * - `stream`: a text that comes in pieces
 *
 * @since 0.1.0
 * @category models
 */
export interface Cleaner {
  readonly text: (text: string) => string
  readonly json: <A>(value: A) => A
  readonly stream: () => SecretStream
}

const cleaner = (patterns: Patterns, isSecret: (name: string) => boolean): Cleaner => {
  const text = (text: string): string => (patterns.suspicious(text) ? replaced(text, patterns.find(text, true)) : text)

  const items = (values: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
    let changed = false
    const out = values.map((value) => {
      const clean = json(value)
      changed ||= clean !== value
      return clean
    })
    return changed ? out : values
  }

  const record = (value: object): object => {
    let changed = false
    const out = Object.entries(value).map(([name, member]) => {
      const cleanName = text(name)
      const clean = isSecret(name) ? hidden(member) : json(member)
      changed ||= cleanName !== name || clean !== member
      return [cleanName, clean] as const
    })
    return changed ? Object.fromEntries(out) : value
  }

  /** What stands in a field of a secret name. Words such as `none` say nothing. */
  const hidden = (value: unknown): unknown => {
    if (typeof value === "string") return value.length < 6 ? value : marker
    return Array.isArray(value) ? value.map(hidden) : json(value)
  }

  const json = (value: unknown): unknown => {
    if (typeof value === "string") return text(value)
    if (typeof value !== "object" || value === null) return value
    return Array.isArray(value) ? items(value) : record(value)
  }

  // Texts stay texts and everything else stays what it is, so the type stays as well.
  const same = <A>(value: A): A => json(value) as A

  return { text, json: same, stream: () => new SecretStream(patterns) }
}

/**
 * Two cleaners: `said` for what people and models write, and `told` for what tools and servers answer, where a name
 * such as `cookie` or `device_code` is enough to make what follows it a secret.
 *
 * Without a configuration only forms and names are known. Give the engine the values of yours by `layer`.
 *
 * @since 0.1.0
 * @category services
 */
export class Secrets extends Context.Reference<Secrets>()("runlet/Secrets", {
  defaultValue: (): { readonly said: Cleaner; readonly told: Cleaner } => make([])
}) {}

/**
 * Cleaners that know these values. Values of fewer than 8 characters are left out.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (values: ReadonlyArray<string>): { readonly said: Cleaner; readonly told: Cleaner } => {
  const known = values.filter((value) => value.length >= minLength)
  return {
    said: cleaner(compile({ values: known, forms, labels: [] }), () => false),
    told: cleaner(compile({ values: known, forms, labels }), isSecretName)
  }
}

/**
 * Cleaners that know the secrets of a configuration.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (values: ReadonlyArray<Redacted.Redacted>): Layer.Layer<never> =>
  Layer.succeed(Secrets, make(values.map(Redacted.value)))
