/** Whatever a run is doing when the page is loaded, all of it is there at once, and goes on from there. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import * as ToolServer from "../e2e/support/ToolServer.js"
import { eventually } from "../e2e/support/Waiting.js"
import * as Chat from "./support/Chat.js"

let chat: Chat.Chat
beforeAll(async () => {
  chat = await Chat.start({ users: { alice: "token-of-alice" }, limits: { approvalTtlMs: 600_000 } })
})
beforeEach(() => chat.renew())
afterAll(() => chat.stop())

const end = [Script.finish("stop"), Script.usage(10, 20), Script.done]
const script = (message: string, ...replies: ReadonlyArray<Script.Reply>) =>
  chat.world.upstream.script(message, replies)
const signIn = async (tab: Chat.Tab) => {
  await tab.page.fill("#token", "token-of-alice")
  await tab.page.keyboard.press("Enter")
  await tab.page.waitForSelector("#message")
}
const signedIn = async () => {
  const tab = await chat.tab()
  await signIn(tab)
  return tab
}

test("thoughts, half a text, a running tool, an approval, an end: each is there after a reload, without waiting", async () => {
  let answer = () => {}
  chat.world.tools.on("lookup", "slow word", ({ input, tool }, response) => {
    answer = () => ToolServer.send(response, { tool, found: input })
  })
  script(
    "All states",
    Script.reply([
      Script.reasoning("Let me think about it"),
      Script.gate("thought"),
      Script.text("Half of it."),
      Script.gate("texted"),
      Script.toolCall({ index: 0, id: "look", name: "lookup", args: '{"q":"slow word"}' }),
      Script.finish("tool_calls"),
      Script.done
    ]),
    Script.calls({ id: "save", name: "save_note", args: JSON.stringify({ doc: "states", text: "noted" }) }),
    Script.reply([Script.text("The rest of it."), Script.gate("last"), ...end])
  )
  const { page, send, status, until } = await signedIn()
  const reloaded = async (wanted: string, ...parts: ReadonlyArray<string>) => {
    await page.reload()
    await status(wanted)
    for (const part of parts) await page.waitForSelector(part)
  }
  await send("All states")
  const thought = ".reasoning[open] .thought:text('Let me think about it')"
  await page.waitForSelector(thought)
  await reloaded("streaming", thought, ".reasoning summary:has-text('Thinking…')")
  await chat.world.upstream.release("thought")
  await until("Half of it.")
  await reloaded("streaming", ".reasoning summary:has-text('Thought for')", ".text:has-text('Half of it.')")
  await chat.world.upstream.release("texted")
  const running = ".tool[data-state=running]:has-text('Looking up')"
  await page.waitForSelector(running)
  await chat.world.tools.received("lookup", "slow word")
  await reloaded("running", ".reasoning", ".text:has-text('Half of it.')", running)
  answer()
  await page.waitForSelector(".approval:has-text('noted')")
  await reloaded(
    "waiting_approval",
    ".text:has-text('Half of it.')",
    ".tool[data-state=done]",
    ".approval:has-text('noted')"
  )
  await page.waitForSelector(".approval .expiry:has-text('left')")
  await page.click(".approval >> text=Approve")
  await until("The rest of it.")
  await reloaded("streaming", ".tool[data-state=applied]", ".text:has-text('The rest of it.')")
  await chat.world.upstream.release("last")
  await status("completed")
  await reloaded(
    "completed",
    ".reasoning:not([open])",
    ".tool[data-state=applied]",
    ".text:has-text('The rest of it.')"
  )
  expect(await page.textContent(".facts")).toMatch(/tokens.*first word after.*in all/)
})

test("a run that failed is there after a reload, and goes on when a person says so", async () => {
  script(
    "Breaks off",
    Script.reply([Script.text("half"), Script.wait(30)], { framing: "close" }),
    Script.answer("whole")
  )
  const { page, send, status, text, until } = await signedIn()
  await send("Breaks off")
  await status("failed")
  await page.reload()
  await status("failed")
  expect(await text()).toBe("half")
  expect(await page.textContent(".ending")).toContain("The answer broke off.")
  await page.click("text=Continue")
  await until("whole")
  await status("completed")
  expect(await page.$(".ending")).toBeNull()
})

test("a session that ends in the middle asks to sign in, in one tab for all, and nothing is lost", async () => {
  script(
    "Signed out",
    Script.reply([Script.text("Before. "), Script.gate("signed out"), Script.text("After."), ...end])
  )
  const one = await signedIn()
  await one.send("Signed out")
  await one.until("Before.")
  const two = await chat.tab(new URL(one.page.url()).hash)
  await two.until("Before.")
  await chat.context().clearCookies()
  chat.proxy.cut()
  for (const tab of [one, two]) await tab.page.waitForSelector("#token")
  const { length } = chat.proxy.requests
  await chat.world.upstream.release("signed out")
  await one.page.fill("#token", "not-a-token")
  await one.page.keyboard.press("Enter")
  await one.page.waitForSelector("text=not valid here")
  // A wrong token and the look at who is there are all that was asked meanwhile.
  expect(chat.proxy.requests.slice(length).filter(({ url }) => url !== "/session")).toEqual([])
  await signIn(one)
  for (const tab of [one, two]) {
    await tab.until("After.")
    await tab.status("completed")
    expect(await tab.text()).toBe("Before. After.")
  }
})

test("whoever signs out sees nothing any more, until signing in again", async () => {
  script("Private", Script.answer("Mine."))
  const tab = await signedIn()
  await tab.send("Private")
  await tab.status("completed")
  await tab.page.click("text=Sign out")
  await tab.page.waitForSelector("#token")
  expect(await tab.page.$$(".sidebar li")).toEqual([])
  expect(await tab.page.isVisible("text=Sign out")).toBe(false)
  await signIn(tab)
  await tab.page.waitForSelector(".sidebar li:has-text('Private')")
})

test("the next message goes out at once after a reload, and there is one connection", async () => {
  script("Long one", Script.reply([Script.text("A long one"), Script.gate("reload and ask"), ...end]))
  script("Next one", Script.answer("B"))
  const { page, send, turns, until } = await signedIn()
  await send("Long one")
  await until("A long one")
  const from = chat.proxy.requests.length
  await page.reload({ waitUntil: "commit" })
  await page.waitForSelector("#message")
  await send("Next one")
  await turns(2)
  await eventually("the next run", () =>
    chat.proxy.requests.slice(from).some(({ method, url }) => method === "POST" && url === "/chat") ? true : undefined
  )
  await page.waitForSelector(".turn:last-of-type .expected")
  const connections = () => chat.proxy.requests.slice(from).filter(({ url }) => url.includes("/events"))
  await eventually("a connection", () => (connections().length > 0 ? true : undefined))
  expect(connections()).toHaveLength(1)
  await chat.world.upstream.release("reload and ask")
  await until("B")
})
