/**
 * The threads that runs belong to.
 *
 * @since 0.1.0
 */
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import { RunEngine } from "../engine/RunEngine.js"
import * as ListCursor from "../store/ListCursor.js"
import * as Body from "./Body.js"
import { paging } from "./HandlersRuns.js"
import { RunsApi } from "./RunsApi.js"
import { RenameBody } from "./RunsSchemas.js"
import * as Streams from "./Streams.js"

const decodeRename = Body.decode(RenameBody)

/**
 * The handlers of the calls about conversations.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = HttpApiBuilder.group(RunsApi, "conversations", (handlers) =>
  Effect.map(RunEngine, (engine) =>
    handlers
      .handle("list", ({ urlParams }) =>
        Effect.flatMap(paging(urlParams, ListCursor.conversations), engine.conversations)
      )
      .handle("get", ({ path }) =>
        Effect.map(engine.conversation(path.conversationId), ({ conversation, messages }) => {
          const { conversationId, title } = conversation
          return Streams.list({ conversationId, title }, "messages", messages)
        })
      )
      .handleRaw("rename", ({ path }) =>
        Effect.gen(function* () {
          const { title } = yield* decodeRename(yield* Body.json)
          yield* engine.renameConversation(path.conversationId, title)
          return HttpServerResponse.empty({ status: 204 })
        })
      )
      .handle("remove", ({ path }) => engine.removeConversation(path.conversationId))
  )
)
