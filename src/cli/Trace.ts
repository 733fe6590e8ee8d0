/**
 * `runlet trace …`: runs as files, saved and looked at.
 *
 * @since 0.1.0
 */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as FileSystem from "@effect/platform/FileSystem"
import * as PlatformServer from "@effect/platform/HttpServer"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Envelope } from "../domain/Envelope.js"
import * as RunStatus from "../domain/RunStatus.js"
import * as TraceLink from "../domain/TraceLink.js"
import { RunEngine } from "../engine/RunEngine.js"
import * as Auth from "../http/Auth.js"
import * as HttpServer from "../http/HttpServer.js"
import { type Failure, ofCode } from "./Failure.js"
import * as Flags from "./Flags.js"
import * as Place from "./Place.js"
import * as Recorded from "./Recorded.js"
import * as Screen from "./Screen.js"
import { bytes } from "./Table.js"
import * as Text from "./Text.js"
import * as Timeline from "./Timeline.js"
import * as TraceFile from "./TraceFile.js"
import * as Transcript from "./Transcript.js"

/** How many lines are taken between two signs of progress. */
const pace = 1000

/** A line that says how far long work is, where somebody watches, and is gone when the work is done. */
const progress: Effect.Effect<(text: string) => Effect.Effect<void>, never, Scope.Scope> = Effect.gen(function* () {
  const { isWatched, note } = yield* Screen.Screen
  if (!isWatched) return () => Effect.void
  yield* Effect.addFinalizer(() => note("\r\u001b[K"))
  return (text) => note(`\r\u001b[K${text}`)
})

const failed = (file: string) => (): Failure => ofCode(1, `The file ${file} can not be written. Choose another place`)

/** Saves what the lines say under a name, at once and whole, or nothing at all. */
const save = (
  lines: Stream.Stream<string, Failure>,
  file: string,
  force: boolean
): Effect.Effect<TraceFile.Reading & { readonly bytes: number }, Failure, FileSystem.FileSystem> =>
  Effect.scoped(
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const says = yield* progress
      if (!force && (yield* Effect.orElseSucceed(fs.exists(file), () => false))) {
        return yield* ofCode(1, `${file} exists already. Choose another name, or add --force`)
      }
      const partial = `${file}.partial`
      yield* Effect.addFinalizer(() => Effect.ignore(fs.remove(partial, { force: true })))
      const out = yield* Effect.mapError(fs.open(partial, { flag: "w", mode: 0o600 }), failed(file))
      let reading = TraceFile.empty
      let size = 0
      yield* Stream.runForEachChunk(Stream.rechunk(lines, pace), (some) => {
        let text = ""
        for (const line of some) {
          reading = TraceFile.read(reading, line)[0]
          text += `${line}\n`
        }
        const encoded = new TextEncoder().encode(text)
        size += encoded.length
        return Effect.zipRight(
          Effect.mapError(out.writeAll(encoded), failed(file)),
          says(`${reading.run.seq} events, ${bytes(size)}`)
        )
      })
      const problem = TraceFile.problem(reading)
      if (problem !== undefined) {
        return yield* ofCode(1, `What came is no whole trace: ${problem.message}. Nothing was saved; try again`)
      }
      yield* Effect.mapError(Effect.zipRight(out.sync, fs.rename(partial, file)), failed(file))
      return { ...reading, bytes: size }
    })
  )

const exporting = Command.make(
  "export",
  {
    run: Args.text({ name: "run" }).pipe(Args.withDescription("The id of a run, as `runlet runs list` shows it")),
    file: Args.text({ name: "file" }).pipe(
      Args.withDefault(""),
      Args.withDescription("The file to make (default <run>.jsonl), or - for the standard output")
    ),
    force: Options.boolean("force").pipe(Options.withDescription("Replace the file if there is one")),
    json: Flags.json,
    ...Flags.place
  },
  ({ file: name, force, json, run, ...place }) =>
    Screen.interruptible(
      Effect.scoped(
        Effect.gen(function* () {
          const source = yield* Place.source(place)
          const { write } = yield* Screen.Screen
          const lines = source.trace(run)
          if (name === "-") {
            return yield* Stream.runForEachChunk(lines, (some) => write([...some, ""].join("\n")))
          }
          const file = name === "" ? `${run}.jsonl` : name
          if (name === "" && !/^[\w-]+$/.test(run)) {
            return yield* ofCode(2, "This is no id of a run that a file could be named after. Name the file")
          }
          const { bytes: size, run: state } = yield* save(lines, file, force)
          const ended = RunStatus.isEnded(state.status)
          if (json) return yield* Screen.json({ runId: state.runId, file, events: state.seq, bytes: size, ended })
          const soFar = ended ? "" : ", as far as it has come"
          yield* Screen.lines([`Saved ${state.seq} events of ${state.runId} to ${file} (${bytes(size)})${soFar}`])
        })
      )
    )
).pipe(Command.withDescription("Save a run as a file of JSON Lines"))

/** The envelopes of a file, and in the end what was wrong with it. */
const readFile = (
  file: string,
  each: (envelopes: ReadonlyArray<Envelope>) => Effect.Effect<void>
): Effect.Effect<TraceFile.Reading, Failure, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    let reading = TraceFile.empty
    yield* fs.stream(file).pipe(
      Stream.decodeText(),
      Stream.splitLines,
      Stream.mapError(() => ofCode(1, `The file ${file} can not be read. Check its name`)),
      Stream.takeUntil(() => reading.problem !== undefined),
      Stream.runForEachChunk((lines) => {
        const envelopes: Array<Envelope> = []
        for (const line of lines) {
          const [next, envelope] = TraceFile.read(reading, line)
          reading = next
          if (envelope !== undefined) envelopes.push(envelope)
        }
        return each(envelopes)
      })
    )
    return reading
  })

const unsound = (file: string, { line, message }: NonNullable<TraceFile.Reading["problem"]>): Failure =>
  ofCode(1, `${file}, line ${line}: ${message}`)

/** The traces of the attempts, in whatever keeps them. */
interface Attempt {
  readonly attempt: number
  readonly traceId: string
  readonly url?: string | undefined
}

const tracesIn = (template: string | undefined, envelopes: ReadonlyArray<Envelope>): ReadonlyArray<Attempt> =>
  envelopes.flatMap(({ event }) => {
    if (event.type !== "run-start" && event.type !== "run-resumed") return []
    const names = TraceLink.read(event.trace)
    const attempt = event.type === "run-start" ? 1 : event.attempt
    return names === undefined ? [] : [{ attempt, traceId: names.traceId, url: TraceLink.to(template, event.trace) }]
  })

/** The template of `--trace-url` or of the environment. */
const templateOf = (given: string | undefined): Effect.Effect<string | undefined, Failure> =>
  Effect.gen(function* () {
    const variable = yield* Effect.orElseSucceed(Config.option(Config.nonEmptyString("RUNLET_TRACE_URL")), () =>
      Option.none<string>()
    )
    const template = given ?? Option.getOrUndefined(variable)
    if (template === undefined || TraceLink.isTemplate(template)) return template
    const name = given === undefined ? "RUNLET_TRACE_URL" : "--trace-url"
    return yield* ofCode(2, `${name} must be an http or https address with {traceId} in it`)
  })

const facts = ({ run }: TraceFile.Reading): ReadonlyArray<string> => {
  const { attempt, createdAt, iteration, runId, seq, start, status, updatedAt, usage } = run
  return [
    `${Text.line(runId)}  ${status}, ${seq} events in ${Text.duration(updatedAt - createdAt)}`,
    `model ${Text.line(start?.model ?? "")}, ${iteration} iterations, attempt ${attempt}, ${Transcript.usage(usage)}, started ${Text.moment(createdAt)}`
  ]
}

/** Prints the steps of a file as they are read, and what is wrong with it. */
const timeline = (file: string, json: boolean, template: string | undefined) =>
  Effect.gen(function* () {
    const screen = yield* Screen.Screen
    const manner = { style: Text.style(screen.isStyled), columns: yield* screen.columns }
    const steps = Timeline.make()
    const collected: Array<Timeline.Step> = []
    const print = (some: ReadonlyArray<Timeline.Step>) => {
      if (json) collected.push(...some)
      return json || some.length === 0
        ? Effect.void
        : screen.write(some.map((step) => `${Timeline.line(step, manner)}\n`).join(""))
    }
    const traces: Array<Attempt> = []
    const reading = yield* readFile(file, (envelopes) => {
      traces.push(...tracesIn(template, envelopes))
      return print(envelopes.flatMap(steps.push))
    })
    yield* print(steps.end())
    const problem = TraceFile.problem(reading)
    if (json) {
      const { createdAt, runId, seq, start, status, updatedAt, usage } = reading.run
      yield* Screen.json({
        runId,
        model: start?.model,
        status,
        events: seq,
        createdAt,
        updatedAt,
        usage,
        problem: problem ?? null,
        traces,
        steps: collected
      })
    } else if (reading.run.seq > 0) {
      const lines = traces.map(({ attempt, traceId, url }) => `trace of attempt ${attempt}  ${url ?? traceId}`)
      yield* Screen.lines(["", ...facts(reading), ...lines])
    }
    if (problem !== undefined) return yield* unsound(file, problem)
    if (!json) yield* Screen.lines(["The trace is whole and in order"])
  })

/** Serves the pages with the run of the file in them, for this machine alone, until it is interrupted. */
const serve = (
  file: string,
  port: number,
  traceUrl: string | undefined
): Effect.Effect<never, Failure, FileSystem.FileSystem> =>
  Effect.scoped(
    Effect.gen(function* () {
      const log: Array<Envelope> = []
      const reading = yield* readFile(file, (envelopes) => Effect.sync(() => void log.push(...envelopes)))
      const { run, problem } = { ...reading, problem: TraceFile.problem(reading) }
      if (problem !== undefined && run.seq === 0) return yield* unsound(file, problem)
      const context = yield* Layer.build(
        HttpServer.layer({ host: "127.0.0.1", port, traceUrl }).pipe(
          Layer.provide([Layer.succeed(RunEngine, Recorded.make(run, log)), Auth.layerNone])
        )
      ).pipe(Effect.mapError(() => ofCode(1, `Port ${port} can not be opened. Choose another with --port`)))
      const { address } = Context.get(context, PlatformServer.HttpServer)
      const at = address._tag === "TcpAddress" ? address.port : port
      const { note } = yield* Screen.Screen
      if (problem !== undefined)
        yield* note(`${Text.inert(unsound(file, problem).message)}. What stands before is shown\n`)
      yield* Screen.lines([`Open http://127.0.0.1:${at}/runs/${encodeURIComponent(run.runId)}/replay (Ctrl-C ends it)`])
      return yield* Effect.never
    })
  )

const open = Command.make(
  "open",
  {
    file: Args.text({ name: "file" }).pipe(Args.withDescription("A file that `runlet trace export` has made")),
    serve: Options.boolean("serve").pipe(
      Options.withDescription("Show it in the replay page instead, on this machine, until Ctrl-C")
    ),
    port: Options.integer("port").pipe(
      Options.withDefault(0),
      Options.withDescription("Port for --serve (default: any free one)")
    ),
    traceUrl: Flags.optional(
      Options.text("trace-url").pipe(
        Options.withDescription(
          "Where traces are looked at, with {traceId} in it (default: the environment variable RUNLET_TRACE_URL)"
        )
      )
    ),
    json: Flags.json
  },
  ({ file, json, port, serve: isServed, traceUrl }) =>
    Effect.gen(function* () {
      const template = yield* templateOf(traceUrl)
      if (!isServed) return yield* Screen.interruptible(timeline(file, json, template))
      if (json) return yield* ofCode(2, "Give either --serve or --json, not both")
      if (port < 0 || port > 65_535) return yield* ofCode(2, "--port must be from 0 to 65535")
      yield* serve(file, port, template)
    })
).pipe(Command.withDescription("Check a trace file, and print its timeline or show it in the replay page"))

/**
 * The command `trace`.
 *
 * @since 0.1.0
 * @category commands
 */
export const command = Command.make("trace").pipe(
  Command.withDescription("Save runs as files, check them and look at them"),
  Command.withSubcommands([exporting, open])
)
