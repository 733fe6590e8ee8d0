/**
 * Answers of a scripted model server that are chosen by a directive at the end of the last user message, such as
 * `Go on [slow 100 20]`, so that a test of whole processes needs no script of its own.
 *
 * @since 0.1.0
 */
import * as Script from "./UpstreamScript.js"

type Behaviour = (rest: string, request: Script.UpstreamRequest) => Script.Reply

/**
 * - no directive: `You said: …`
 * - `[slow n ms]`: `n` numbered pieces of text, one every `ms`
 * - `[thinking n]`: `n` pieces of reasoning, then an answer
 * - `[hang]`: never an answer; `[stall]`: two pieces, then silence
 * - `[cut n]`: `n` pieces, then the connection ends; `[reset n]`: then it is reset
 * - `[busy s]`: status 429 with `retry-after: s`; `[overloaded]`: two pieces, then an error frame
 * - `[call name json]`: one call, then `Result: …` with what the tool answered
 * - `[rounds n name json]`: `n` turns with one call each, `$n` in the JSON being the number of the turn
 *
 * @since 0.1.0
 * @category constructors
 */
export const byDirective = (request: Script.UpstreamRequest): Script.Reply => {
  const said = Script.lastUserText(request)
  const directive = /\[(\w+)(?:\s+([\s\S]*))?\]\s*$/.exec(said)
  const behaviour = directive === null ? undefined : behaviours.get(directive[1] ?? "")
  return behaviour === undefined ? Script.answer("You said: ", said) : behaviour(directive?.[2] ?? "", request)
}

const numbers = (rest: string, first: number, second: number): readonly [number, number] => {
  const [a, b] = rest.split(/\s+/)
  return [a ? Number(a) : first, b ? Number(b) : second]
}

const pieces = (count: number): ReadonlyArray<Script.Step> =>
  Array.from({ length: count }, (_, i) => Script.text(`${i + 1} `))

const ending = [Script.finish("stop"), Script.usage(10, 10), Script.done]

const toolAnswers = (request: Script.UpstreamRequest): ReadonlyArray<unknown> => {
  const messages = Script.messagesOf(request)
  const lastUser = messages.findLastIndex((message) => message.role === "user")
  return messages.flatMap((message, i) => (i > lastUser && message.role === "tool" ? [message.content] : []))
}

const rounds = (count: number, name: string, json: string, request: Script.UpstreamRequest): Script.Reply => {
  const answers = toolAnswers(request)
  const n = String(answers.length + 1)
  return answers.length < count
    ? Script.calls({ id: `call_${request.n}_${n}`, name, args: json === "" ? "{}" : json.replaceAll("$n", n) })
    : Script.answer("Result: ", String(answers.at(-1) ?? ""))
}

const behaviours: ReadonlyMap<string, Behaviour> = new Map<string, Behaviour>([
  [
    "slow",
    (rest) => {
      const [count, ms] = numbers(rest, 100, 20)
      return Script.reply([pieces(count).flatMap((piece) => [piece, Script.wait(ms)]), ending])
    }
  ],
  [
    "thinking",
    (rest) => {
      const [count] = numbers(rest, 5, 0)
      const thoughts = Array.from({ length: count }, (_, i) => Script.reasoning(`thought ${i + 1} `))
      return Script.reply([thoughts, Script.text("Thought about it."), ending])
    }
  ],
  ["hang", () => Script.reply([], { head: "never" })],
  ["stall", () => Script.reply(pieces(2), { end: "open" })],
  ["cut", (rest) => Script.reply([...pieces(numbers(rest, 10, 0)[0]), Script.wait(50)], { framing: "close" })],
  ["reset", (rest) => Script.reply([...pieces(numbers(rest, 10, 0)[0]), Script.wait(50)], { end: "reset" })],
  ["busy", (rest) => Script.body(429, "application/json", "{}", { "retry-after": rest === "" ? "1" : rest })],
  [
    "overloaded",
    () => Script.reply([...pieces(2), Script.data({ error: { type: "overloaded_error", message: "busy" } })])
  ],
  [
    "call",
    (rest, request) => {
      const [, name = "", json = ""] = /^(\S+)\s*([\s\S]*)$/.exec(rest) ?? []
      return rounds(1, name, json, request)
    }
  ],
  [
    "rounds",
    (rest, request) => {
      const [, count = "1", name = "", json = ""] = /^(\d+)\s+(\S+)\s*([\s\S]*)$/.exec(rest) ?? []
      return rounds(Number(count), name, json, request)
    }
  ]
])
