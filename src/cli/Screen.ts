/**
 * Where commands speak and listen: the standard streams of the process, and the keyboard if there is one.
 *
 * @since 0.1.0
 */
import * as Readline from "node:readline"
import { text as textOf } from "node:stream/consumers"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Mailbox from "effect/Mailbox"
import type * as Scope from "effect/Scope"

/**
 * What became of a question: a line, Ctrl-C, or the end of the input.
 *
 * @since 0.1.0
 * @category models
 */
export type Reply =
  | { readonly _tag: "Line"; readonly text: string }
  | { readonly _tag: "Interrupted" }
  | { readonly _tag: "Closed" }

/**
 * - `write`: to the standard output; `note`: to the error stream, for what is no part of the answer
 * - `isTerminal`: whether a person sees the output; `isStyled`: whether it has colours; `isWatched`: whether a person
 *   sees the notes
 * - `isInteractive`: whether a person can be asked. `ask` gives the lines that were typed or pasted at once as one text;
 *   `prefill` can be edited
 * - `hasInput`: whether something other than a keyboard is the standard input, which `input` reads to its end
 * - `interrupts`: a message for each Ctrl-C while nobody is asked. In its scope keys are not echoed
 *
 * @since 0.1.0
 * @category models
 */
export interface Shape {
  readonly write: (text: string) => Effect.Effect<void>
  readonly note: (text: string) => Effect.Effect<void>
  readonly isTerminal: boolean
  readonly isStyled: boolean
  readonly isWatched: boolean
  readonly isInteractive: boolean
  readonly hasInput: boolean
  readonly columns: Effect.Effect<number>
  readonly input: Effect.Effect<string>
  readonly ask: (prompt: string, prefill?: string) => Effect.Effect<Reply>
  readonly interrupts: Effect.Effect<Mailbox.ReadonlyMailbox<void>, never, Scope.Scope>
}

/** What the world says when whoever read the output has gone: as if a signal had ended the program. */
const brokenPipe = 141

/** The history of what was typed, the last first, as the line editor wants it. */
type History = Array<string>

/** How long more lines are waited for, which a paste brings along. */
const pasteMs = 15

const ask = (history: History, prompt: string, prefill: string): Effect.Effect<Reply> =>
  Effect.scoped(
    Effect.gen(function* () {
      const replies = yield* Mailbox.make<Reply>()
      const editor = yield* Effect.acquireRelease(
        Effect.sync(() =>
          Readline.createInterface({ input: process.stdin, output: process.stdout, terminal: true, history })
        ),
        (open) => Effect.sync(() => open.close())
      )
      yield* Effect.sync(() => {
        editor.on("line", (text) => replies.unsafeOffer({ _tag: "Line", text }))
        editor.on("SIGINT", () => replies.unsafeOffer({ _tag: "Interrupted" }))
        editor.on("close", () => replies.unsafeOffer({ _tag: "Closed" }))
        editor.on("history", (lines) => history.splice(0, history.length, ...lines))
        editor.setPrompt(prompt)
        editor.prompt()
        if (prefill !== "") editor.write(prefill)
      })
      const first = yield* Effect.orDie(replies.take)
      if (first._tag !== "Line") {
        yield* Effect.sync(() => process.stdout.write("\n"))
        return first
      }
      yield* Effect.sleep(pasteMs)
      const more = yield* replies.clear
      const lines = [first.text, ...[...more].flatMap((reply) => (reply._tag === "Line" ? [reply.text] : []))]
      if (lines.length > 1 && editor.line !== "") {
        lines.push(editor.line)
        yield* Effect.sync(() => process.stdout.write("\n"))
      }
      return { _tag: "Line", text: lines.join("\n") }
    })
  )

const interrupts: Shape["interrupts"] = Effect.gen(function* () {
  const presses = yield* Mailbox.make<void>()
  const { stdin } = process
  if (!stdin.isTTY) return presses
  const hear = (bytes: Buffer) => {
    for (const byte of bytes) if (byte === 3) presses.unsafeOffer(undefined)
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      stdin.setRawMode(true)
      stdin.on("data", hear)
      stdin.resume()
    }),
    () =>
      Effect.sync(() => {
        stdin.off("data", hear)
        stdin.pause()
        stdin.setRawMode(false)
      })
  )
  return presses
})

const make = (): Shape => {
  const { stderr, stdin, stdout } = process
  stdout.on("error", (error) => process.exit("code" in error && error.code === "EPIPE" ? brokenPipe : 1))
  stderr.on("error", () => undefined)
  const history: History = []
  return {
    write: (text) => Effect.sync(() => void stdout.write(text)),
    note: (text) => Effect.sync(() => void stderr.write(text)),
    isTerminal: stdout.isTTY === true,
    isStyled: stdout.isTTY === true && stdout.hasColors(),
    isWatched: stderr.isTTY === true,
    isInteractive: stdin.isTTY === true && stdout.isTTY === true,
    hasInput: stdin.isTTY !== true,
    columns: Effect.sync(() => (stdout.isTTY ? stdout.columns || 80 : 1000)),
    input: Effect.promise(() => textOf(stdin)),
    ask: (prompt, prefill = "") => ask(history, prompt, prefill),
    interrupts
  }
}

/**
 * The screen of this process, unless another one is provided.
 *
 * @since 0.1.0
 * @category services
 */
export class Screen extends Context.Reference<Screen>()("runlet/cli/Screen", { defaultValue: make }) {}

/**
 * Writes lines to the standard output.
 *
 * @since 0.1.0
 * @category writing
 */
export const lines = (texts: ReadonlyArray<string>): Effect.Effect<void> =>
  Effect.flatMap(Screen, (screen) => screen.write(texts.map((text) => `${text}\n`).join("")))

/**
 * Writes a value as one line of JSON. Controls within texts are escaped, so that no terminal obeys them.
 *
 * @since 0.1.0
 * @category writing
 */
export const json = (value: unknown): Effect.Effect<void> => lines([jsonLine(value)])

/**
 * A value as one line of JSON that is inert in a terminal.
 *
 * @since 0.1.0
 * @category writing
 */
export const jsonLine = (value: unknown): string =>
  (JSON.stringify(value) ?? "null").replace(
    /(?!\n)[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`
  )

/**
 * A command that ends with the exit code of an interruption when a signal stops it.
 *
 * @since 0.1.0
 * @category running
 */
export const interruptible = <A, E, R>(command: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.onInterrupt(command, () =>
    Effect.sync(() => {
      process.exitCode = 130
    })
  )
