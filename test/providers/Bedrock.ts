/**
 * Amazon Bedrock tells what a turn cost behind its end, and the library of this line has closed its books by then. This
 * layer, between the library's model and its client, holds the end back until the usage is known.
 */
import { AmazonBedrockClient } from "@effect/ai-amazon-bedrock/AmazonBedrockClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"

export const layerUsageFirst = Layer.effect(
  AmazonBedrockClient,
  Effect.map(AmazonBedrockClient, (client) =>
    AmazonBedrockClient.of({
      ...client,
      converseStream: (options) => {
        const events = client.converseStream(options)
        type Event = Stream.Stream.Success<typeof events>
        return events.pipe(
          Stream.map(Option.some),
          Stream.concat(Stream.succeed(Option.none<Event>())),
          Stream.mapAccum(Option.none<Event>(), (held, event): [Option.Option<Event>, ReadonlyArray<Event>] => {
            if (Option.isNone(event)) return [Option.none(), Option.toArray(held)]
            if (event.value.type === "messageStop") return [event, []]
            return event.value.type === "metadata"
              ? [Option.none(), [event.value, ...Option.toArray(held)]]
              : [held, [event.value]]
          }),
          Stream.flattenIterables
        )
      }
    })
  )
)
