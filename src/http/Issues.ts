/**
 * What is wrong with a value that came from outside, said so that its author finds the place.
 *
 * @since 0.1.0
 */
import * as ParseResult from "effect/ParseResult"
import { pathText } from "../tool/JsonText.js"

/**
 * The issue to report, with its path; empty for the value itself. Of the members of a union the one that got furthest
 * is the one that was meant, or the one that knows the field.
 *
 * @since 0.1.0
 * @category errors
 */
export const first = (error: ParseResult.ParseError): { readonly path: string; readonly message: string } => {
  const issues = ParseResult.ArrayFormatter.formatErrorSync(error)
  const better = (a: ParseResult.ArrayFormatterIssue, b: ParseResult.ArrayFormatterIssue) =>
    b.path.length > a.path.length ||
    (b.path.length === a.path.length && a._tag === "Unexpected" && b._tag === "Refinement")
  const issue = issues.reduce((a, b) => (better(a, b) ? b : a))
  // Names of our own types tell nobody anything.
  const message = issue.message
    .replace(/^is unexpected/, "is not known here")
    .replace(/^Expected [A-Z]\w*(?=,)/, "Expected an object")
  return { path: pathText(issue.path), message: message.length > 300 ? `${message.slice(0, 300)}…` : message }
}
