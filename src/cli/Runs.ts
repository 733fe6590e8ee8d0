/**
 * `runlet runs …`: what runs there are, what they say, and answering, stopping and continuing them.
 *
 * @since 0.1.0
 */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as RunState from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import * as Snapshot from "../domain/Snapshot.js"
import type { DecideRequest } from "../engine/RunEngine.js"
import * as Approval from "./Approval.js"
import { type Failure, ofCode } from "./Failure.js"
import * as Flags from "./Flags.js"
import * as Place from "./Place.js"
import * as Screen from "./Screen.js"
import type { RunSummary, Source } from "./Source.js"
import { columns } from "./Table.js"
import * as Text from "./Text.js"
import * as Transcript from "./Transcript.js"

const run = Args.text({ name: "run" }).pipe(Args.withDescription("The id of a run, as `runlet runs list` shows it"))
const maybe = <A>(args: Args.Args<A>) => Args.map(Args.optional(args), Option.getOrUndefined)
const approval = maybe(
  Args.text({ name: "approval" }).pipe(
    Args.withDescription("The id of what waits; may be left out where nothing else of the run does")
  )
)
const reason = Flags.optional(
  Options.text("reason").pipe(Options.withDescription("Why; the model and the log are told"))
)

/** A command that looks for its place first, and says by its exit code when it was interrupted. */
const at = <A, E, R>(options: Place.PlaceOptions, use: (source: Source) => Effect.Effect<A, E, R>) =>
  Screen.interruptible(Effect.scoped(Effect.flatMap(Place.source(options), use)))

const style = Effect.map(Screen.Screen, ({ isStyled }) => Text.style(isStyled))

const row = (one: RunSummary): ReadonlyArray<string | number> => [
  one.runId,
  one.status + (one.recoverable === true ? " (can be resumed)" : ""),
  Text.line(one.model),
  Text.moment(one.createdAt),
  one.usage.totalTokens,
  "tokens",
  one.error === undefined ? "" : Text.line(one.error.message)
]

const list = Command.make(
  "list",
  {
    status: Flags.optional(
      Options.choice("status", RunStatus.all).pipe(Options.withDescription("Only runs in this state"))
    ),
    conversationId: Flags.optional(
      Options.text("conversation").pipe(Options.withDescription("Only runs of this conversation"))
    ),
    limit: Flags.optional(
      Options.integer("limit").pipe(Options.withDescription("How many runs at most, 1 to 200 (default 50)"))
    ),
    cursor: Flags.optional(Options.text("cursor").pipe(Options.withDescription("`nextCursor` of the page before"))),
    json: Flags.json,
    ...Flags.place
  },
  ({ conversationId, cursor, json, limit, status, ...place }) =>
    at(place, (source) =>
      Effect.gen(function* () {
        if (limit !== undefined && (limit < 1 || limit > 200)) return yield* ofCode(2, "--limit must be from 1 to 200")
        const page = yield* source.list({
          limit,
          ...(status !== undefined && { status }),
          ...(conversationId !== undefined && { conversationId }),
          ...(cursor !== undefined && { cursor })
        })
        if (json) return yield* Screen.json(page)
        if (page.items.length === 0) return yield* Screen.lines(["No runs found"])
        const { columns: width } = yield* Screen.Screen
        const fitting = yield* width
        yield* Screen.lines(columns(page.items.map(row)).map((text) => Text.fit(text, fitting)))
        if (page.nextCursor !== undefined) yield* Screen.lines([`There are more: add --cursor ${page.nextCursor}`])
      })
    )
).pipe(Command.withDescription("List runs, newest first"))

/** The parts of a run in the order of their making. */
const partLines = (snapshot: Snapshot.Snapshot, look: Text.Style): ReadonlyArray<string> => {
  const calls = new Map(snapshot.toolCalls.map((call) => [call.toolCallId, call]))
  return snapshot.parts.flatMap((part) => {
    if (part.type !== "tool-call") {
      const text = Text.inert(part.text).trimEnd()
      return text === "" ? [] : ["", part.type === "text" ? text : look.dim(text)]
    }
    const call = calls.get(part.toolCallId)
    if (call === undefined) return []
    const { approval: asked, durationMs = 0, input, ok = false, result, state, title, toolName } = call
    const isSettled = call.ok !== undefined
    const outcome =
      state === "streaming" || state === "ready" || state === "running" || state === "waiting"
        ? state
        : Transcript.result({ state, ok, durationMs, result })
    return [
      "",
      look.bold(`→ ${Text.line(title === undefined ? toolName : `${title} (${toolName})`)}: ${outcome}`),
      ...Text.inert(Text.show(input ?? call.argumentsText))
        .split("\n")
        .map((text) => look.dim(`  ${text}`)),
      ...(isSettled && result !== null
        ? Text.inert(Text.show(result))
            .split("\n")
            .map((text) => `  ${text}`)
        : []),
      ...(asked !== undefined && asked.decision === undefined ? Approval.lines(asked, look) : [])
    ]
  })
}

const endLine = (snapshot: Snapshot.Snapshot, look: Text.Style): ReadonlyArray<string> => {
  const end = Snapshot.endOf(snapshot)
  return end === undefined ? [] : ["", Transcript.ending(end, look)]
}

const shown = (snapshot: Snapshot.Snapshot, look: Text.Style): ReadonlyArray<string> => {
  const { attempt, conversationId, createdAt, iteration, mode, model, queuePosition, runId, status, usage } = snapshot
  return [
    `${look.bold(runId)}  ${status}${queuePosition === undefined ? "" : `, place ${queuePosition} in the queue`}`,
    look.dim(`conversation ${conversationId}, started ${Text.moment(createdAt)}`),
    look.dim(
      `model ${Text.line(model)}${mode === "plan" ? ", plan mode" : ""}, ${iteration} iterations, attempt ${attempt}, ${Transcript.usage(usage)}`
    ),
    ...partLines(snapshot, look),
    ...endLine(snapshot, look)
  ]
}

const show = Command.make("show", { run, json: Flags.json, ...Flags.place }, ({ json, run: runId, ...place }) =>
  at(place, (source) =>
    Effect.gen(function* () {
      const snapshot = yield* source.snapshot(runId)
      yield* json ? Screen.json(snapshot) : Screen.lines(shown(snapshot, yield* style))
    })
  )
).pipe(Command.withDescription("Show a run as it stands: what it said, its tool calls, what waits for a person"))

/**
 * Writes a run's events as they come: for people, or one envelope a line. Answers the state behind the last one.
 *
 * @since 0.1.0
 * @category programs
 */
export const follow = (
  events: Stream.Stream<Parameters<typeof Transcript.step>[1], Failure>,
  options: { readonly runId: string; readonly json: boolean }
): Effect.Effect<RunState.RunState, Failure> =>
  Effect.gen(function* () {
    const screen = yield* Screen.Screen
    const manner = { style: Text.style(screen.isStyled), columns: yield* screen.columns }
    let transcript = Transcript.make(RunState.empty(options.runId))
    yield* Stream.runForEachChunk(events, (envelopes) => {
      let text = ""
      for (const envelope of envelopes) {
        const [next, added] = Transcript.step(transcript, envelope, manner)
        transcript = next
        text += options.json ? `${Screen.jsonLine(envelope)}\n` : added
      }
      return text === "" ? Effect.void : screen.write(text)
    })
    if (!options.json) yield* screen.write(Transcript.close(transcript))
    return transcript.run
  })

const tail = Command.make(
  "tail",
  {
    run,
    after: Options.integer("after").pipe(
      Options.withDefault(0),
      Options.withDescription("Begin behind the event of this number (default 0, the start)")
    ),
    json: Flags.json,
    ...Flags.place
  },
  ({ after, json, run: runId, ...place }) =>
    at(place, (source) =>
      Effect.gen(function* () {
        if (after < 0) return yield* ofCode(2, "--after must be 0 or more")
        // A stream waits for a server that is away; whether it is there at all is found out here.
        yield* source.snapshot(runId)
        yield* follow(source.events(runId, after), { runId, json })
      })
    )
).pipe(Command.withDescription("Watch a run: what happened so far, then live until it has ended"))

const cancel = Command.make(
  "cancel",
  { run, reason, json: Flags.json, ...Flags.place },
  ({ json, reason: why, run: runId, ...place }) =>
    at(place, (source) =>
      Effect.gen(function* () {
        const result = yield* source.cancel(runId, why)
        if (json) return yield* Screen.json(result)
        yield* Screen.lines([
          result.status === "cancelled" ? `${runId} is cancelled` : `${runId} had ended before: ${result.status}`
        ])
      })
    )
).pipe(Command.withDescription("Stop a run for good, and wait until it has stopped"))

const resume = Command.make("resume", { run, json: Flags.json, ...Flags.place }, ({ json, run: runId, ...place }) =>
  at(place, (source) =>
    Effect.gen(function* () {
      const accepted = yield* source.resume(runId)
      if (RunStatus.isEnded(accepted.status)) {
        return yield* ofCode(1, `This run has ended (${accepted.status}) and can not go on. Start another one`)
      }
      if (json) return yield* Screen.json(accepted)
      yield* Screen.lines([`${runId} goes on. Watch it with \`runlet runs tail ${runId}\``])
    })
  )
).pipe(Command.withDescription("Go on with a run that has failed and can be resumed"))

interface Waiting extends Approval.Request {
  readonly runId: string
  readonly conversationId: string
}

/** Everything that waits for a person, newest run first. */
const waiting = (source: Source): Effect.Effect<ReadonlyArray<Waiting>, Failure> =>
  Stream.paginateChunkEffect(undefined, (cursor: string | undefined) =>
    Effect.map(
      source.list({ status: "waiting_approval", ...(cursor !== undefined && { cursor }) }),
      ({ items, nextCursor }) => [Chunk.fromIterable(items), Option.fromNullable(nextCursor)] as const
    )
  ).pipe(
    Stream.mapEffect(({ runId }) => source.snapshot(runId)),
    Stream.mapConcat(({ conversationId, pendingApprovals, runId }) =>
      pendingApprovals.map((request) => ({ runId, conversationId, ...request }))
    ),
    Stream.runCollect,
    Effect.map((all) => [...all])
  )

const listWaiting = (source: Source, json: boolean) =>
  Effect.gen(function* () {
    const items = yield* waiting(source)
    if (json) return yield* Screen.json({ items })
    if (items.length === 0) return yield* Screen.lines(["Nothing waits for a decision"])
    const look = yield* style
    yield* Screen.lines(
      items.flatMap((one) => [
        ...Approval.lines(one, look),
        one.reason === "in_doubt"
          ? `  runlet runs settle ${one.runId} ${one.approvalId} --as retry|applied|abandon`
          : `  runlet runs approve|reject ${one.runId} ${one.approvalId}`,
        ""
      ])
    )
  })

/** Answers what waits in a run, if it is known which of its requests is meant. */
const decide = (
  source: Source,
  runId: string,
  approvalId: string | undefined,
  request: Omit<DecideRequest, "previewHash">,
  json: boolean
) =>
  Effect.gen(function* () {
    const { pendingApprovals, status } = yield* source.snapshot(runId)
    const pending = pendingApprovals.find((one) => approvalId === undefined || one.approvalId === approvalId)
    if (approvalId === undefined && pendingApprovals.length > 1) {
      const ids = pendingApprovals.map((one) => one.approvalId).join(", ")
      return yield* ofCode(2, `More than one request waits in this run. Name one of ${ids}`)
    }
    const id = approvalId ?? pending?.approvalId
    if (id === undefined) return yield* ofCode(1, `Nothing waits for a decision in this run, which is ${status}`)
    const result = yield* source.decide(runId, id, {
      ...request,
      ...(pending !== undefined && { previewHash: pending.previewHash })
    })
    if (json) return yield* Screen.json({ runId, ...result })
    yield* Screen.lines([
      `${id} is ${result.decision}`,
      ...(request.decision === "edit" ? ["A new preview is made of it. See it with `runlet runs approve`"] : [])
    ])
  })

const parsed = (input: string): Effect.Effect<unknown, Failure> =>
  Effect.try({
    try: (): unknown => JSON.parse(input),
    catch: () => ofCode(2, "--input is no JSON. Give the whole new input as one JSON object in quotes")
  })

const approve = Command.make(
  "approve",
  {
    run: maybe(run),
    approval,
    input: Flags.optional(
      Options.text("input").pipe(
        Options.withDescription("Change the input to this JSON instead; a new preview is made, to be approved then")
      )
    ),
    reason,
    json: Flags.json,
    ...Flags.place
  },
  ({ approval: approvalId, input, json, reason: why, run: runId, ...place }) =>
    at(place, (source) =>
      Effect.gen(function* () {
        if (runId === undefined) {
          return input === undefined
            ? yield* listWaiting(source, json)
            : yield* ofCode(2, "--input needs the run whose request it changes")
        }
        const because = why === undefined ? {} : { reason: why }
        const request =
          input === undefined
            ? ({ decision: "approve", ...because } as const)
            : ({ decision: "edit", input: yield* parsed(input), ...because } as const)
        yield* decide(source, runId, approvalId, request, json)
      })
    )
).pipe(Command.withDescription("Approve what a run wants to do; without a run: list all that waits, with previews"))

const reject = Command.make(
  "reject",
  { run, approval, reason, json: Flags.json, ...Flags.place },
  ({ approval: approvalId, json, reason: why, run: runId, ...place }) =>
    at(place, (source) =>
      decide(source, runId, approvalId, { decision: "reject", ...(why !== undefined && { reason: why }) }, json)
    )
).pipe(Command.withDescription("Reject what a run wants to do; it goes on without"))

const settle = Command.make(
  "settle",
  {
    run,
    approval,
    as: Options.choice("as", ["retry", "applied", "abandon"]).pipe(
      Options.withDescription("Try again with the same key, take it for applied, or leave it unknown")
    ),
    reason,
    json: Flags.json,
    ...Flags.place
  },
  ({ approval: approvalId, as, json, reason: why, run: runId, ...place }) =>
    at(place, (source) =>
      decide(source, runId, approvalId, { decision: as, ...(why !== undefined && { reason: why }) }, json)
    )
).pipe(Command.withDescription("Say what became of a call whose outcome is not known"))

/**
 * The command `runs`.
 *
 * @since 0.1.0
 * @category commands
 */
export const command = Command.make("runs").pipe(
  Command.withDescription("Look at runs, answer them, stop them, continue them"),
  Command.withSubcommands([list, show, tail, cancel, resume, approve, reject, settle])
)
