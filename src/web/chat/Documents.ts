/**
 * The documents that the tools of a conversation have written, as far as its runs tell. Pure.
 *
 * @since 0.1.0
 */
import type { Snapshot } from "../../domain/Snapshot.js"
import { field } from "./Preview.js"

/**
 * A document as it was last written here.
 *
 * @since 0.1.0
 * @category models
 */
export interface Document {
  readonly id: string
  readonly title: string
  readonly text: string
  readonly contentHash?: string | undefined
  readonly runId: string
}

/**
 * The documents of the runs, each once as it was written last, the newest first. A call counts when its change was
 * applied, its result names a document, and its preview or its input says what the text became.
 *
 * @since 0.1.0
 * @category reading
 */
export const written = (runs: ReadonlyArray<Pick<Snapshot, "runId" | "toolCalls">>): ReadonlyArray<Document> => {
  const found = new Map<string, Document>()
  for (const { runId, toolCalls } of runs) {
    for (const { approval, input, kind, result, state, toolName } of toolCalls) {
      const id = field(result, "id")
      const text = field(approval?.preview, "after") ?? field(input, "text")
      if (kind !== "write" || state !== "applied" || id === undefined || text === undefined) continue
      const title = field(result, "title") ?? field(approval?.preview, "title") ?? toolName
      found.delete(id)
      found.set(id, { id, title, text, contentHash: field(result, "contentHash"), runId })
    }
  }
  return [...found.values()].reverse()
}
