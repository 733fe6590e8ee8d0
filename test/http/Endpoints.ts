/** Every endpoint of the contract, so that what holds for all of them is tested for those that come later, too. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as Option from "effect/Option"
import { RunsApi } from "../../src/http/RunsApi.js"

export interface Endpoint {
  /** That of its group, a full stop, its own. */
  readonly name: string
  readonly method: string
  readonly path: string
  /** Whether the contract says that it reads a body. */
  readonly hasBody: boolean
}

export const all: ReadonlyArray<Endpoint> = (() => {
  const found: Array<Endpoint> = []
  HttpApi.reflect(RunsApi, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, group }) => {
      found.push({
        name: `${group.identifier}.${endpoint.name}`,
        method: endpoint.method,
        path: endpoint.path,
        hasBody: Option.isSome(endpoint.payloadSchema)
      })
    }
  })
  return found
})()

export interface Ids {
  readonly runId: string
  readonly conversationId: string
  readonly approvalId: string
}

/** The path for what has these ids; an adapter's own name for a conversation is its id. */
export const fill = (path: string, { approvalId, conversationId, runId }: Ids): string =>
  path
    .replace(":runId", runId)
    .replace(":conversationId", conversationId)
    .replace(":chatId", conversationId)
    .replace(":threadId", conversationId)
    .replace(":approvalId", approvalId)
    .replace(":seq", "3")
