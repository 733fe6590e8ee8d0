import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { Model, ModelError, ModelPart, ModelRequest } from "../../src/model/Model.js"
import * as OpenAiCompatible from "../../src/model/OpenAiCompatible.js"
import * as OpenAiStream from "../../src/model/OpenAiStream.js"
import type { Reply, Step } from "../../src/testing/UpstreamScript.js"

export const request: ModelRequest = {
  runId: "run_1",
  conversationId: "conv_1",
  attempt: 1,
  iteration: 1,
  messages: [{ role: "user", content: "Hello" }],
  tools: [],
  enableThinking: false,
  continueDraft: false
}

export const limits = { model: "scripted", firstChunkTimeoutMs: 5_000, chunkTimeoutMs: 5_000 }

/** A model of a server at this address, over a real connection. */
export const modelAt = (baseUrl: string, options: Partial<OpenAiCompatible.Options> = {}) =>
  OpenAiCompatible.make({ ...limits, baseUrl, ...options })

export const undici = NodeHttpClient.layerUndici

/** A client whose answer comes in exactly these pieces. */
export const piecesClient = (pieces: ReadonlyArray<Uint8Array>) =>
  Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((outgoing) =>
      Effect.sync(() =>
        HttpClientResponse.fromWeb(
          outgoing,
          new Response(
            new ReadableStream({
              start(controller) {
                for (const piece of pieces) controller.enqueue(piece)
                controller.close()
              }
            }),
            { headers: { "content-type": "text/event-stream" } }
          )
        )
      )
    )
  )

export interface Outcome {
  readonly parts: ReadonlyArray<ModelPart>
  readonly error: ModelError | undefined
}

/** Everything that a turn gave, and how it failed. */
export const collect = (model: Model, asked: ModelRequest = request): Effect.Effect<Outcome> => {
  const parts: Array<ModelPart> = []
  return model.stream(asked).pipe(
    Stream.runForEach((part) => Effect.sync(() => parts.push(part))),
    Effect.as(undefined),
    Effect.catchAll((error) => Effect.succeed(error)),
    Effect.map((error) => ({ parts, error }))
  )
}

/** The bytes of an answer's steps, without their times. */
export const bytesOf = (steps: ReadonlyArray<Step>): Buffer =>
  Buffer.concat(
    steps.flatMap((step) =>
      "text" in step ? [Buffer.from(step.text)] : "base64" in step ? [Buffer.from(step.base64, "base64")] : []
    )
  )

/** What a turn decoder makes of these pieces of bytes. */
export const decode = (pieces: ReadonlyArray<Uint8Array>, options: { readonly maxFrame?: number } = {}): Outcome => {
  const decoder = OpenAiStream.make({ keepReasoning: false, maxFrame: options.maxFrame ?? 16 * 1024 * 1024 })
  const parts: Array<ModelPart> = []
  for (const piece of pieces) decoder.push(piece, parts)
  const error = decoder.end(parts)
  return { parts, error }
}

export const decodeReply = (reply: Reply): Outcome => decode([bytesOf(reply.steps)])

export const cut = (bytes: Uint8Array, size: number): ReadonlyArray<Uint8Array> =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))

export const textOf = (parts: ReadonlyArray<ModelPart>, type: "text-delta" | "reasoning-delta" = "text-delta") =>
  parts.map((part) => (part.type === type ? part.delta : "")).join("")

/** The calls of a turn as a loop would put them together. */
export const callsOf = (parts: ReadonlyArray<ModelPart>) => {
  const calls = new Map<string, { id: string | undefined; name: string; args: string }>()
  for (const part of parts) {
    if (part.type === "tool-call-start") calls.set(part.call, { id: part.toolCallId, name: part.toolName, args: "" })
    if (part.type === "tool-call-delta") {
      const call = calls.get(part.call)
      if (call === undefined) throw new Error("a delta before its start")
      call.args += part.delta
    }
  }
  return [...calls.values()]
}

export const finishOf = (parts: ReadonlyArray<ModelPart>) => {
  const last = parts.at(-1)
  return last?.type === "finish" ? last : undefined
}
