/**
 * Traces as files: JSON Lines, a header and then every envelope of one run in order. A file that is cut short or was
 * changed says where; what stands before that place can still be looked at.
 *
 * @since 0.1.0
 */
import type { Envelope } from "../../domain/Envelope.js"
import type { RunState } from "../../domain/RunState.js"
import * as Snapshot from "../../domain/Snapshot.js"
import * as Shape from "./Shape.js"

/**
 * What a file that is no sound trace has wrong with it. `line` counts from 1.
 *
 * - `not-json`: the line is no JSON; `cut-short`: so is the last one, which has no end either
 * - `not-an-envelope`: `field` is the path of what is missing or wrong, empty for the line as a whole
 * - `unknown-event`: of a type that a newer server may write
 * - `hole`: `expected` and `found` are places in the log
 * - `other-run`: the line belongs to another run than those before
 * - `version`: the header names a version of the format that is not read here
 * - `empty`: there is no event in it
 *
 * @since 0.1.0
 * @category problems
 */
export type Problem = { readonly line: number } & (
  | { readonly is: "not-json" | "cut-short" | "other-run" | "empty" }
  | { readonly is: "not-an-envelope"; readonly field: string }
  | { readonly is: "unknown-event"; readonly type: string }
  | { readonly is: "hole"; readonly expected: number; readonly found: number }
  | { readonly is: "version"; readonly version: string }
)

/**
 * What was found so far, and why reading stopped if it did.
 *
 * @since 0.1.0
 * @category models
 */
export interface Trace {
  readonly envelopes: ReadonlyArray<Envelope>
  readonly problem?: Problem | undefined
}

/**
 * Reads a file piece by piece, so that a page stays alive while it opens a long one. `push` gives the envelopes that
 * are complete with this piece of text, `end` those of a last line without an end. After a problem nothing is read.
 *
 * @since 0.1.0
 * @category reading
 */
export interface Reader {
  readonly push: (text: string) => Trace
  readonly end: () => Trace
}

const format = "runlet-trace"
const version = 1

const headerOf = (value: unknown): { readonly version: unknown } | undefined =>
  typeof value === "object" && value !== null && "format" in value && value.format === format
    ? { version: "version" in value ? value.version : undefined }
    : undefined

/**
 * A reader at the start of a file. The header may be missing, as in a log that was saved from a stream; empty lines,
 * which are a stream's sign of life, are passed over.
 *
 * @since 0.1.0
 * @category reading
 */
export const makeReader = (): Reader => {
  let line = 0
  let seq = 0
  let runId: string | undefined
  let pieces: Array<string> = []
  let problem: Problem | undefined

  const readLine = (text: string, whole: boolean): Envelope | undefined => {
    line++
    const json = line === 1 && text.startsWith("\uFEFF") ? text.slice(1) : text
    if (json.trim() === "") return undefined
    let value: unknown
    try {
      value = JSON.parse(json)
    } catch {
      problem = { line, is: whole ? "not-json" : "cut-short" }
      return undefined
    }
    const header = seq === 0 ? headerOf(value) : undefined
    if (header !== undefined) {
      if (header.version !== version) problem = { line, is: "version", version: String(header.version) }
      return undefined
    }
    const reading = Shape.read(value)
    if (reading.is === "unknown-event") problem = { line, is: reading.is, type: reading.type }
    if (reading.is === "wrong") problem = { line, is: "not-an-envelope", field: reading.field }
    if (reading.is !== "envelope") return undefined
    const { envelope } = reading
    if (runId !== undefined && envelope.runId !== runId) problem = { line, is: "other-run" }
    else if (envelope.seq !== seq + 1) problem = { line, is: "hole", expected: seq + 1, found: envelope.seq }
    if (problem !== undefined) return undefined
    runId = envelope.runId
    seq = envelope.seq
    return envelope
  }

  const readLines = (lines: ReadonlyArray<string>, whole: boolean): Trace => {
    const envelopes: Array<Envelope> = []
    for (const text of lines) {
      const envelope = problem === undefined ? readLine(text, whole) : undefined
      if (envelope !== undefined) envelopes.push(envelope)
    }
    return { envelopes, problem }
  }

  return {
    push: (text) => {
      const lines = text.split("\n")
      // Joined once a line is complete, so that a long one costs no more than its length.
      pieces.push(lines[0] ?? "")
      if (lines.length < 2) return { envelopes: [], problem }
      lines[0] = pieces.join("")
      pieces = [lines.pop() ?? ""]
      return readLines(lines, true)
    },
    end: () => {
      const last = pieces.join("")
      pieces = []
      const trace = readLines(last === "" ? [] : [last], false)
      if (problem === undefined && seq === 0) problem = { line: Math.max(1, line), is: "empty" }
      return { ...trace, problem }
    }
  }
}

/**
 * Reads a whole file.
 *
 * @since 0.1.0
 * @category reading
 */
export const read = (text: string): Trace => {
  const reader = makeReader()
  const { envelopes } = reader.push(text)
  const last = reader.end()
  return { envelopes: [...envelopes, ...last.envelopes], problem: last.problem }
}

/**
 * The text of a trace, in pieces to be written one after the other: the header, then the envelopes whose fold `state`
 * is.
 *
 * @since 0.1.0
 * @category writing
 */
export const write = function* (state: RunState, envelopes: Iterable<Envelope>): Generator<string> {
  yield `${JSON.stringify({ format, version, run: Snapshot.header(Snapshot.of(state)) })}\n`
  for (const envelope of envelopes) yield `${JSON.stringify(envelope)}\n`
}
