/**
 * Traces as files: JSON Lines, a header and then every envelope of one run in order. Each line is checked against what
 * stands before it, so that a file that was cut short or changed says where. Pure.
 *
 * @since 0.1.0
 */
import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import { Envelope } from "../domain/Envelope.js"
import * as RunState from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"

/**
 * What was read so far: `line` counts lines, `run` is the fold of the events, `expected` is how many events the header
 * promises. Behind a `problem` nothing is read.
 *
 * @since 0.1.0
 * @category models
 */
export interface Reading {
  readonly line: number
  readonly run: RunState.RunState
  readonly expected: number
  readonly problem?: { readonly line: number; readonly message: string } | undefined
}

/**
 * A file of which nothing was read.
 *
 * @since 0.1.0
 * @category constructors
 */
export const empty: Reading = { line: 0, run: RunState.empty(""), expected: 0 }

const Header = Schema.Struct({
  format: Schema.Literal("runlet-trace"),
  version: Schema.Unknown,
  run: Schema.optional(Schema.Struct({ runId: Schema.String, lastSeq: Schema.Int }))
})

const decodeJson = Schema.decodeEither(Schema.parseJson())
const decodeHeader = Schema.decodeUnknownEither(Header)
const decodeEnvelope = Schema.decodeUnknownEither(Envelope)

/** Where in the value something is wrong; what stands there may be anybody's text. */
const fieldOf = (error: ParseResult.ParseError): string => {
  const [first] = ParseResult.ArrayFormatter.formatErrorSync(error)
  return first === undefined || first.path.length === 0 ? "the line" : first.path.join(".")
}

/** Whether an event may stand behind this state; a run that waits may be decided about at any time. */
const mayFollow = (run: RunState.RunState, { event }: Envelope): boolean =>
  RunStatus.next(run.seq === 0 ? undefined : run, event) !== undefined

const check = (run: RunState.RunState, envelope: Envelope): string | undefined => {
  const { event, runId, seq } = envelope
  if (run.runId !== "" && runId !== run.runId) return "this event belongs to another run"
  if (seq !== run.seq + 1) return `event ${run.seq + 1} is missing, this is ${seq}`
  return mayFollow(run, envelope) ? undefined : `${event.type} can not stand behind a run that is ${run.status}`
}

/**
 * Reads one more line. The envelope is the one that it holds, if it holds a sound one; headers, empty lines, which are a
 * stream's sign of life, and problems hold none.
 *
 * @since 0.1.0
 * @category reading
 */
export const read = (reading: Reading, text: string): readonly [Reading, Envelope | undefined] => {
  if (reading.problem !== undefined) return [reading, undefined]
  const line = reading.line + 1
  const next = { ...reading, line }
  const wrong = (message: string): readonly [Reading, undefined] => [{ ...next, problem: { line, message } }, undefined]
  const json = line === 1 && text.startsWith("\uFEFF") ? text.slice(1) : text
  if (json.trim() === "") return [next, undefined]
  const value = decodeJson(json)
  if (Either.isLeft(value)) return wrong("this is no JSON; the file may be cut short here")
  const header = reading.run.seq === 0 ? decodeHeader(value.right) : undefined
  if (header !== undefined && Either.isRight(header)) {
    const { run, version } = header.right
    if (version !== 1) return wrong(`version ${String(version)} of the format is not known here`)
    return [run === undefined ? next : { ...next, run: RunState.empty(run.runId), expected: run.lastSeq }, undefined]
  }
  const decoded = decodeEnvelope(value.right)
  if (Either.isLeft(decoded)) return wrong(`this is no event of a run: ${fieldOf(decoded.left)} is wrong`)
  const envelope = decoded.right
  const before = reading.run.seq === 0 && reading.run.runId === "" ? RunState.empty(envelope.runId) : reading.run
  const message = check(before, envelope)
  return message === undefined ? [{ ...next, run: RunState.reduce(before, envelope) }, envelope] : wrong(message)
}

/**
 * What is wrong with the whole, once all lines are read: nothing, or in which line and what.
 *
 * @since 0.1.0
 * @category reading
 */
export const problem = ({ expected, line, problem, run }: Reading): Reading["problem"] => {
  if (problem !== undefined) return problem
  if (run.seq === 0) return { line: Math.max(1, line), message: "there is no event in it" }
  return run.seq < expected
    ? { line, message: `the file is cut short: ${expected} events were written, ${run.seq} are here` }
    : undefined
}
