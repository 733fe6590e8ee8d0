/**
 * `runlet chat`: questions and answers, in a terminal or in a pipe.
 *
 * @since 0.1.0
 */
import * as Args from "@effect/cli/Args"
import * as Command from "@effect/cli/Command"
import * as Options from "@effect/cli/Options"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as RunState from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import * as Conversation from "./Conversation.js"
import { type Failure, ofCode } from "./Failure.js"
import * as Flags from "./Flags.js"
import * as Place from "./Place.js"
import type { Remote } from "./Remote.js"
import * as Runs from "./Runs.js"
import * as Screen from "./Screen.js"
import * as Text from "./Text.js"

/** How questions are asked at the moment. */
type Settings = Omit<Conversation.Question, "message">

const known = (remote: Remote, modelId: string | undefined): Effect.Effect<void, Failure> =>
  Effect.flatMap(remote.models, (models) =>
    modelId === undefined || models.some((model) => model.modelId === modelId)
      ? Effect.void
      : ofCode(2, `The server has no model ${modelId}. Choose one of ${models.map((one) => one.modelId).join(", ")}`)
  )

/** How an answer that nobody was asked about ended, as an exit code. */
const outcome = ({ end, runId, status }: RunState.RunState): Effect.Effect<void, Failure> => {
  if (status === "completed") return Effect.void
  if (status === "waiting_approval") {
    return ofCode(
      3,
      `The run waits for a decision. See it with \`runlet runs show ${runId}\`, and use \`runlet runs approve ${runId}\``
    )
  }
  if (end?.type === "error") {
    const hint = end.recoverable ? `. Go on with \`runlet runs resume ${runId}\`` : ""
    return ofCode(1, `The answer failed: ${end.message}${hint}`)
  }
  return end?.type === "cancelled" && end.by === "user"
    ? ofCode(130, "The answer was stopped")
    : ofCode(1, "The answer was stopped before it was complete")
}

/** Turns that follow each other are paragraphs of one answer. */
const gap = (text: string): string => (text === "" || text.endsWith("\n\n") ? "" : text.endsWith("\n") ? "\n" : "\n\n")

/** The answer alone, a turn at a time: what a turn says may be taken back until the turn is complete. */
const plain = (remote: Remote, runId: string): Effect.Effect<RunState.RunState, Failure> =>
  Effect.gen(function* () {
    const { write } = yield* Screen.Screen
    let state = RunState.empty(runId)
    let length = 0
    let last = ""
    yield* untilAsked(remote, runId).pipe(
      Stream.runForEach((envelope) => {
        state = RunState.reduce(state, envelope)
        const { type } = envelope.event
        if (type !== "model-end" && !RunStatus.isEnded(state.status)) return Effect.void
        const text = Text.inert(RunState.text(state).slice(length))
        if (text === "") return Effect.void
        length = state.textLength
        const paragraph = gap(last) + text
        last = text
        return write(paragraph)
      })
    )
    if (last !== "" && !last.endsWith("\n")) yield* write("\n")
    return state
  })

/** The events of a run until it has ended, or nothing more happens before a person has decided. */
const untilAsked = (remote: Remote, runId: string) =>
  remote
    .events(runId, 0)
    .pipe(Stream.takeUntil(({ event }) => event.type === "run-status" && event.status === "waiting_approval"))

/** One question, and its answer; an interruption stops the run and waits until it has stopped. */
const once = (remote: Remote, question: Conversation.Question, json: boolean): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    const { isInteractive, isTerminal, note } = yield* Screen.Screen
    yield* known(remote, question.modelId)
    if (isInteractive && !json) {
      const { runId } = yield* Conversation.begin(remote, question)
      return yield* outcome(yield* Conversation.attend(remote, RunState.empty(runId)))
    }
    const state = yield* Effect.acquireUseRelease(
      Conversation.begin(remote, question),
      ({ runId }) =>
        json || isTerminal ? Runs.follow(untilAsked(remote, runId), { runId, json }) : plain(remote, runId),
      ({ runId }, exit) =>
        Exit.isInterrupted(exit)
          ? Effect.matchEffect(Conversation.stop(remote, runId), {
              onFailure: ({ message }) => note(`The run ${runId} could not be stopped: ${Text.line(message)}\n`),
              onSuccess: () => note("\nStopped\n")
            })
          : Effect.void
    )
    yield* outcome(state)
  })

const help = [
  "/model          shows the models, /model NAME chooses one",
  "/plan           turns plan mode on or off: only tools that change nothing",
  "/think          turns thinking on or off, where the model can",
  "/continue       goes on with an answer that failed",
  "/new            begins a new conversation",
  "/help           shows this",
  "/quit           ends (so does Ctrl-D); the conversation can be continued later",
  "Ctrl-C          stops the answer; at the prompt it ends the program",
  "Everything else is sent."
]

/** What a session remembers between two questions. */
interface Session {
  readonly settings: Settings
  readonly last?: RunState.RunState | undefined
}

type Next = Session | "quit"

const models = (remote: Remote, { modelId }: Settings): Effect.Effect<void, Failure> =>
  Effect.flatMap(remote.models, (all) =>
    Screen.lines(
      all.map((model) => {
        const isChosen = modelId === undefined ? model.isDefault : model.modelId === modelId
        return `${isChosen ? "*" : " "} ${Text.line(model.modelId)}`
      })
    )
  )

const answered = (session: Session, state: RunState.RunState): Session => ({
  settings: { ...session.settings, conversationId: state.start?.conversationId ?? session.settings.conversationId },
  last: state
})

/** Shows a run to its end, and what can be done about how it ended. */
const attended = (remote: Remote, session: Session, from: RunState.RunState): Effect.Effect<Session, Failure> =>
  Effect.gen(function* () {
    const { dim } = yield* look
    const state = yield* Conversation.attend(remote, from)
    if (state.recoverable === true) yield* Screen.lines([dim("(/continue goes on)")])
    if (state.status === "waiting_approval") {
      yield* Screen.lines([
        dim(`(it waits for a decision: /continue asks again, \`runlet runs approve ${state.runId}\` decides)`)
      ])
    }
    yield* Screen.lines([""])
    return answered(session, state)
  })

const look = Effect.map(Screen.Screen, ({ isStyled }) => Text.style(isStyled))

const toggled = (on: boolean, what: string) => Screen.lines([`${what} is ${on ? "on" : "off"}`])

/** Does what a line says that is no question; `undefined` for a question. */
const directive = (remote: Remote, session: Session, line: string): Effect.Effect<Next, Failure> | undefined => {
  const { last, settings } = session
  const [word, name, ...rest] = line.split(/\s+/)
  if (word === "/model" && rest.length === 0) {
    if (name === undefined) return Effect.as(models(remote, settings), session)
    return Effect.as(known(remote, name), { ...session, settings: { ...settings, modelId: name } })
  }
  switch (line) {
    case "/help":
      return Effect.as(Screen.lines(help), session)
    case "/plan": {
      const mode = settings.mode === "plan" ? "chat" : "plan"
      return Effect.as(toggled(mode === "plan", "Plan mode"), { ...session, settings: { ...settings, mode } })
    }
    case "/think": {
      const enableThinking = settings.enableThinking !== true
      return Effect.as(toggled(enableThinking, "Thinking"), { ...session, settings: { ...settings, enableThinking } })
    }
    case "/new":
      return Effect.as(Screen.lines(["A new conversation"]), { settings: { ...settings, conversationId: undefined } })
    case "/continue":
      return last === undefined
        ? Effect.as(Screen.lines(["There is nothing to go on with"]), session)
        : Effect.flatMap(remote.resume(last.runId), ({ status }) =>
            RunStatus.isEnded(status)
              ? Effect.as(Screen.lines([`The last answer is ${status}. Ask something else`]), session)
              : attended(remote, session, last)
          )
    case "/quit":
    case "/exit":
      return Effect.succeed("quit")
    default:
      return undefined
  }
}

const ask = (remote: Remote, session: Session, message: string): Effect.Effect<Session, Failure> =>
  Effect.flatMap(Conversation.begin(remote, { ...session.settings, message }), ({ runId }) =>
    attended(remote, session, RunState.empty(runId))
  )

/** What goes wrong is said, and the session goes on; who wants to leave leaves. */
const forgiven = (session: Session, next: Effect.Effect<Next, Failure>): Effect.Effect<Next, Failure> =>
  Effect.catchIf(
    next,
    ({ exitCode }) => exitCode !== 130,
    ({ message }) => Effect.flatMap(look, ({ bad }) => Effect.as(Screen.lines([bad(Text.line(message))]), session))
  )

/** The last run of a conversation that is to go on, which must be there. */
const lastOf = (remote: Remote, conversationId: string) =>
  Effect.flatMap(remote.list({ conversationId, limit: 1 }), ({ items: [run] }) =>
    run === undefined
      ? ofCode(1, "There is no such conversation, or it is not yours. Leave --conversation out to begin one")
      : Effect.succeed(run)
  )

/** Questions and answers until the person has had enough. */
const converse = (remote: Remote, settings: Settings): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    const screen = yield* Screen.Screen
    const { bold, dim } = Text.style(screen.isStyled)
    yield* known(remote, settings.modelId)
    yield* Screen.lines([dim("/help tells what can be done. Ctrl-C stops an answer, Ctrl-D ends")])
    let session: Session = { settings }
    if (settings.conversationId !== undefined) {
      const { runId, status } = yield* lastOf(remote, settings.conversationId)
      session = { settings, last: RunState.empty(runId) }
      if (!RunStatus.isEnded(status)) session = yield* attended(remote, session, RunState.empty(runId))
    }
    while (true) {
      const reply = yield* screen.ask(bold(session.settings.mode === "plan" ? "plan> " : "> "))
      if (reply._tag !== "Line") break
      const message = reply.text.trim()
      if (message === "") continue
      const now = session
      const next = yield* forgiven(now, directive(remote, now, message) ?? ask(remote, now, message))
      if (next === "quit") break
      session = next
    }
    const { conversationId } = session.settings
    if (conversationId !== undefined) {
      yield* Screen.lines([dim(`Go on later with \`runlet chat --conversation ${conversationId}\``)])
    }
  })

const flags = {
  question: Args.text({ name: "question" }).pipe(
    Args.withDescription("One question; without it, what is typed or what comes in by the standard input"),
    Args.optional,
    Args.map(Option.getOrUndefined)
  ),
  conversationId: Flags.optional(
    Options.text("conversation").pipe(Options.withDescription("The conversation to go on with (default: a new one)"))
  ),
  modelId: Flags.optional(
    Options.text("model").pipe(Options.withDescription("The model to ask (default: the server's)"))
  ),
  plan: Options.boolean("plan").pipe(Options.withDescription("Plan mode: only tools that change nothing")),
  enableThinking: Options.boolean("think").pipe(Options.withDescription("Ask for thinking, where the model can")),
  json: Flags.json,
  ...Flags.server
}

/**
 * The command `chat`.
 *
 * @since 0.1.0
 * @category commands
 */
export const command = Command.make("chat", flags, ({ json, plan, question, tokenFile, url, ...given }) =>
  Screen.interruptible(
    Effect.scoped(
      Effect.gen(function* () {
        const screen = yield* Screen.Screen
        const settings: Settings = { ...given, ...(plan && { mode: "plan" as const }) }
        const remote = yield* Place.remote({ tokenFile, url })
        if (question === undefined && !screen.hasInput) {
          if (json) return yield* ofCode(2, "--json needs a question, as an argument or on the standard input")
          if (!screen.isInteractive)
            return yield* ofCode(2, "Give the question as an argument or on the standard input")
          return yield* converse(remote, settings)
        }
        const message = (question ?? (yield* screen.input)).trim()
        if (message === "")
          return yield* ofCode(2, "There is no question. Give it as an argument or on the standard input")
        yield* once(remote, { ...settings, message }, json)
      })
    )
  )
).pipe(Command.withDescription("Ask a model, and watch it answer"))
