/**
 * Tool calls from the fragments that servers send. The format says: by `index`, with id and name in the first
 * fragment. Servers leave any of the three out, repeat them, send them empty, or count every call 0.
 *
 * @since 0.1.0
 */
import * as JsonEnd from "./JsonEnd.js"
import type { ModelPart } from "./Model.js"

/**
 * A call of the turn. `key` is unique in the turn; `toolCallId` is the server's id, "" for none; `text` is what came of
 * the arguments, `end` what is known of where they end.
 */
interface Call {
  readonly key: string
  toolCallId: string
  toolName: string
  text: string
  readonly end: JsonEnd.JsonEnd
  started: boolean
}

/**
 * The calls of one turn.
 *
 * - `push`: takes `delta.tool_calls`, whatever it is, and adds parts to `out`
 * - `end`: begins calls that never got a name, so that they can be answered
 * - `count`: how many there are
 *
 * @since 0.1.0
 * @category models
 */
export interface Calls {
  readonly push: (fragments: unknown, out: Array<ModelPart>) => void
  readonly end: (out: Array<ModelPart>) => void
  readonly count: () => number
}

/**
 * The calls of one turn, none yet.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (): Calls => {
  const calls: Array<Call> = []
  const byIndex = new Map<number, Call>()
  const byId = new Map<string, Call>()

  const open = (): Call => {
    const call: Call = {
      key: `call-${calls.length}`,
      toolCallId: "",
      toolName: "",
      text: "",
      end: JsonEnd.make(),
      started: false
    }
    calls.push(call)
    return call
  }

  const find = (fragment: Fragment, position: number, siblings: number): Call => {
    if (fragment.index !== undefined) {
      const known = byIndex.get(fragment.index)
      if (known !== undefined && !begins(fragment, known)) return known
      const call = open()
      byIndex.set(fragment.index, call)
      return call
    }
    const named = fragment.id === "" ? undefined : byId.get(fragment.id)
    if (named !== undefined) return named
    const nth = siblings > 1 ? calls[position] : undefined
    const known = nth ?? calls.at(-1)
    return known === undefined || begins(fragment, known) ? open() : known
  }

  const start = (call: Call, out: Array<ModelPart>): void => {
    call.started = true
    out.push({
      type: "tool-call-start",
      call: call.key,
      ...(call.toolCallId !== "" && { toolCallId: call.toolCallId }),
      toolName: call.toolName
    })
    if (call.text !== "") out.push({ type: "tool-call-delta", call: call.key, delta: call.text })
  }

  return {
    push: (fragments, out) => {
      if (!Array.isArray(fragments)) return
      for (let i = 0; i < fragments.length; i++) {
        const fragment = read(fragments[i])
        if (fragment === undefined || (fragment.id === "" && fragment.name === "" && fragment.text === "")) continue
        const call = find(fragment, i, fragments.length)
        if (call.toolCallId === "" && fragment.id !== "") {
          call.toolCallId = fragment.id
          byId.set(fragment.id, call)
        }
        if (call.toolName === "") call.toolName = fragment.name
        call.text += fragment.text
        call.end.push(fragment.text)
        if (!call.started) {
          if (call.toolName !== "") start(call, out)
        } else if (fragment.text !== "") {
          out.push({ type: "tool-call-delta", call: call.key, delta: fragment.text })
        }
      }
    },
    end: (out) => {
      for (const call of calls) if (!call.started) start(call, out)
    },
    count: () => calls.length
  }
}

interface Fragment {
  readonly index: number | undefined
  readonly id: string
  readonly name: string
  readonly text: string
}

const read = (fragment: unknown): Fragment | undefined => {
  if (typeof fragment !== "object" || fragment === null) return undefined
  const { index, id, function: fn } = fragment as { index?: unknown; id?: unknown; function?: unknown }
  const { name, arguments: text } = (typeof fn === "object" && fn !== null ? fn : {}) as {
    name?: unknown
    arguments?: unknown
  }
  return {
    index: typeof index === "number" ? index : undefined,
    id: typeof id === "string" ? id : "",
    name: typeof name === "string" ? name : "",
    // Some servers send the finished object instead of its text.
    text: typeof text === "string" ? text : typeof text === "object" && text !== null ? JSON.stringify(text) : ""
  }
}

/**
 * Whether a fragment that would go to `call` by its place begins another call instead. Another id tells so, unless it
 * comes without a name while `call` still lacks text (ids made up for each fragment). A name tells so where nothing
 * else does, unless it is only repeated.
 */
const begins = (fragment: Fragment, call: Call): boolean => {
  const named = fragment.name !== "" && call.toolName !== ""
  if (fragment.id !== "" && call.toolCallId !== "") {
    if (fragment.id === call.toolCallId) return false
    if (!named) return call.end.isReached(call.text)
    return (
      fragment.index === undefined ||
      fragment.name !== call.toolName ||
      call.text === "" ||
      call.end.isReached(call.text)
    )
  }
  if (fragment.id === "" && fragment.index !== undefined) return false
  return named && (fragment.name !== call.toolName || call.end.isReached(call.text))
}
