/** Conversations on the page: found, named, left and come back to, and what is asked again. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { eventually } from "../e2e/support/Waiting.js"
import * as Chat from "./support/Chat.js"

let chat: Chat.Chat
beforeAll(async () => {
  chat = await Chat.start({ models: { other: { provider: "demo" } } })
})
beforeEach(() => chat.renew({ permissions: ["clipboard-read", "clipboard-write"] }))
afterAll(() => chat.stop())

const end = [Script.finish("stop"), Script.usage(10, 20), Script.done]
const script = (message: string, ...replies: ReadonlyArray<Script.Reply>) =>
  chat.world.upstream.script(message, replies)
const names = ({ page }: Chat.Tab) => page.$$eval(".sidebar li .name", (all) => all.map((one) => one.textContent))
const asked = (message: string) =>
  chat.world.upstream.asked(message).map((request) =>
    Script.messagesOf(request)
      .filter(({ role }) => role === "user" || role === "assistant")
      .map(({ content }) => content)
  )

test("are searched, renamed and deleted, and stay so", async () => {
  script("Ships in the fog", Script.answer("They wait."))
  script("Trains in the snow", Script.answer("They are late."))
  const tab = await chat.tab()
  const { page, send, status } = tab
  await send("Ships in the fog")
  await status("completed")
  await page.click(".fresh")
  await send("Trains in the snow")
  await status("completed")
  await page.fill(".search input", "SNOW in")
  await page.waitForFunction(() => document.querySelectorAll(".sidebar li").length === 1)
  expect(await names(tab)).toEqual(["Trains in the snow"])
  await page.fill(".search input", "")
  await page.hover(".sidebar li:has-text('Ships')")
  await page.click("[aria-label='Rename “Ships in the fog”']")
  await page.fill(".renaming input", "Harbour")
  await page.keyboard.press("Enter")
  await page.waitForSelector(".sidebar li:has-text('Harbour')")
  await page.reload()
  await page.waitForSelector(".sidebar li:has-text('Harbour')")
  await page.click(".sidebar li a:has-text('Harbour')")
  await page.waitForSelector("h1:text('Harbour')")
  // Escape keeps the name.
  await page.hover(".sidebar li:has-text('Harbour')")
  await page.click("[aria-label='Rename “Harbour”']")
  await page.fill(".renaming input", "Something else")
  await page.keyboard.press("Escape")
  await page.waitForSelector(".sidebar li a:has-text('Harbour')")
  await page.click("[aria-label='Delete “Harbour”']")
  await page.click("dialog >> text=Cancel")
  await page.waitForSelector("dialog", { state: "detached" })
  await page.click("[aria-label='Delete “Harbour”']")
  await page.click("dialog .danger")
  await page.waitForSelector(".welcome")
  expect(await names(tab)).toEqual(["Trains in the snow"])
  await page.reload()
  await page.waitForSelector(".sidebar li")
  expect(await names(tab)).toEqual(["Trains in the snow"])
})

test("a long one shows what goes on in it before all that was said long ago has come", async () => {
  const { client, upstream } = chat.world
  const first = await client.start({ message: "Long ago" })
  const { conversationId } = first
  await client.settled(first.runId)
  for (const n of [1, 2, 3, 4, 5]) {
    const { runId } = await client.start({ message: `Later ${n}`, conversationId })
    await client.settled(runId)
  }
  script(
    "Just now",
    Script.reply([Script.text("It goes on."), Script.gate("just now"), Script.text(" And on."), ...end])
  )
  await client.start({ message: "Just now", conversationId })
  const held: Array<() => void> = []
  await chat.context().route(`**/runs/${first.runId}`, async (route) => {
    await new Promise<void>((go) => held.push(go))
    await route.continue()
  })
  const { page, status, until } = await chat.tab(`#${conversationId}`)
  await until("It goes on.")
  await status("streaming")
  await upstream.release("just now")
  await until("It goes on. And on.")
  await status("completed")
  expect(await page.$(".stop")).toBeNull()
  // Nothing of this waited for the answer about what was long ago.
  expect(held.length).toBeGreaterThan(0)
  for (const go of held) go()
  await page.waitForSelector(".turn:first-of-type .facts")
})

test("one whose tab was closed is found again, in the middle of its answer", async () => {
  script(
    "Closed tab",
    Script.reply([Script.text("Going on "), Script.gate("closed tab"), Script.text("to the end."), ...end])
  )
  const first = await chat.tab()
  await first.send("Closed tab")
  await first.until("Going on")
  await first.page.close()
  const { page, status, text, until } = await chat.tab()
  await page.click(".welcome .unfinished a:has-text('Closed tab')")
  await until("Going on")
  await chat.world.upstream.release("closed tab")
  await status("completed")
  expect(await text()).toBe("Going on to the end.")
})

test("what ends in one that is not on display is said, and leads there", async () => {
  script("Elsewhere", Script.reply([Script.text("Done "), Script.gate("elsewhere"), Script.text("there."), ...end]))
  const tab = await chat.tab()
  const { page, send, until } = tab
  await send("Elsewhere")
  await until("Done")
  await page.click(".fresh")
  await page.waitForSelector(".sidebar li:has-text('Elsewhere') .mark.busy")
  await chat.world.upstream.release("elsewhere")
  await page.click(".notices a:has-text('“Elsewhere” has been answered.')")
  await until("Done there.")
  expect(await page.$$(".notices li")).toEqual([])
  expect(await page.$$(".mark.busy")).toEqual([])
})

test("keep to themselves while the reader goes from one to the other", async () => {
  script("First of two", Script.reply([Script.text("one "), Script.gate("first of two"), Script.text("1"), ...end]))
  script(
    "Second of two",
    Script.calls({ id: "two", name: "save_note", args: JSON.stringify({ doc: "two", text: "2" }) }),
    Script.answer("two")
  )
  const { page, send, status, text, until } = await chat.tab()
  await send("First of two")
  await until("one")
  const first = new URL(page.url()).hash
  await page.click(".fresh")
  await send("Second of two")
  await page.waitForSelector(".approval")
  const second = new URL(page.url()).hash
  for (let i = 0; i < 3; i++) {
    for (const hash of [first, second]) {
      await page.evaluate((to) => {
        location.hash = to
      }, hash)
    }
  }
  await page.waitForSelector(".approval")
  expect(await page.textContent(".bubble")).toBe("Second of two")
  await page.goBack()
  await until("one")
  expect(await page.$$(".approval")).toEqual([])
  await page.keyboard.press("Escape")
  await status("cancelled")
  await page.goForward()
  await page.waitForSelector(".approval")
  await page.click(".approval >> text=Approve")
  await status("completed")
  expect(await text()).toBe("two")
})

test("a question that is asked again in other words begins another one, with what was said before it", async () => {
  script("What is a mast?", Script.answer("A pole."))
  script("And a sale?", Script.answer("A bargain."))
  script("And a sail?", Script.answer("A cloth."))
  const { page, send, status, text, turns } = await chat.tab()
  await send("What is a mast?")
  await status("completed")
  await send("And a sale?")
  await turns(2)
  await status("completed")
  const before = page.url()
  await page.hover(".turn:last-of-type .bubble")
  await page.click(".turn:last-of-type [aria-label='Edit and ask again']")
  await page.fill(".rewording textarea", "And a sail?")
  await page.keyboard.press("Enter")
  await page.waitForSelector(".bubble:text('And a sail?')")
  await status("completed")
  expect(page.url()).not.toBe(before)
  expect(await page.$$eval(".bubble", (all) => all.map((one) => one.textContent))).toEqual([
    "What is a mast?",
    "And a sail?"
  ])
  expect(await text()).toBe("A cloth.")
  expect(asked("And a sail?")).toEqual([["What is a mast?", "A pole.", "And a sail?"]])
  await page.goBack()
  await page.waitForSelector(".bubble:text('And a sale?')")
})

test("another answer stands beside the first, from the model of one's choice, and counts from then on", async () => {
  script("Which?", Script.answer("The first."), Script.answer("The second."))
  script("And then?", Script.answer("Then that."))
  const { page, send, status, text, turns } = await chat.tab()
  await send("Which?")
  await status("completed")
  await page.click("[aria-label='Answer again']")
  await page.waitForSelector(".versions:has-text('2 of 2')")
  await page.waitForSelector(".text:has-text('The second.')")
  await status("completed")
  await page.click("[aria-label='Earlier version']")
  await page.waitForSelector(".text:has-text('The first.')")
  await page.click("text=Side by side")
  expect(await page.$$eval(".compared article .text", (all) => all.map((one) => one.textContent))).toEqual([
    "The first.",
    "The second."
  ])
  await page.reload()
  await page.waitForSelector(".versions:has-text('2 of 2')")
  expect(await text()).toBe("The second.")
  await send("And then?")
  await turns(2)
  await status("completed")
  expect(asked("And then?")).toEqual([["Which?", "The second.", "And then?"]])
  await page.selectOption("select.model", "other")
  await page.click(".turn:last-of-type [aria-label='Answer again']")
  await page.waitForSelector(".turn:last-of-type .facts:has-text('other')")
  await page.selectOption("select.model", "scripted")
})

test("the manner of asking reaches the server, and copies are whole", async () => {
  script("Manner", Script.answer("# Title\n\nSome **bold** text."))
  const { page, send, status } = await chat.tab()
  await page.click("text=Plan only")
  await page.click("text=Think first")
  await send("Manner")
  await status("completed")
  expect(await page.textContent(".facts")).toContain("plan only")
  const request = await chat.world.upstream.received("Manner")
  const tools: unknown =
    typeof request.body === "object" && request.body !== null ? Reflect.get(request.body, "tools") : []
  expect(JSON.stringify(tools)).toContain("lookup")
  expect(JSON.stringify(tools)).not.toContain("save_note")
  await page.click(".foot [aria-label=Copy]")
  await eventually("the copy", async () =>
    (await page.evaluate(() => navigator.clipboard.readText())) === "# Title\n\nSome **bold** text." ? true : undefined
  )
  await page.reload()
  expect(await page.getAttribute("button:has-text('Think first')", "aria-pressed")).toBe("true")
})
