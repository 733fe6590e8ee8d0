/**
 * The secret parts of what is configured: of a header's value without its scheme, of an address its credentials.
 *
 * @since 0.1.0
 */

import * as Either from "effect/Either"
import * as Encoding from "effect/Encoding"

/** Headers whose values say what is sent or who sends it, and are found in ordinary text. */
const plainHeader =
  /^(?:accept(?:-.*)?|content-type|user-agent|referer|http-referer|origin|host|connection|cache-control|x-title|openai-(?:organization|project|beta)|.*-(?:version|beta))$/i

/**
 * What is secret in a header.
 *
 * @since 0.1.0
 * @category values
 */
export const ofHeader = (name: string, value: string): ReadonlyArray<string> => {
  if (plainHeader.test(name)) return []
  if (/^cookie$/i.test(name)) {
    return [value, ...value.split(/;\s*/).map((pair) => pair.slice(pair.indexOf("=") + 1))]
  }
  const [, scheme, rest] = /^([A-Za-z][\w-]*) +(\S.*)$/.exec(value) ?? []
  if (rest === undefined) return [value]
  const pair = scheme?.toLowerCase() === "basic" ? Either.getOrElse(Encoding.decodeBase64String(rest), () => "") : ""
  return [rest, pair, pair.slice(pair.indexOf(":") + 1)]
}

/** What stands in an address, or itself where it is no proper escape: an address may have a bare percent sign. */
const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** A part of a path that no person has chosen, as addresses of webhooks have. */
const opaque = /^(?=.*\d)(?=.*[A-Za-z])[\w-]{20,}$/

/**
 * What is secret in an address: its user and password, the values of its query, and parts of its path that are random.
 *
 * @since 0.1.0
 * @category values
 */
export const ofUrl = (text: string): ReadonlyArray<string> => {
  if (!URL.canParse(text)) return []
  const url = new URL(text)
  const password = decoded(url.password)
  const pair = `${decoded(url.username)}:${password}`
  return [
    ...(url.password === "" ? [] : [password, pair, Encoding.encodeBase64(pair)]),
    ...url.searchParams.values(),
    ...url.pathname.split("/").filter((part) => opaque.test(part))
  ]
}

/**
 * What is secret in a variable for a program that is started: those of a telling name, and values that no person has
 * chosen. Others, such as `production`, are words.
 *
 * @since 0.1.0
 * @category values
 */
export const ofVariable = (name: string, value: string): ReadonlyArray<string> =>
  /key|token|secret|pass|auth|cred|cookie|session|dsn/i.test(name) || opaque.test(value)
    ? [value, ...ofUrl(value)]
    : ofUrl(value)
