import { lastAssistantMessageIsCompleteWithApprovalResponses } from "ai"
import { afterAll, beforeAll, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { Chat, check, type Message, transport } from "../adapters/support/AiSdkClient.js"
import { cutting, turn } from "./support/Vendors.js"
import { eventually } from "./support/Waiting.js"
import * as World from "./support/World.js"

let world: World.World
let shared: World.World
beforeAll(async () => {
  ;[world, shared] = await Promise.all([
    World.start(),
    World.start({ users: { alice: "alice-token", bob: "bob-token" } })
  ])
})
afterAll(() => Promise.all([world.stop(), shared.stop()]))

/** The server has another address after each restart, and a page has not. */
const here: typeof fetch = (input, init) => {
  const url = String(input).replace("http://runlet", world.url()).replace("http://shared", shared.url())
  return fetch(url, init)
}

/** Cuts the first response when this much of it has come. */
const cuttingFirst = (wanted: (text: string) => boolean): typeof fetch => {
  let cut = false
  return async (input, init) => {
    const response = await here(input, init)
    if (cut || response.body === null) return response
    cut = true
    return cutting(response, wanted)
  }
}

let chats = 0
const open = (options: { readonly fetch?: typeof fetch; readonly id?: string; readonly user?: string } = {}) =>
  new Chat({
    id: options.id ?? `chat ${++chats}/é`,
    transport:
      options.user === undefined
        ? transport("http://runlet", { fetch: options.fetch ?? here })
        : transport("http://shared", { fetch: here, headers: { authorization: `Bearer ${options.user}-token` } }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses
  })

const client = (user?: string) => (user === undefined ? world.client : shared.as(`${user}-token`))
const textOf = (message: Message | undefined) =>
  message?.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("")
const toolsOf = (message: Message | undefined) =>
  message?.parts.flatMap((part) => ("toolCallId" in part ? [part] : [])) ?? []
const runOf = (message: Message | undefined) => message?.metadata?.runId ?? ""

/** What the client shows is what the run says. */
const same = async (chat: Chat, user?: string) => {
  const message = chat.lastMessage
  const run = await client(user).snapshot(runOf(message))
  expect(message?.id).toBe(run.assistantMessageId)
  expect(textOf(message)).toBe(run.text)
  expect(toolsOf(message).map(({ toolCallId }) => toolCallId)).toEqual(
    run.toolCalls.map(({ toolCallId }) => toolCallId)
  )
  expect(message?.metadata).toMatchObject({ status: run.status, seq: run.lastSeq, usage: run.usage })
  return run
}

const history = async (chat: Chat, user?: string) =>
  (await client(user).call("GET", `/adapters/ai-sdk/chat/${encodeURIComponent(chat.id)}`)).body.messages

test("a message is answered, with reasoning and a tool, and the chat goes on in its conversation", async () => {
  const chat = open()
  world.upstream.script("Look it up", [
    turn(
      "tool_calls",
      Script.reasoning("Let me see."),
      Script.toolCall({ index: 0, id: "call_1", name: "lookup", args: '{"q":"x"}' })
    ),
    turn("stop", Script.reasoning("Now I know."), Script.text("It is "), Script.text("x."))
  ])
  await chat.sendMessage({ text: "Look it up" })
  expect([chat.status, chat.error]).toEqual(["ready", undefined])
  const run = await same(chat)
  expect(run.status).toBe("completed")
  expect(chat.lastMessage?.parts.map(({ type }) => type)).toEqual([
    "step-start",
    "reasoning",
    "tool-lookup",
    "step-start",
    "reasoning",
    "text"
  ])
  expect(toolsOf(chat.lastMessage)[0]).toMatchObject({
    state: "output-available",
    input: { q: "x" },
    title: "Looking up"
  })

  await chat.sendMessage({ text: "And again?" })
  expect((await same(chat)).conversationId).toBe(run.conversationId)
  expect(world.upstream.asked("And again?")[0]?.text).toContain("Look it up")
  const known = await history(chat)
  expect(known.map(({ role }: Message) => role)).toEqual(["user", "assistant", "user", "assistant"])
  expect([known[1], known[3]]).toEqual(JSON.parse(JSON.stringify([chat.messages[1], chat.messages[3]])))
  await world.check(run)
}, 60_000)

test("an answer that is cut goes on where the client asks for it, also when it ended meanwhile", async () => {
  for (const ended of [false, true]) {
    const message = `Cut me, ${ended}`
    world.upstream.script(message, [
      turn(
        "stop",
        Script.reasoning("thinking"),
        Script.text("One, "),
        Script.gate(`go ${message}`),
        Script.text("two.")
      )
    ])
    const chat = open({ fetch: cuttingFirst((text) => text.includes("One, ")) })
    await chat.sendMessage({ text: message })
    expect(chat.status).toBe("error")
    expect("One, ").toContain(textOf(chat.lastMessage))
    const resumed = ended ? Promise.resolve() : chat.resumeStream()
    if (!ended) await eventually("the replay", () => (chat.status === "streaming" ? true : undefined))
    await world.upstream.release(`go ${message}`)
    if (ended) {
      await client().settled(runOf(chat.lastMessage))
      await chat.resumeStream()
    }
    await resumed
    expect([chat.status, textOf(chat.lastMessage), chat.messages.length]).toEqual(["ready", "One, two.", 2])
    await same(chat)
  }
}, 60_000)

test("the server dies in the middle of an answer: it is continued, and shown without a repetition", async () => {
  world.upstream.script("Survive", [
    Script.calls({ id: "call_1", name: "lookup", args: '{"q":"x"}' }),
    turn("stop", Script.text("Half a sen"), Script.gate("never")),
    turn("stop", Script.text("A whole "), Script.gate("recovered"), Script.text("sentence."))
  ])
  const chat = open()
  const sent = chat.sendMessage({ text: "Survive" })
  await eventually("the first half", () => (textOf(chat.lastMessage) === "Half a sen" ? true : undefined))
  await world.restart()
  await sent
  expect(chat.status).toBe("error")
  const resumed = chat.resumeStream()
  await eventually("the second half", () => (textOf(chat.lastMessage) === "A whole " ? true : undefined))
  await world.upstream.release("recovered")
  await resumed
  expect([chat.status, textOf(chat.lastMessage)]).toEqual(["ready", "A whole sentence."])
  const run = await same(chat)
  expect([run.status, run.attempt]).toEqual(["completed", 2])
  await world.check(run)
}, 60_000)

test("a tool that asks is approved or refused in the message, which goes on", async () => {
  for (const approved of [true, false]) {
    const message = `Save, ${approved}`
    world.upstream.script(message, [
      Script.calls({ id: "call_1", name: "save_note", args: '{"doc":"d","text":"t"}' }),
      Script.answer("As you say.")
    ])
    const chat = open()
    await chat.sendMessage({ text: message })
    const [part] = toolsOf(chat.lastMessage)
    expect([chat.status, part?.state]).toEqual(["ready", "approval-requested"])
    expect(part?.approval?.descriptor).toMatchObject({ reason: "write", input: { doc: "d", text: "t" } })
    await chat.addToolApprovalResponse({ id: part?.approval?.id ?? "", approved })
    await eventually("the rest of the message", () =>
      textOf(chat.lastMessage) === "As you say." && chat.status === "ready" ? true : undefined
    )
    expect(chat.messages).toHaveLength(2)
    const run = await same(chat)
    expect(toolsOf(chat.lastMessage)[0]?.state).toBe(approved ? "output-available" : "output-denied")
    expect(run.toolCalls[0]?.state).toBe(approved ? "applied" : "rejected")
    expect(world.tools.of(run.runId, "commit")).toHaveLength(approved ? 1 : 0)
    await world.check(run)
  }
}, 60_000)

test("an approval survives a restart and a reload", async () => {
  world.upstream.script("Save later", [
    Script.calls({ id: "call_1", name: "save_note", args: '{"doc":"d","text":"later"}' }),
    Script.answer("Saved.")
  ])
  const before = open()
  await before.sendMessage({ text: "Save later" })
  await world.restart()
  const chat = open({ id: before.id })
  chat.messages = await history(before)
  await chat.resumeStream()
  expect(chat.messages).toHaveLength(2)
  const [part] = toolsOf(chat.lastMessage)
  await chat.addToolApprovalResponse({ id: part?.approval?.id ?? "", approved: true })
  await eventually("the rest of the message", () => (textOf(chat.lastMessage) === "Saved." ? true : undefined))
  await eventually("the end", () => (chat.status === "ready" ? true : undefined))
  await same(chat)
}, 60_000)

test("version 7 is told what its schema knows: a decision by somebody else is an answer", async () => {
  world.upstream.script("Save for seven", [
    Script.calls({ id: "call_1", name: "save_note", args: '{"doc":"d","text":"seven"}' }),
    Script.answer("Saved.")
  ])
  const chat = open()
  await chat.sendMessage({ text: "Save for seven" })
  const { approvalId } = await client().waiting(runOf(chat.lastMessage))
  await client().decide(runOf(chat.lastMessage), approvalId, "approve")
  await client().settled(runOf(chat.lastMessage))
  const answer = await client().call("GET", `/adapters/ai-sdk/chat/${encodeURIComponent(chat.id)}/stream?version=7`)
  expect(answer.headers.get("x-vercel-ai-ui-message-stream")).toBe("v1")
  const lines = answer.text.split("\n").filter((line) => line.startsWith("data: "))
  expect(lines.pop()).toBe("data: [DONE]")
  const chunks = lines.map((line) => JSON.parse(line.slice("data: ".length)))
  for (const chunk of chunks) await check(chunk, 7)
  expect(chunks).toContainEqual({ type: "tool-approval-response", approvalId, approved: true })
}, 60_000)

test("the last answer is regenerated, and what was answered is not edited", async () => {
  world.upstream.script("Roll", [Script.answer("One."), Script.answer("Two.")])
  const chat = open()
  await chat.sendMessage({ text: "Roll" })
  const first = runOf(chat.lastMessage)
  await chat.regenerate()
  expect([textOf(chat.lastMessage), chat.messages.length]).toEqual(["Two.", 2])
  expect((await same(chat)).regeneratedFrom).toBe(first)
  const question = chat.messages[0]
  await chat.sendMessage({ text: "Roll differently", messageId: question?.id ?? "" })
  expect(chat.status).toBe("error")
  expect(JSON.parse(chat.error?.message ?? "")).toMatchObject({ _tag: "Unprocessable", path: "messageId" })
}, 60_000)

test("stopping is a cancel: the text stays and nothing is left to watch", async () => {
  world.upstream.script("Go on and on", [turn("stop", Script.text("on"), Script.gate("never"))])
  const chat = open()
  const sent = chat.sendMessage({ text: "Go on and on" })
  await eventually("some text", () => (textOf(chat.lastMessage) === "on" ? true : undefined))
  const path = `/adapters/ai-sdk/chat/${encodeURIComponent(chat.id)}/cancel`
  expect((await client().call("POST", path)).body.status).toBe("cancelled")
  await sent
  expect([chat.status, textOf(chat.lastMessage)]).toEqual(["ready", "on"])
  expect((await same(chat)).status).toBe("cancelled")
  await world.upstream.closed("Go on and on")
}, 60_000)

test("a run that fails is an error of the chat", async () => {
  world.upstream.script("Fail", [Script.body(401, "application/json", "{}")])
  const chat = open()
  await chat.sendMessage({ text: "Fail" })
  expect(chat.status).toBe("error")
  const message = chat.lastMessage
  const run = await client().snapshot(runOf(message))
  expect(run.status).toBe("failed")
  expect(chat.error?.message).toBe(run.error?.message)
  expect(message?.metadata?.error).toEqual({ code: run.error?.code, recoverable: run.recoverable })
}, 60_000)

test("a chat that has not begun has nothing to watch and no messages; bad requests are named", async () => {
  const chat = open()
  await chat.resumeStream()
  expect([chat.status, chat.error]).toEqual(["ready", undefined])
  expect(await history(chat)).toEqual([])
  const post = (body: unknown, query = "") => client().call("POST", `/adapters/ai-sdk/chat${query}`, body)
  const user = { id: "m", role: "user", parts: [{ type: "text", text: "Hello" }] }
  const bad: ReadonlyArray<readonly [status: number, path: string, body: unknown, query?: string]> = [
    [400, "id", { messages: [user] }],
    [400, "messages", { id: "c" }],
    [400, "messages[0].role", { id: "c", messages: [{ ...user, role: "system" }] }],
    [400, "messages[0]", { id: "c", messages: [{ ...user, parts: [] }] }],
    [400, "version", { id: "c", messages: [user] }, "?version=5"],
    [422, "messages[0].parts", { id: "c", messages: [{ ...user, parts: [{ type: "file", url: "data:," }] }] }],
    [422, "modelId", { id: "c", messages: [user], modelId: "none" }]
  ]
  for (const [status, path, body, query] of bad) {
    const answer = await post(body, query)
    expect([answer.status, answer.body.path]).toEqual([status, path])
  }
}, 60_000)

test("two users' chats of one name are two chats, and a foreign conversation is none", async () => {
  shared.upstream.script("Mine", [Script.answer("Yours alone.")])
  const mine = open({ id: "the same name", user: "alice" })
  await mine.sendMessage({ text: "Mine" })
  const theirs = open({ id: "the same name", user: "bob" })
  expect(await history(theirs, "bob")).toEqual([])
  await theirs.resumeStream()
  expect([theirs.status, theirs.messages]).toEqual(["ready", []])

  const { conversationId } = await same(mine, "alice")
  const again = open({ id: conversationId, user: "alice" })
  expect(await history(again, "alice")).toHaveLength(2)
  const missing = "conv_00000000-0000-7000-8000-000000000000"
  const errors: Array<string | undefined> = []
  for (const id of [conversationId, missing]) {
    const foreign = open({ id, user: "bob" })
    expect(await history(foreign, "bob")).toEqual([])
    await foreign.sendMessage({ text: "Mine" })
    errors.push(foreign.error?.message)
  }
  expect(JSON.parse(errors[0] ?? "")._tag).toBe("NotFound")
  expect(errors[0]).toBe(errors[1])
}, 60_000)
