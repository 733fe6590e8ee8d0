/**
 * From folded states to the prompt. What is sent is always valid for a strict provider: every call of an assistant
 * message is answered exactly once, directly behind it, whatever became of it.
 *
 * @since 0.1.0
 */

import type { RunInput } from "../domain/RunInput.js"
import type { Call, RunState, Turn } from "../domain/RunState.js"
import * as Fold from "../domain/RunState.js"
import type { CallPart, ModelMessage } from "../model/Model.js"

/**
 * An earlier run of the conversation: what was asked and what came of it. `turns` is `undefined` for a run whose log
 * is gone, of which only the text is left.
 *
 * @since 0.1.0
 * @category models
 */
export interface Exchange {
  readonly runId: string
  readonly userMessage: string
  readonly turns: ReadonlyArray<Turn> | undefined
  readonly answer: string
  readonly sides: ReadonlyMap<number, unknown>
}

/**
 * Everything a prompt is made of.
 *
 * - `notes`: lines that are told to the model behind the instructions, such as a document that has changed
 * - `summary`: stands for everything up to (inclusive) iteration `uptoIteration` of run `uptoRunId`
 *
 * @since 0.1.0
 * @category models
 */
export interface Material {
  readonly input: RunInput
  readonly earlier: ReadonlyArray<Exchange>
  readonly sides: ReadonlyMap<number, unknown>
  readonly notes: ReadonlyArray<string>
  readonly summary?: { readonly text: string; readonly uptoRunId: string; readonly uptoIteration: number } | undefined
}

/**
 * A piece of the conversation that stays together, so that calls keep their answers. `runId` and `iteration` say what
 * a compaction up to here would cover.
 *
 * @since 0.1.0
 * @category models
 */
export interface Block {
  readonly runId: string
  readonly iteration: number
  readonly messages: ReadonlyArray<ModelMessage>
}

/**
 * The prompt of a run in this state. With `draft` the open turn's text is its last message.
 *
 * @since 0.1.0
 * @category prompts
 */
export const prompt = (state: RunState, material: Material, draft: boolean): ReadonlyArray<ModelMessage> => {
  const head = system(material)
  const messages: Array<ModelMessage> = head === "" ? [] : [{ role: "system", content: head }]
  for (const block of blocks(state, material, draft)) messages.push(...block.messages)
  return withUniqueIds(messages)
}

/**
 * Ids of calls are unique in a run, not in a conversation: many servers count from the beginning each time. Providers
 * refuse a prompt that uses one twice, so a later use gets another name.
 */
const withUniqueIds = (messages: ReadonlyArray<ModelMessage>): ReadonlyArray<ModelMessage> => {
  const taken = new Set<string>()
  let renamed = new Map<string, string>()
  return messages.map((message) => {
    if (message.role === "tool") {
      const toolCallId = renamed.get(message.toolCallId)
      return toolCallId === undefined ? message : { ...message, toolCallId }
    }
    if (message.role !== "assistant") return message
    renamed = new Map()
    for (const part of message.content) {
      if (part.type !== "tool-call") continue
      let id = part.toolCallId
      for (let n = 2; taken.has(id); n++) id = `${part.toolCallId}_${n}`
      taken.add(id)
      if (id !== part.toolCallId) renamed.set(part.toolCallId, id)
    }
    if (renamed.size === 0) return message
    const names = renamed
    return {
      ...message,
      content: message.content.map((part) =>
        part.type === "tool-call" ? { ...part, toolCallId: names.get(part.toolCallId) ?? part.toolCallId } : part
      )
    }
  })
}

/**
 * What follows the system message, in pieces that belong together, without what the summary covers.
 *
 * @since 0.1.0
 * @category prompts
 */
export const blocks = (state: RunState, material: Material, draft: boolean): ReadonlyArray<Block> => {
  const all: Array<Block> = []
  if (material.input.prefix.messages.length > 0) {
    all.push({
      runId: "",
      iteration: 0,
      messages: material.input.prefix.messages.map((message) =>
        message.role === "user"
          ? { role: "user", content: message.content }
          : { role: "assistant", content: [{ type: "text", text: message.content }] }
      )
    })
  }
  for (const exchange of material.earlier) all.push(...exchangeBlocks(exchange))
  const question: Block = {
    runId: state.runId,
    iteration: 0,
    messages: [{ role: "user", content: material.input.userMessage }]
  }
  all.push(question)
  for (const turn of draft ? state.closed : Fold.turns(state)) {
    const messages = turnMessages(turn, material.sides)
    if (messages.length > 0) all.push({ runId: state.runId, iteration: turn.n, messages })
  }
  if (draft && state.open !== undefined) {
    all.push({
      runId: state.runId,
      iteration: state.open.n,
      messages: [{ role: "assistant", content: [{ type: "text", text: Fold.turnText(state.open) }] }]
    })
  }
  const { summary } = material
  if (summary === undefined) return all
  const last = all.findLastIndex(
    (block) => block.runId === summary.uptoRunId && block.iteration <= summary.uptoIteration
  )
  const rest = all.slice(last + 1)
  // The question itself is never summarised away: the model must see what it was asked.
  return last >= all.indexOf(question) ? [question, ...rest] : rest
}

const system = ({ input, notes, summary }: Material): string => {
  const lines: Array<string> = input.instructions === "" ? [] : [input.instructions]
  const document = input.currentDocument
  if (document !== null) {
    const title = document.title === undefined ? "" : ` (${JSON.stringify(document.title)})`
    lines.push(`The user has the document ${JSON.stringify(document.id)}${title} open.`)
  }
  lines.push(...notes)
  if (summary !== undefined) lines.push(`Earlier in this conversation: ${summary.text}`)
  return lines.join("\n\n")
}

const exchangeBlocks = (exchange: Exchange): ReadonlyArray<Block> => {
  const question: ModelMessage = { role: "user", content: exchange.userMessage }
  const answers =
    exchange.turns === undefined
      ? exchange.answer === ""
        ? []
        : [{ n: 1, messages: [{ role: "assistant", content: [{ type: "text", text: exchange.answer }] } as const] }]
      : exchange.turns
          .map((turn) => ({ n: turn.n, messages: turnMessages(turn, exchange.sides) }))
          .filter((turn) => turn.messages.length > 0)
  // A question without any answer would leave two user messages in a row, which some providers refuse.
  if (answers.length === 0) {
    return [
      {
        runId: exchange.runId,
        iteration: 0,
        messages: [question, { role: "assistant", content: [{ type: "text", text: "(no answer)" }] }]
      }
    ]
  }
  return [
    { runId: exchange.runId, iteration: 0, messages: [question] },
    ...answers.map((turn) => ({ runId: exchange.runId, iteration: turn.n, messages: turn.messages }))
  ]
}

/**
 * The messages of one turn. A turn without `model-end` counts with its text alone: none of its calls ever started.
 *
 * @since 0.1.0
 * @category prompts
 */
export const turnMessages = (turn: Turn, sides: ReadonlyMap<number, unknown>): ReadonlyArray<ModelMessage> => {
  if (turn.ended === undefined) {
    const text = Fold.turnText(turn)
    return text === "" ? [] : [{ role: "assistant", content: [{ type: "text", text }] }]
  }
  const content: Array<{ readonly type: "text" | "reasoning"; readonly text: string } | CallPart> = []
  for (const part of turn.parts) {
    if (part.type !== "tool-call") {
      content.push({ type: part.type, text: part.text })
      continue
    }
    const call = turn.calls.find((_) => _.id === part.toolCallId)
    if (call !== undefined) content.push(callPart(call))
  }
  if (content.every((part) => part.type === "reasoning")) return []
  const side = sides.get(turn.n)
  return [{ role: "assistant", content, ...(side !== undefined && { side }) }, ...turn.calls.map(answer)]
}

const callPart = (call: Call): CallPart => ({
  type: "tool-call",
  toolCallId: call.id,
  toolName: call.name,
  // Arguments that were no JSON object would make the provider refuse every later request.
  argumentsText: call.proposed === undefined ? "{}" : JSON.stringify(call.proposed.value)
})

const answer = (call: Call): ModelMessage => {
  const { result } = call
  const base = { role: "tool", toolCallId: call.id, toolName: call.name } as const
  if (result === undefined)
    return { ...base, result: { error: "The call was interrupted before it ran." }, isError: true }
  switch (result.state) {
    case "done":
      return {
        ...base,
        result: call.edited ? { ...changed(call), result: result.result } : result.result,
        isError: !result.ok
      }
    case "invalid":
      return { ...base, result: result.result, isError: true }
    case "applied":
      return {
        ...base,
        result: { applied: true, ...(call.edited && changed(call)), result: result.result },
        isError: false
      }
    case "rejected":
      return { ...base, result: { applied: false, rejected: true, ...reason(result.result) }, isError: true }
    case "expired":
      return { ...base, result: { applied: false, expired: true, error: "Nobody decided in time." }, isError: true }
    case "interrupted":
      return { ...base, result: { error: "The call was interrupted; it had no effect." }, isError: true }
    case "in_doubt":
      return {
        ...base,
        result: {
          error: "It is not known whether the call took effect. Do not repeat it without asking.",
          ...reason(result.result)
        },
        isError: true
      }
  }
}

const changed = (call: Call) => ({
  note: "A person changed the arguments before approving.",
  input: call.input?.value
})

const reason = (result: unknown): { readonly reason?: unknown } =>
  typeof result === "object" && result !== null && "reason" in result ? { reason: result.reason } : {}
