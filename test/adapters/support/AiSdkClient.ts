/** The AI SDK's own client, in Node: what a page with `useChat` is made of. */

import type { ChatStatus } from "ai"
import {
  AbstractChat,
  type ChatInit,
  type ChatState,
  DefaultChatTransport,
  readUIMessageStream,
  type UIMessage,
  type UIMessageChunk,
  uiMessageChunkSchema
} from "ai"
import * as V7 from "ai-v7"
import type { Chunk, MessageMetadata } from "../../../src/adapters/AiSdkChunks.js"

export type Message = UIMessage<MessageMetadata>

const copy = <A>(value: A): A => structuredClone(value)

class State implements ChatState<Message> {
  status: ChatStatus = "ready"
  error: Error | undefined = undefined
  messages: Array<Message>

  constructor(messages: Array<Message>) {
    this.messages = messages
  }
  pushMessage(message: Message) {
    this.messages = [...this.messages, copy(message)]
  }
  popMessage() {
    this.messages = this.messages.slice(0, -1)
  }
  replaceMessage(index: number, message: Message) {
    this.messages = this.messages.with(index, copy(message))
  }
  snapshot<A>(thing: A): A {
    return copy(thing)
  }
}

export class Chat extends AbstractChat<Message> {
  constructor({ messages = [], ...init }: ChatInit<Message>) {
    super({ ...init, state: new State(messages) })
  }
}

export const transport = (url: string, options: ConstructorParameters<typeof DefaultChatTransport<Message>>[0] = {}) =>
  new DefaultChatTransport<Message>({ api: `${url}/adapters/ai-sdk/chat`, ...options })

const streamOf = <A>(chunks: ReadonlyArray<A>): ReadableStream<A> =>
  new ReadableStream({
    start: (controller) => {
      for (const chunk of chunks) controller.enqueue(chunk)
      controller.close()
    }
  })

/** The message that the SDK makes of chunks, and the error that they tell. */
export const messageOf = async (
  chunks: ReadonlyArray<Chunk>,
  version: 6 | 7 = 6
): Promise<{ readonly message: unknown; readonly error: string | undefined }> => {
  let message: unknown
  let error: string | undefined
  const onError = (cause: unknown) => {
    error = cause instanceof Error ? cause.message : String(cause)
  }
  for (const chunk of chunks) await check(chunk, version)
  const stream = streamOf(chunks)
  const messages =
    version === 6
      ? readUIMessageStream({ stream: stream as ReadableStream<UIMessageChunk>, onError })
      : V7.readUIMessageStream({ stream: stream as ReadableStream<V7.UIMessageChunk>, onError })
  for await (const one of messages) message = one
  return { message: message === undefined ? undefined : JSON.parse(JSON.stringify(message)), error }
}

const schemas = { 6: uiMessageChunkSchema(), 7: V7.uiMessageChunkSchema() }

/** Fails for a chunk that this version of the SDK would refuse. */
export const check = async (chunk: unknown, version: 6 | 7): Promise<void> => {
  const result = await schemas[version].validate?.(chunk)
  if (result?.success !== true) throw new Error(`version ${version} refuses ${JSON.stringify(chunk)}`)
}
