/** @jsxImportSource react */
import { Chat } from "@ai-sdk/react"
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from "ai"
import { renderToString } from "react-dom/server"
import { afterAll, beforeAll, expect, test, vi } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { eventually } from "../e2e/support/Waiting.js"
import * as World from "../e2e/support/World.js"

let world: World.World
beforeAll(async () => {
  world = await World.start({ users: { alice: "alice-token" } })
  vi.stubEnv("RUNLET_URL", world.url())
  vi.stubEnv("RUNLET_TOKEN", "alice-token")
})
afterAll(async () => {
  vi.unstubAllEnvs()
  await world.stop()
})

test("the route handler serves useChat: an approval, a reload, a stop", async () => {
  const { GET, POST } = await import("./chat-route.js")
  const { Page } = await import("./chat-page.js")
  const route: typeof fetch = (input, init) => {
    const request = new Request(new URL(String(input), "http://page.example"), init)
    return request.method === "GET" ? GET(request) : POST(request)
  }
  const open = (id: string) =>
    new Chat<UIMessage>({
      id,
      transport: new DefaultChatTransport({ api: "/api/chat", fetch: route }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses
    })
  const page = (chat: Chat<UIMessage>) => renderToString(<Page chat={chat} />)

  world.upstream.script("Write it down", [
    Script.calls({ id: "call_1", name: "save_note", args: '{"doc":"d","text":"milk"}' }),
    Script.answer("It is written.")
  ])
  const chat = open("groceries")
  await chat.sendMessage({ text: "Write it down" })
  expect(page(chat)).toContain("Do it")

  const reloaded = open("groceries")
  await reloaded.resumeStream()
  const asks = reloaded.lastMessage?.parts.find((part) => part.type === "tool-save_note")
  expect(asks).toMatchObject({ state: "approval-requested" })
  const id = asks !== undefined && "approval" in asks ? (asks.approval?.id ?? "") : ""
  await reloaded.addToolApprovalResponse({ id, approved: true })
  await eventually("the answer", () => (page(reloaded).includes("It is written.") ? true : undefined))
  await eventually("the end", () => (reloaded.status === "ready" ? true : undefined))

  world.upstream.script("Talk", [Script.reply([Script.text("bla"), Script.gate("never")])])
  const sent = reloaded.sendMessage({ text: "Talk" })
  await eventually("some text", () => (page(reloaded).includes("bla") ? true : undefined))
  expect((await route("/api/chat/groceries/cancel", { method: "POST" })).status).toBe(200)
  await sent
  expect(reloaded.status).toBe("ready")
})
