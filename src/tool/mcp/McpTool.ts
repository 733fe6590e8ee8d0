/**
 * From what a Model Context Protocol server says of a tool to a tool of a run. Pure.
 *
 * @since 0.1.0
 */
import type { CallToolResult, ContentBlock, Tool as McpTool } from "@modelcontextprotocol/sdk/types.js"
import type { ToolKind } from "../../domain/AgentEvent.js"
import * as Json from "../Json.js"

const maxNameChars = 64
const maxTitleChars = 200
const maxDescriptionChars = 8_000

const safe = (name: string): string => name.replace(/[^a-zA-Z0-9_-]/g, "_")

/**
 * The name that a model calls a tool by: that of its server, `_`, its own, in the alphabet of providers. A name that
 * would be too long, or is taken, ends with a hash of the tool's own, so that it is the same at every start.
 *
 * @since 0.1.0
 * @category names
 */
export const nameOf = (server: string, tool: string, taken: ReadonlySet<string>): string => {
  const whole = `${safe(server)}_${safe(tool)}`
  if (whole.length <= maxNameChars && !taken.has(whole)) return whole
  const hash = Json.hash([server, tool])
    .replace(/[^a-zA-Z0-9]/g, "")
    .slice(-8)
  return `${whole.slice(0, maxNameChars - 9)}_${hash}`
}

/**
 * What a tool may do, by its annotations: `readonly` where it says so, `write` where it says something else of what it
 * does, and `effectful` where it says nothing. People are asked before both of the latter.
 *
 * @since 0.1.0
 * @category kinds
 */
export const kindOf = ({ annotations }: Pick<McpTool, "annotations">): ToolKind => {
  if (annotations?.readOnlyHint === true) return "readonly"
  const { destructiveHint, idempotentHint, openWorldHint, readOnlyHint } = annotations ?? {}
  return [destructiveHint, idempotentHint, openWorldHint, readOnlyHint].every((hint) => hint === undefined)
    ? "effectful"
    : "write"
}

/**
 * What is shown of a tool to people and to models, cut to a length that can be shown.
 *
 * @since 0.1.0
 * @category descriptions
 */
export const described = (tool: McpTool): { readonly description: string; readonly title: string | undefined } => {
  const title = tool.title ?? tool.annotations?.title
  return {
    description: Json.cut(tool.description ?? title ?? tool.name, maxDescriptionChars),
    title: title === undefined ? undefined : Json.cut(title, maxTitleChars)
  }
}

/** Content that no model of a run can take in is told of, not handed on. */
const shown = (block: ContentBlock): unknown => {
  switch (block.type) {
    case "text":
      return block.text
    case "image":
    case "audio":
      return { type: block.type, mimeType: block.mimeType, omitted: `${bytesOf(block.data)} bytes` }
    case "resource_link":
      return { type: block.type, uri: block.uri, name: block.name, description: block.description }
    case "resource":
      return "text" in block.resource
        ? { type: block.type, uri: block.resource.uri, text: block.resource.text }
        : { type: block.type, uri: block.resource.uri, omitted: `${bytesOf(block.resource.blob)} bytes` }
  }
}

/** Bytes behind so much base64. */
const bytesOf = (base64: string): number => Math.floor((base64.replace(/={1,2}$/, "").length * 3) / 4)

/**
 * The result of a call: its structured content if it has some, else its text, or a list where there is more than text.
 *
 * @since 0.1.0
 * @category results
 */
export const resultOf = ({ content, structuredContent }: CallToolResult): unknown => {
  if (structuredContent !== undefined) return structuredContent
  const blocks = content.map(shown)
  if (blocks.length === 0) return null
  return blocks.every((block) => typeof block === "string") ? blocks.join("\n") : blocks
}

/**
 * What a call that failed says, in one text.
 *
 * @since 0.1.0
 * @category results
 */
export const failureOf = (result: CallToolResult): string => {
  const said = resultOf(result)
  if (said === null || said === "") return "The tool failed without a message."
  return typeof said === "string" ? said : JSON.stringify(said)
}
