import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as McpTool from "../../../src/tool/mcp/McpTool.js"

describe("names of MCP tools", () => {
  it("are the server's and the tool's, in the alphabet of providers", () => {
    expect(McpTool.nameOf("git hub", "issues/list", new Set())).toBe("git_hub_issues_list")
  })

  it.prop(
    "fit every provider, and are the same at every start",
    [FastCheck.string(), FastCheck.string({ maxLength: 200 })],
    ([server, tool]) => {
      const name = McpTool.nameOf(server, tool, new Set())
      expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
      expect(McpTool.nameOf(server, tool, new Set())).toBe(name)
      const other = McpTool.nameOf(server, tool, new Set([name]))
      expect(other).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
    }
  )

  it("differ where their tools do", () => {
    const taken = new Set<string>()
    for (const tool of ["a b", "a/b", "a_b", "x".repeat(80), "x".repeat(81)]) {
      const name = McpTool.nameOf("s", tool, taken)
      expect(taken.has(name)).toBe(false)
      taken.add(name)
    }
    expect(McpTool.nameOf("github", "search", new Set(["github_search"]))).toMatch(/^github_search_[a-zA-Z0-9]{8}$/)
  })
})

describe("kinds of MCP tools", () => {
  it.each([
    [{ readOnlyHint: true }, "readonly"],
    [{ readOnlyHint: true, destructiveHint: true }, "readonly"],
    [{ readOnlyHint: false }, "write"],
    [{ destructiveHint: false }, "write"],
    [{ idempotentHint: true }, "write"],
    [{ title: "T" }, "effectful"],
    [{}, "effectful"],
    [undefined, "effectful"]
  ] as const)("%j: %s", (annotations, kind) => {
    expect(McpTool.kindOf({ annotations })).toBe(kind)
  })
})
