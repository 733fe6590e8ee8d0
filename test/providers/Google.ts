/**
 * Two things that Google's interface insists on and the library of this line leaves out: a tool's result is an object,
 * and a turn that ends without content has ended as well. This layer goes between the library's model and its client.
 */
import { Candidate, Content, GenerateContentResponse } from "@effect/ai-google/Generated"
import { GoogleClient } from "@effect/ai-google/GoogleClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"

type Request = Parameters<GoogleClient["Type"]["generateContentStream"]>[0]

const isObject = (value: unknown) => typeof value === "object" && value !== null && !Array.isArray(value)

const withObjects = (request: Request): Request => ({
  ...request,
  contents: request.contents.map((content) => ({
    ...content,
    parts: content.parts?.map((part) => {
      const { functionResponse } = part
      if (functionResponse == null || isObject(functionResponse.response)) return part
      return { ...part, functionResponse: { ...functionResponse, response: { output: functionResponse.response } } }
    })
  }))
})

const withContent = (response: GenerateContentResponse): GenerateContentResponse =>
  new GenerateContentResponse({
    ...response,
    candidates: response.candidates?.map((candidate) =>
      candidate.content === undefined ? new Candidate({ ...candidate, content: new Content({ parts: [] }) }) : candidate
    )
  })

export const layerComplete = Layer.effect(
  GoogleClient,
  Effect.map(GoogleClient, (client) =>
    GoogleClient.of({
      ...client,
      generateContentStream: (request) => Stream.map(client.generateContentStream(withObjects(request)), withContent)
    })
  )
)
