/**
 * A run that a person began and watches: it is shown as it happens, over lost connections, stopped on demand, and what it
 * asks is asked of the person.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import * as Ids from "../domain/Ids.js"
import * as RunState from "../domain/RunState.js"
import * as RunStatus from "../domain/RunStatus.js"
import type { DecideRequest } from "../engine/RunEngine.js"
import type * as Schemas from "../http/RunsSchemas.js"
import type { Request } from "./Approval.js"
import { type Failure, ofCode } from "./Failure.js"
import type { Remote } from "./Remote.js"
import * as Screen from "./Screen.js"
import * as Text from "./Text.js"
import * as Transcript from "./Transcript.js"

/**
 * What is asked, and how it is to be answered.
 *
 * @since 0.1.0
 * @category models
 */
export interface Question {
  readonly message: string
  readonly conversationId?: string | undefined
  readonly modelId?: string | undefined
  readonly mode?: "chat" | "plan" | undefined
  readonly enableThinking?: boolean | undefined
}

const isAway = ({ refusal }: Failure): boolean => refusal === "Unreachable"

const newKey = Effect.provide(
  Effect.flatMap(Ids.IdGenerator, (ids) => ids.key),
  Ids.layer
)

/**
 * Begins a run. Who does not know whether the server heard it asks the same again, which is the same run.
 *
 * @since 0.1.0
 * @category running
 */
export const begin = (
  remote: Remote,
  { conversationId, enableThinking, message, mode, modelId }: Question
): Effect.Effect<typeof Schemas.Accepted.Type, Failure> =>
  Effect.flatMap(newKey, (key) =>
    Effect.retry(
      remote.start(
        {
          message,
          ...(conversationId !== undefined && { conversationId }),
          ...(modelId !== undefined && { modelId }),
          ...(mode !== undefined && { mode }),
          ...(enableThinking === true && { enableThinking })
        },
        key
      ),
      { while: isAway, schedule: Schedule.exponential("500 millis"), times: 4 }
    )
  )

/**
 * Stops a run for good, however long its server is away.
 *
 * @since 0.1.0
 * @category running
 */
export const stop = (remote: Remote, runId: string): Effect.Effect<void, Failure> =>
  Effect.asVoid(Effect.retry(remote.cancel(runId, undefined), { while: isAway, schedule: Schedule.spaced("1 second") }))

/** What is on the screen of one run. */
interface View {
  readonly remote: Remote
  readonly runId: string
  readonly shown: Ref.Ref<Transcript.Transcript>
  readonly manner: Transcript.Manner
}

const say = ({ shown }: View, add: (before: Transcript.Transcript) => readonly [Transcript.Transcript, string]) =>
  Effect.gen(function* () {
    const { write } = yield* Screen.Screen
    const [next, text] = add(yield* Ref.get(shown))
    yield* Ref.set(shown, next)
    if (text !== "") yield* write(text)
  })

const remark = (view: View, text: string) => say(view, (before) => Transcript.remark(before, text))

/** Shows what happens until the run has ended or waits for a person. */
const watch = (view: View): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    const { manner, remote, runId, shown } = view
    const { dim, notice } = manner.style
    const screen = yield* Screen.Screen
    const { run } = yield* Ref.get(shown)
    let isLost = false
    const onLink = (link: "open" | "lost") =>
      Effect.suspend(() => {
        if ((link === "lost") === isLost) return Effect.void
        isLost = link === "lost"
        const text = isLost ? notice("(the connection is lost, trying again)") : dim("(connected again)")
        return Effect.provideService(remark(view, text), Screen.Screen, screen)
      })
    yield* remote.watch(runId, { after: run.seq, onLink }).pipe(
      Stream.takeUntil(({ event }) => event.type === "run-status" && event.status === "waiting_approval"),
      Stream.runForEachChunk((envelopes) =>
        say(view, (before) => {
          let transcript = before
          let text = ""
          for (const envelope of envelopes) {
            const [next, added] = Transcript.step(transcript, envelope, manner)
            transcript = next
            text += added
          }
          return [transcript, text]
        })
      )
    )
  })

const quit = ofCode(130, "")

/** Ctrl-C stops the run; another one ends the program, whether it has stopped or not. */
const stopping = (view: View): Effect.Effect<never, Failure> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { interrupts } = yield* Screen.Screen
      const presses = yield* interrupts
      yield* Effect.orDie(presses.take)
      yield* remark(view, view.manner.style.notice("(stopping; Ctrl-C again quits)"))
      const stopped = stop(view.remote, view.runId).pipe(
        Effect.catchAll(({ message }) =>
          remark(view, view.manner.style.bad(`It can not be stopped: ${Text.line(message)}`))
        )
      )
      yield* Effect.raceFirst(Effect.orDie(presses.take), Effect.zipRight(stopped, Effect.never))
      return yield* quit
    })
  )

/** What a person makes of a request; `undefined`: it goes on waiting. */
type Answer = Omit<DecideRequest, "previewHash"> | "cancel" | undefined

const choices = {
  usual: { prompt: "Approve? [y]es, [n]o, [e]dit, [l]ater: ", keys: /^(y|n|e|l)/i },
  doubt: { prompt: "What became of it? [r]etry, [a]pplied, a[b]andon, [l]ater: ", keys: /^(r|a|b|l)/i }
} as const

const doubts: Readonly<Record<string, "retry" | "applied" | "abandon">> = { r: "retry", a: "applied", b: "abandon" }

const parsed = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

/** Asks for a new input until it is JSON; an empty one takes the wish to edit back. */
const edited = (input: string): Effect.Effect<Answer | "again"> =>
  Effect.gen(function* () {
    const { ask, write } = yield* Screen.Screen
    const reply = yield* ask("New input: ", input)
    if (reply._tag === "Interrupted") return "cancel"
    if (reply._tag === "Closed") return undefined
    if (reply.text.trim() === "") return "again"
    const json = parsed(reply.text)
    if (json !== undefined) return { decision: "edit", input: json.value }
    yield* write("This is no JSON. Change it, or leave it empty to go back\n")
    return yield* edited(reply.text)
  })

const rejected: Effect.Effect<Answer> = Effect.gen(function* () {
  const { ask } = yield* Screen.Screen
  const reply = yield* ask("Why not (the model is told; may be empty)? ")
  if (reply._tag === "Interrupted") return "cancel"
  const reason = reply._tag === "Line" ? reply.text.trim() : ""
  return { decision: "reject", ...(reason !== "" && { reason }) }
})

const answerTo = (request: Request): Effect.Effect<Answer> =>
  Effect.gen(function* () {
    const { ask } = yield* Screen.Screen
    const { keys, prompt } = request.reason === "in_doubt" ? choices.doubt : choices.usual
    const reply = yield* ask(prompt)
    if (reply._tag === "Interrupted") return "cancel"
    if (reply._tag === "Closed") return undefined
    const key = keys.exec(reply.text.trim())?.[1]?.toLowerCase()
    if (key === "l") return undefined
    if (key === "y") return { decision: "approve" }
    if (key === "n") return yield* rejected
    const doubt = key === undefined ? undefined : doubts[key]
    if (doubt !== undefined) return { decision: doubt }
    const answer = key === "e" ? yield* edited(JSON.stringify(request.input)) : "again"
    return answer === "again" ? yield* answerTo(request) : answer
  })

/** Waits until somebody else has answered, or there is nothing to answer any more. */
const answeredElsewhere = (
  { remote, runId, shown }: View,
  { approvalId }: Request
): Effect.Effect<"elsewhere", Failure> =>
  Effect.flatMap(Ref.get(shown), ({ run }) =>
    remote.watch(runId, { after: run.seq }).pipe(
      Stream.takeUntil(({ event }) => event.type === "approval-decision" && event.approvalId === approvalId),
      Stream.runDrain,
      Effect.as("elsewhere" as const)
    )
  )

/** Asks about one request, again when the server does not take the answer. Answers whether it was decided. */
const settle = (view: View, request: Request): Effect.Effect<boolean, Failure> =>
  Effect.gen(function* () {
    const { manner, remote, runId } = view
    const screen = yield* Screen.Screen
    const answer = yield* Effect.raceFirst(answerTo(request), answeredElsewhere(view, request))
    if (answer === undefined) return false
    if (answer === "elsewhere") {
      yield* screen.write("\n")
      yield* remark(view, manner.style.dim("(somebody else has decided)"))
      return true
    }
    if (answer === "cancel") {
      yield* stop(remote, runId)
      return true
    }
    const { approvalId, previewHash } = request
    const refused = yield* remote.decide(runId, approvalId, { ...answer, previewHash }).pipe(
      Effect.retry({ while: isAway, schedule: Schedule.spaced("1 second") }),
      Effect.as(undefined),
      Effect.catchAll((failure) => Effect.succeed(failure))
    )
    if (refused === undefined) return true
    yield* remark(view, manner.style.bad(Text.line(refused.message)))
    // What was decided meanwhile is shown by the log.
    return refused.refusal === "Unprocessable" ? yield* settle(view, request) : refused.refusal === "Conflict"
  })

/**
 * Shows a run to its end, behind what was shown of it before, and asks what it asks. Answers the state that it was left in: ended, or waiting, if the person
 * wants to decide later. Fails with the code of an interruption when the person wants to leave at once.
 *
 * @since 0.1.0
 * @category running
 */
export const attend = (remote: Remote, from: RunState.RunState): Effect.Effect<RunState.RunState, Failure> =>
  Effect.gen(function* () {
    const { runId } = from
    const screen = yield* Screen.Screen
    const manner = { style: Text.style(screen.isStyled), columns: yield* screen.columns }
    const shown = yield* Ref.make(Transcript.make(from))
    const view: View = { remote, runId, shown, manner }
    // What waited before is asked about again at once.
    let isAsked = from.status === "waiting_approval"
    while (true) {
      if (!isAsked) yield* Effect.raceFirst(watch(view), stopping(view))
      isAsked = false
      const { run } = yield* Ref.get(shown)
      yield* say(view, (before) => [{ ...before, atStart: true }, Transcript.close(before)])
      if (RunStatus.isEnded(run.status)) return run
      let decided = true
      for (const request of RunState.pendingApprovals(run)) {
        decided = yield* settle(view, request)
        if (!decided) break
      }
      if (!decided) return run
    }
  })
