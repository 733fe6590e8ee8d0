/** The page in a real browser, against a server of its own with the demo model. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Browser, BrowserContext, Page } from "playwright-core"
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest"
import * as Chromium from "../client/support/Chromium.js"
import * as Proxy from "../client/support/Proxy.js"
import * as Server from "../e2e/support/Server.js"

let directory: string
let server: Server.Server
let proxy: Proxy.Proxy
let browser: Browser
let context: BrowserContext
let page: Page
let mistakes: Array<string> = []

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "runlet-page-"))
  const config = join(directory, "config.json")
  writeFileSync(config, JSON.stringify({ models: { demo: { provider: "demo" } }, defaultModel: "demo" }))
  server = await Server.start(config, join(directory, "runlet.db"))
  proxy = await Proxy.start(server.url)
  browser = await Chromium.launch()
})
beforeEach(async () => {
  mistakes = []
  context = await browser.newContext({ viewport: { width: 900, height: 600 } })
  page = await context.newPage()
  page.on("pageerror", (error) => mistakes.push(error.message))
  await page.goto(proxy.url)
})
afterEach(async () => {
  await context.close()
  expect(mistakes).toEqual([])
})
afterAll(async () => {
  await browser.close()
  await proxy.stop()
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
})

const send = async (text: string) => {
  await page.fill("#message", text)
  await page.keyboard.press("Enter")
}
const sent = () => page.waitForFunction(() => document.querySelector<HTMLTextAreaElement>("#message")?.value === "")
const status = (wanted: string) => page.waitForSelector(`.status[data-status="${wanted}"]`, { state: "attached" })
const count = (wanted: number) =>
  page.waitForFunction((many) => document.querySelectorAll(".turn").length === many, wanted)
const turns = () =>
  page.$$eval(".turn", (elements) =>
    elements.map((element) => ({
      question: element.querySelector(".bubble")?.textContent ?? "",
      answer: [...element.querySelectorAll(".answer > .text")].map((_) => _.textContent ?? "").join(""),
      note: element.querySelector(".ending, .expected")?.textContent ?? ""
    }))
  )
const words = (text: string) => text.trim().split(/\s+/).length

test("a message sent while an answer runs waits for it, and both are complete, also after a reload", async () => {
  await send("/long 120")
  await status("streaming")
  await send("/long 20")
  await sent()
  await count(2)
  await page.waitForSelector(".turn:nth-of-type(2) .expected:has-text('Next in line')")
  expect((await turns())[1]).toMatchObject({ question: "/long 20", answer: "" })
  await page.waitForSelector(".turn:nth-of-type(2) .text")
  await status("completed")
  const both = await turns()
  expect(both.map(({ question }) => question)).toEqual(["/long 120", "/long 20"])
  const [first, second] = both
  expect(words(first?.answer ?? "")).toBeGreaterThanOrEqual(120)
  expect(words(second?.answer ?? "")).toBeGreaterThanOrEqual(20)
  await page.reload()
  await status("completed")
  await count(2)
  expect(await turns()).toEqual(both)
})

test("what waits in the queue can be withdrawn", async () => {
  await send("/slow /long 200")
  await status("streaming")
  await send("/long 30")
  await send("/long 40")
  await count(3)
  await page.waitForSelector(".turn:nth-of-type(3) .expected:has-text('1 answer before this one')")
  await page.click(".turn:nth-of-type(2) >> text=Withdraw")
  await page.waitForSelector(".turn:nth-of-type(2) .ending:has-text('Stopped.')")
  await page.waitForSelector(".turn:nth-of-type(3) .expected:has-text('Next in line')")
  await page.keyboard.press("Escape")
  await page.waitForSelector(".turn:nth-of-type(1) .ending:has-text('Stopped.')")
  await page.waitForSelector(".turn:nth-of-type(3) .text")
  await status("completed")
})

test("an answer that is stopped stays as it was, and a new conversation begins empty", async () => {
  await send("/slow /long 400")
  await status("streaming")
  await page.reload()
  await status("streaming")
  await page.click(".stop")
  await status("cancelled")
  expect((await turns())[0]?.note).toBe("Stopped.")
  await page.click(".fresh")
  expect(await turns()).toEqual([])
  await status("idle")
  expect(await page.isVisible(".stop")).toBe(false)
  expect(await page.isVisible(".welcome")).toBe(true)
  await page.click(".sidebar li a")
  await status("cancelled")
  expect((await turns())[0]?.question).toBe("/slow /long 400")
})

test("a change is shown, edited and approved", async () => {
  await send("/write Shopping list: milk")
  const approval = await page.waitForSelector(".approval")
  expect(await approval.textContent()).toContain("createShopping list")
  expect(await page.textContent(".approval .added ins")).toBe("milk")
  await page.click(".approval >> text=Edit…")
  await page.fill(".approval textarea[name=text]", "# Bread")
  await page.click("text=Show me the new preview")
  await page.waitForSelector(".approval .added ins:text('# Bread')")
  await page.click(".approval >> text=Preview")
  expect(await page.textContent(".approval .after h3")).toBe("Bread")
  await page.click("text=Approve")
  await status("completed")
  expect(await page.getAttribute(".tool", "data-state")).toBe("applied")
  expect(await page.$$(".approval")).toEqual([])
  await page.click("text=1 document")
  expect(await page.textContent("dialog.documents article")).toContain("Bread")
  await page.click("text=Ask about it")
  expect(await page.textContent(".chip")).toBe("Shopping list")
})

test("a change is rejected, and the model is told why", async () => {
  await send("/write Shopping list: milk")
  await page.click(".approval >> text=Reject")
  await page.fill(".approval input", "I have milk")
  await page.keyboard.press("Enter")
  await status("completed")
  expect(await page.getAttribute(".tool", "data-state")).toBe("rejected")
  await page.click(".tool summary")
  expect(await page.textContent(".tool .inside")).toContain("I have milk")
})

test("a tool that failed says so and why", async () => {
  await send("/fail-tool")
  await status("completed")
  expect(await page.getAttribute(".tool", "data-state")).toBe("failed")
  expect(await page.textContent(".tool .wrong")).toContain("no document")
})

test("an answer that broke off is continued where it stopped", async () => {
  await send("/cut How do approvals work?")
  await status("failed")
  expect(await page.textContent(".ending")).toContain("The answer broke off.")
  const before = (await turns())[0]?.answer ?? ""
  expect(before).not.toBe("")
  await page.click(".ending >> text=Continue")
  await status("completed")
  const [turn] = await turns()
  expect(turn?.note).toBe("")
  expect(turn?.answer.length).toBeGreaterThan(before.length)
  expect(await page.textContent(".facts")).toContain("attempt 2")
})

test("the end stays in view until the reader scrolls away from it", async () => {
  await send("/long 350")
  const gap = () => page.evaluate(() => document.documentElement.scrollHeight - innerHeight - scrollY)
  await page.waitForFunction(() => document.documentElement.scrollHeight > innerHeight + 300)
  expect(await gap()).toBeLessThan(60)
  await page.mouse.move(600, 200)
  await page.mouse.wheel(0, -200)
  await page.waitForFunction(() => document.documentElement.scrollHeight - innerHeight - scrollY > 150)
  const place = await page.evaluate(() => scrollY)
  await page.waitForSelector(".to-end")
  await status("completed")
  expect(await page.evaluate(() => scrollY)).toBe(place)
})

test("a server that is away is said to be, what was written is kept, and one run comes of it", async () => {
  await send("/slow /long 60")
  await status("streaming")
  proxy.refuse(true)
  proxy.cut()
  await status("cut")
  await send("/long 5")
  await page.waitForSelector(".problem:has-text('can not be reached')")
  expect(await page.inputValue("#message")).toBe("/long 5")
  proxy.refuse(false)
  await sent()
  await count(2)
  await page.waitForSelector(".turn:nth-of-type(2) .text")
  await status("completed")
  expect(await page.isVisible(".problem")).toBe(false)
})
