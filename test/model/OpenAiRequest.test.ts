import { describe, expect, it } from "@effect/vitest"
import type { ModelMessage, ModelRequest } from "../../src/model/Model.js"
import * as OpenAiRequest from "../../src/model/OpenAiRequest.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { request } from "./support.js"

const options: OpenAiRequest.RequestOptions = { model: "m" }

const history: ReadonlyArray<ModelMessage> = [
  { role: "system", content: "Be brief." },
  { role: "user", content: "One" },
  {
    role: "assistant",
    content: [
      { type: "reasoning", text: "old thought" },
      { type: "tool-call", toolCallId: "c1", toolName: "lookup", argumentsText: '{"q":"x"}' },
      { type: "tool-call", toolCallId: "c2", toolName: "save", argumentsText: "{}" }
    ]
  },
  { role: "tool", toolCallId: "c1", toolName: "lookup", result: { found: [1, 2] }, isError: false },
  { role: "tool", toolCallId: "c2", toolName: "save", result: "The person declined.", isError: true },
  {
    role: "assistant",
    content: [
      { type: "reasoning", text: "final thought" },
      { type: "text", text: "Done." }
    ]
  },
  { role: "user", content: "Two" },
  {
    role: "assistant",
    content: [
      { type: "text", text: "Let me " },
      { type: "text", text: "look." },
      { type: "tool-call", toolCallId: "c3", toolName: "lookup", argumentsText: '{"q":"y"}' }
    ],
    side: { reasoning_content: "new thought" }
  },
  { role: "tool", toolCallId: "c3", toolName: "lookup", result: null, isError: false }
]

const bodyOf = (changes: Partial<ModelRequest>, more: Partial<OpenAiRequest.RequestOptions> = {}) =>
  OpenAiRequest.toRequestBody({ ...request, ...changes }, { ...options, ...more })

const messagesOf = (body: OpenAiRequest.JsonObject) => Script.messagesOf({ body: JSON.parse(JSON.stringify(body)) })

describe("the request body", () => {
  it("has the messages of the format and no unknown field", () => {
    const tool = { name: "lookup", description: "Looks up", kind: "readonly", parameters: { type: "object" } } as const
    expect(bodyOf({ messages: history, tools: [tool] })).toEqual({
      model: "m",
      stream: true,
      stream_options: { include_usage: true },
      tools: [
        { type: "function", function: { name: "lookup", description: "Looks up", parameters: { type: "object" } } }
      ],
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "One" },
        {
          role: "assistant",
          content: null,
          tool_calls: [
            { id: "c1", type: "function", function: { name: "lookup", arguments: '{"q":"x"}' } },
            { id: "c2", type: "function", function: { name: "save", arguments: "{}" } }
          ]
        },
        { role: "tool", tool_call_id: "c1", content: '{"found":[1,2]}' },
        { role: "tool", tool_call_id: "c2", content: '{"error":"The person declined."}' },
        { role: "assistant", content: "Done." },
        { role: "user", content: "Two" },
        {
          role: "assistant",
          content: "Let me look.",
          tool_calls: [{ id: "c3", type: "function", function: { name: "lookup", arguments: '{"q":"y"}' } }]
        },
        { role: "tool", tool_call_id: "c3", content: "null" }
      ]
    })
  })

  it("a request without tools has no tools field", () => {
    expect(Object.keys(bodyOf({})).sort()).toEqual(["messages", "model", "stream", "stream_options"])
    expect(bodyOf({}, { includeUsage: false })).not.toHaveProperty("stream_options")
  })

  it("a strict server accepts it", () => {
    expect(Script.objection(messagesOf(bodyOf({ messages: history })))).toBeUndefined()
  })

  it("arguments that are no JSON object are sent as an empty one", () => {
    for (const argumentsText of ["", "null", "[]", '"x"', "42", "{q: x}", '{"q":"unterminated', "{}{}"]) {
      const messages: ReadonlyArray<ModelMessage> = [
        { role: "user", content: "x" },
        { role: "assistant", content: [{ type: "tool-call", toolCallId: "c", toolName: "lookup", argumentsText }] },
        { role: "tool", toolCallId: "c", toolName: "lookup", result: { error: "invalid" }, isError: true }
      ]
      const sent = messagesOf(bodyOf({ messages }))
      expect(Script.objection(sent)).toBeUndefined()
      expect(sent[1]?.tool_calls).toMatchObject([{ function: { arguments: "{}" } }])
      expect(sent[2]?.content).toBe('{"error":"invalid"}')
    }
  })

  it("names that the model made up fit the alphabet of servers", () => {
    for (const toolName of ["", "x".repeat(10_240), "a b\n", "名前", "__proto__"]) {
      const messages: ReadonlyArray<ModelMessage> = [
        { role: "user", content: "x" },
        { role: "assistant", content: [{ type: "tool-call", toolCallId: "c", toolName, argumentsText: "{}" }] },
        { role: "tool", toolCallId: "c", toolName, result: "no such tool", isError: true }
      ]
      expect(Script.objection(messagesOf(bodyOf({ messages })))).toBeUndefined()
    }
  })

  it("a turn that said nothing is left out", () => {
    const messages: ReadonlyArray<ModelMessage> = [
      { role: "user", content: "x" },
      { role: "assistant", content: [{ type: "reasoning", text: "hm" }] },
      { role: "assistant", content: [] },
      { role: "user", content: "y" }
    ]
    expect(messagesOf(bodyOf({ messages })).map((message) => message.role)).toEqual(["user", "user"])
  })

  it("a result that is no JSON value is still an answer", () => {
    const messages: ReadonlyArray<ModelMessage> = [
      { role: "tool", toolCallId: "c", toolName: "t", result: undefined, isError: false },
      { role: "tool", toolCallId: "d", toolName: "t", result: undefined, isError: true }
    ]
    expect(messagesOf(bodyOf({ messages })).map((message) => message.content)).toEqual(["null", '{"error":null}'])
  })

  const thoughts = (reasoningInput: OpenAiRequest.RequestOptions["reasoningInput"]) =>
    messagesOf(bodyOf({ messages: history }, { reasoningInput })).map((message) =>
      "reasoning_content" in message ? message.reasoning_content : ""
    )

  it("reasoning goes back only where the server wants it", () => {
    expect(thoughts(undefined).join("")).toBe("")
    expect(thoughts("never").join("")).toBe("")
    expect(thoughts("tool-loop").filter((text) => text !== "")).toEqual(["new thought"])
    expect(thoughts("tool-calls").filter((text) => text !== "")).toEqual(["old thought", "new thought"])
    expect(thoughts("always").filter((text) => text !== "")).toEqual(["old thought", "final thought", "new thought"])
  })

  it("reasoning is asked for in the server's own way", () => {
    const more = {
      extraBody: { temperature: 0, model: "other", stream: false },
      thinkingBody: { reasoning_effort: "high" },
      plainBody: { reasoning_effort: "none" }
    }
    expect(bodyOf({ enableThinking: true }, more)).toMatchObject({
      model: "m",
      stream: true,
      temperature: 0,
      reasoning_effort: "high"
    })
    expect(bodyOf({ enableThinking: false }, more)).toMatchObject({ reasoning_effort: "none" })
  })

  it("the least limit of the output is sent, by the name that the server knows", () => {
    expect(bodyOf({})).not.toHaveProperty("max_tokens")
    expect(bodyOf({ maxOutputTokens: 7 })).toMatchObject({ max_tokens: 7 })
    expect(bodyOf({}, { maxOutputTokens: 9 })).toMatchObject({ max_tokens: 9 })
    for (const [left, configured, extra, sent] of [
      [7, 9, 8, 7],
      [9, 7, 8, 7],
      [9, 8, 7, 7]
    ] as const) {
      for (const name of ["max_tokens", "max_completion_tokens"]) {
        const body = bodyOf({ maxOutputTokens: left }, { maxOutputTokens: configured, extraBody: { [name]: extra } })
        expect(Object.entries(body).filter(([key]) => key.startsWith("max_"))).toEqual([[name, sent]])
      }
    }
  })

  it("a draft is marked in the server's own way", () => {
    const messages: ReadonlyArray<ModelMessage> = [
      { role: "user", content: "x" },
      { role: "assistant", content: [{ type: "text", text: "The tide" }] }
    ]
    const draft = { message: { prefix: true }, body: { continue_final_message: true } }
    const body = bodyOf({ messages, continueDraft: true }, { draft })
    expect(body).toMatchObject({ continue_final_message: true })
    expect(messagesOf(body)).toEqual([
      { role: "user", content: "x" },
      { role: "assistant", content: "The tide", prefix: true }
    ])
    expect(messagesOf(bodyOf({ messages }, { draft }))[1]).not.toHaveProperty("prefix")
  })

  it("halves of surrogate pairs do not leave, and nothing else is touched", () => {
    const content = "a\ud83d b\ude00 😀 \\ud83d \\\\ud83d \u0000 \ud83d"
    const text = OpenAiRequest.stringify({ content, "\ud800key": 1 })
    expect(JSON.parse(text)).toEqual({
      content: "a\ufffd b\ufffd 😀 \\ud83d \\\\ud83d \u0000 \ufffd",
      "\ufffdkey": 1
    })
  })
})
