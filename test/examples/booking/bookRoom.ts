/** A tool that books a room, after a person has said yes to what it shows. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { EffectTool, Tool } from "runlet"
import type { Calendar } from "./Calendar.js"

export const Input = Schema.Struct({ room: Schema.String, day: Schema.Int, guest: Schema.String })

export const bookRoom = (calendar: Calendar): Tool.Tool =>
  EffectTool.make({
    name: "book_room",
    description: "Books a room for a day",
    kind: "write",
    parameters: Input,
    preview: (input) =>
      Effect.suspend(() => {
        const taken = calendar.at(input)
        return taken === undefined
          ? Effect.succeed(input)
          : new Tool.ToolFailure({ message: `${taken.guest} has the room on that day.` })
      }),
    commit: (input, { idempotencyKey: key, runId, toolCallId }) =>
      Effect.gen(function* () {
        // The key before anything else: otherwise a second try would find the room taken, by the first one.
        if (calendar.under(key) !== undefined) return { result: { key } }
        if (calendar.at(input) !== undefined)
          return yield* new Tool.ToolConflict({ message: "It was booked meanwhile." })
        switch (calendar.book({ ...input, key, runId, toolCallId })) {
          case "booked":
            return { result: { key } }
          case "silence":
            return yield* new Tool.ToolInDoubt({ message: "The calendar did not answer." })
          case "closed":
            return yield* new Tool.ToolFailure({ message: "The calendar takes no bookings just now." })
        }
      }),
    probe: ({ idempotencyKey: key }) =>
      Effect.sync(() =>
        calendar.under(key) === undefined ? { state: "absent" } : { state: "applied", result: { key } }
      )
  })
