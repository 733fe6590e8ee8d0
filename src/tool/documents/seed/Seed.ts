/**
 * The product's documentation, for everybody to read.
 *
 * @since 0.1.0
 */
import * as Json from "../../Json.js"
import type { Document } from "../Documents.js"
import * as Chinese from "./Chinese.js"
import * as English from "./English.js"

/**
 * Every page, as a document that nobody may change.
 *
 * @since 0.1.0
 * @category constants
 */
export const documents: ReadonlyArray<Document> = [...English.pages, ...Chinese.pages].map(({ id, text, title }) => ({
  id,
  title,
  text,
  version: 1,
  contentHash: Json.sha256(text),
  readOnly: true,
  updatedAt: 0
}))
