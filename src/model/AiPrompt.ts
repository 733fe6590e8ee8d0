/**
 * From what the loop asks to a prompt of `@effect/ai`, with what the provider wants back for its own turns. Pure.
 *
 * @since 0.1.0
 */
import type * as Prompt from "@effect/ai/Prompt"
import * as CallText from "./CallText.js"
import type { CallPart, ModelMessage, ModelRequest } from "./Model.js"

/**
 * What a provider said beside the content of a part, by the provider's key.
 *
 * @since 0.1.0
 * @category models
 */
export type Metadata = { readonly [provider: string]: { readonly [key: string]: unknown } }

/**
 * A part of a turn as far as it goes back to its provider: reasoning whole, because it is signed; of the rest what was
 * said about it.
 *
 * @since 0.1.0
 * @category models
 */
export type SidePart =
  | { readonly type: "reasoning"; readonly text: string; readonly metadata?: Metadata }
  | { readonly type: "text" | "tool-call"; readonly metadata?: Metadata }

/**
 * The side data of a turn. `by` names the model that made it; no other one is given it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Side {
  readonly by: string
  readonly parts: ReadonlyArray<SidePart>
}

/**
 * The parts of the side data that a model of this name made, `undefined` for anything else.
 *
 * @since 0.1.0
 * @category accessors
 */
export const sideOf = (side: unknown, name: string): ReadonlyArray<SidePart> | undefined =>
  typeof side === "object" &&
  side !== null &&
  "by" in side &&
  side.by === name &&
  "parts" in side &&
  Array.isArray(side.parts)
    ? side.parts
    : undefined

/**
 * The messages of a request. Ids and names of calls fit every provider, results of failed calls say `error`, and a
 * turn that said nothing is left out. With `reasoning` the model gets its own reasoning back, signed as it was.
 *
 * @since 0.1.0
 * @category conversions
 */
export const toPrompt = (
  request: ModelRequest,
  { name, reasoning }: { readonly name: string; readonly reasoning: boolean }
): ReadonlyArray<Prompt.MessageEncoded> => {
  const idOf = callIds()
  const messages: Array<Prompt.MessageEncoded> = []
  let results: Array<Prompt.ToolMessagePartEncoded> = []
  const settle = () => {
    if (results.length > 0) messages.push({ role: "tool", content: results })
    results = []
  }
  for (const message of request.messages) {
    if (message.role === "tool") {
      results.push({
        type: "tool-result",
        id: idOf(message.toolCallId),
        name: CallText.safeName(message.toolName),
        isFailure: message.isError,
        result: message.isError ? CallText.errorResult(message.result) : (message.result ?? null),
        providerExecuted: false
      })
      continue
    }
    settle()
    if (message.role === "system") messages.push({ role: "system", content: message.content })
    else if (message.role === "user") messages.push({ role: "user", content: message.content })
    else {
      const content = assistantParts(message, name, reasoning, idOf)
      if (content.some((part) => part.type !== "reasoning")) messages.push({ role: "assistant", content })
    }
  }
  settle()
  return messages
}

type Assistant = Extract<ModelMessage, { readonly role: "assistant" }>
type Said = { readonly type: "text" | "reasoning"; readonly text: string } | CallPart

const assistantParts = (
  message: Assistant,
  name: string,
  reasoning: boolean,
  idOf: (id: string) => string
): ReadonlyArray<Prompt.AssistantMessagePartEncoded> => {
  const said = message.content.filter((part) => part.type !== "reasoning")
  const side = sideOf(message.side, name)
  const out: Array<Prompt.AssistantMessagePartEncoded> = []
  const add = (part: Said, metadata: Metadata | undefined) => {
    const options = metadata === undefined ? {} : { options: metadata }
    if (part.type === "tool-call") {
      out.push({
        type: "tool-call",
        id: idOf(part.toolCallId),
        name: CallText.safeName(part.toolName),
        params: CallText.objectOf(part.argumentsText) ?? {},
        ...options
      })
    } else if (part.text.trim() !== "") out.push({ type: "text", text: part.text, ...options })
  }
  const thought = (part: SidePart) => {
    if (reasoning && part.type === "reasoning" && part.metadata !== undefined) {
      out.push({ type: "reasoning", text: part.text, options: part.metadata })
    }
  }
  const told = side?.filter((part) => part.type !== "reasoning") ?? []
  const fits = told.length === said.length && told.every((part, i) => part.type === said[i]?.type)
  if (side !== undefined && fits) {
    let next = 0
    for (const part of side) {
      const own = part.type === "reasoning" ? undefined : said[next++]
      if (own === undefined) thought(part)
      else add(own, part.metadata)
    }
    return out
  }
  // What was said about parts that are no longer there is of no use, but the reasoning is still the turn's.
  for (const part of side ?? []) thought(part)
  for (const part of said) add(part, undefined)
  return out
}

/** Ids as they are where every provider takes them, others under names of ours. */
const callIds = (): ((id: string) => string) => {
  const renamed = new Map<string, string>()
  return (id) => {
    if (/^[a-zA-Z0-9_-]{1,64}$/.test(id)) return id
    const known = renamed.get(id) ?? `runlet_call_${renamed.size + 1}`
    renamed.set(id, known)
    return known
  }
}
