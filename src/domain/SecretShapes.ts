/**
 * What secrets look like when nobody has named them: the keys and tokens of well-known services, and what stands behind
 * a name such as `device_code`. The forms are those that their issuers document for scanners.
 *
 * @since 0.1.0
 */

/**
 * - `trigrams`: three characters, of which one or the other stand at the beginning of every text of this form
 * - `whole`: source of a pattern that matches a secret; its group, if it has one, is what stands before and stays
 * - `begun`: source of a pattern that matches, at the end of a text, what more text could make a secret
 *
 * @since 0.1.0
 * @category models
 */
export interface Shape {
  readonly trigrams: ReadonlyArray<string>
  readonly whole: string
  readonly begun: string
}

// What stands inside of a longer word is none. It also keeps the time linear: a run of letters has one beginning, as long
// as nothing that is sought from there on goes beyond what may not stand before it.
const start = "(?<![\\w-])"

const token = (
  trigrams: ReadonlyArray<string>,
  prefix: string,
  letter: string,
  size: string,
  withDigit = false
): Shape => ({
  trigrams,
  whole: `${start}${prefix}${withDigit ? `(?=${letter}*\\d)` : ""}${letter}${size}`,
  begun: `${start}${prefix}${letter}*$`
})

const alphanumeric = "[A-Za-z0-9]"
const wordOrDash = "[\\w-]"

/**
 * Forms that are secret wherever they stand.
 *
 * @since 0.1.0
 * @category constants
 */
export const forms: ReadonlyArray<Shape> = [
  // Names in style sheets begin with sk- too, but have no digits as a rule.
  token(["sk-"], "sk-", wordOrDash, "{20,}", true),
  token(["sk_", "rk_"], "[sr]k_(?:live|test)_", alphanumeric, "{16,}"),
  token(["hp_", "ho_", "hu_", "hs_", "hr_"], "gh[pousr]_", alphanumeric, "{30,}"),
  token(["b_p"], "github_pat_", "\\w", "{30,}"),
  token(["pat"], "glpat-", wordOrDash, "{20,}"),
  token(["xox"], "xox[abceoprs]-", wordOrDash, "{10,}", true),
  token(["AKI", "ASI"], "A(?:KIA|SIA)", "[A-Z0-9]", "{16}(?![A-Za-z0-9])"),
  token(["AIz"], "AIza", wordOrDash, "{35}"),
  token(["npm"], "npm_", alphanumeric, "{36}"),
  token(["hf_"], "hf_", alphanumeric, "{30,}"),
  token(["gsk"], "gsk_", alphanumeric, "{30,}"),
  token(["xai"], "xai-", wordOrDash, "{30,}", true),
  token(["a29"], "ya29\\.", wordOrDash, "{20,}"),
  {
    // Two parts of 22 and 43 letters. The dot could begin the next one, so their length is bounded.
    trigrams: ["SG."],
    whole: `${start}SG\\.[\\w-]{16,64}\\.[\\w-]{16,128}`,
    begun: `${start}SG\\.[\\w-]{0,64}(?:\\.[\\w-]{0,128})?$`
  },
  {
    // RFC 7519 and 7516: parts in base64url, of which the first begins with the letters of `{"`.
    trigrams: ["eyJ"],
    whole: `${start}eyJ[\\w-]{8,}(?:(?:\\.[\\w-]{4,}){2,4}|\\.eyJ[\\w-]{8,})`,
    begun: `${start}eyJ[\\w-]*(?:\\.[\\w-]*){0,4}$`
  },
  {
    trigrams: ["rer", "RER"],
    whole: `(${start}[Bb](?:earer|EARER)\\s{1,4})(?=[\\w.~+/=-]*\\d)[\\w.~+/=-]{16,}`,
    begun: `${start}[Bb](?:earer|EARER)(?:\\s{0,4}|\\s{1,4}[\\w.~+/=-]+)$`
  }
]

/** The cases that people write names in. */
const anyCase = (trigram: string): ReadonlyArray<string> => [
  trigram,
  trigram.toUpperCase(),
  `${trigram.slice(0, 1).toUpperCase()}${trigram.slice(1)}`
]

// Values of these may hold further names, each of which would be followed to the end of the text.
const atMost = "{0,4096}"

const named = (trigrams: ReadonlyArray<string>, name: string, letter: string): Shape => {
  const marks = "[\"'\\\\]{0,4}"
  const equals = `${marks}\\s{0,3}[:=]\\s{0,3}${marks}`
  return {
    trigrams: trigrams.flatMap(anyCase),
    whole: `(${start}${name}${equals})${letter}{6,}`,
    begun: `${start}${name}(?:${marks}\\s{0,3}|${equals}${letter}${atMost})$`
  }
}

const fields =
  "(?:x[-_]api[-_]key|api[-_]?key|(?:access|refresh|id|session|auth)[-_]?token|client[-_]?secret|device[-_]?code|secret[-_]?(?:access[-_]?)?key|private[-_]?key)"
const parameter = "([?&](?:key|token|secret|sig|signature|password)=)"
const unquoted = "[^\\s\"'&,;<>\\\\]"

/**
 * What only a name, in any case, makes a secret of: headers, fields and parameters. Tools and servers tell such things;
 * in what a model writes they are examples more often than not.
 *
 * @since 0.1.0
 * @category constants
 */
export const labels: ReadonlyArray<Shape> = [
  named(["oki"], "(?:set-)?cookie", "[^\\r\\n\"'<>]"),
  named(["hor"], "(?:proxy-)?authorization", "[^\\r\\n\"'<>,]"),
  named(["key", "tok", "sec", "vic"], fields, unquoted),
  {
    trigrams: ["key", "tok", "sec", "sig", "pas"].flatMap(anyCase),
    whole: `${parameter}${unquoted}{6,}`,
    begun: `${parameter}${unquoted}${atMost}$`
  }
]

/**
 * Whether a field of this name holds a secret.
 *
 * @since 0.1.0
 * @category predicates
 */
export const isSecretName = (name: string): boolean =>
  /^(?:(?:set-)?cookie|(?:proxy-)?authorization|x[-_]api[-_]key|api[-_]?key|(?:access|refresh|id|session|auth|bearer)[-_]?token|client[-_]?secret|device[-_]?code|secret[-_]?(?:access[-_]?)?key|private[-_]?key|passw(?:or)?d)$/i.test(
    name
  )
