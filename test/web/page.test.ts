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
  await page.click("#send")
}
const sent = () => page.waitForFunction(() => document.querySelector<HTMLTextAreaElement>("#message")?.value === "")
const status = (wanted: string) => page.waitForSelector(`#status[data-status="${wanted}"]`)
const turns = () =>
  page.$$eval(".turn", (elements) =>
    elements.map((element) => ({
      question: element.querySelector(".user")?.textContent ?? "",
      answer: [...element.querySelectorAll(".parts > .message")].map((_) => _.textContent ?? "").join(""),
      note: element.querySelector(".note")?.textContent ?? ""
    }))
  )
const words = (text: string) => text.trim().split(/\s+/).length

test("a message sent while an answer runs waits for it, and both are complete, also after a reload", async () => {
  await send("/long 120")
  await status("streaming")
  await send("/long 20")
  await sent()
  await page.waitForFunction(() => document.querySelectorAll(".turn").length === 2)
  expect((await turns())[1]).toEqual({ question: "/long 20", answer: "", note: "Waiting for the answer before." })
  await page.waitForFunction(() => document.querySelectorAll(".turn")[1]?.querySelector(".message:not(.user)") !== null)
  await status("completed")
  const both = await turns()
  expect(both.map(({ question }) => question)).toEqual(["/long 120", "/long 20"])
  const [first, second] = both
  expect(words(first?.answer ?? "")).toBeGreaterThanOrEqual(120)
  expect(words(second?.answer ?? "")).toBeGreaterThanOrEqual(20)
  await page.reload()
  await status("completed")
  await page.waitForFunction(() => document.querySelectorAll(".turn").length === 2)
  expect(await turns()).toEqual(both)
})

test("an answer that is stopped stays as it was, and a new conversation begins empty", async () => {
  await send("/slow /long 400")
  await status("streaming")
  await page.reload()
  await status("streaming")
  await page.click("#stop")
  await status("cancelled")
  expect((await turns())[0]?.note).toBe("Stopped.")
  await page.click("#fresh")
  expect(await turns()).toEqual([])
  expect(await page.textContent("#status")).toBe("ready")
  expect(await page.isVisible("#stop")).toBe(false)
  expect(await page.isVisible("#welcome")).toBe(true)
  await page.click("#conversations a")
  await status("cancelled")
  expect((await turns())[0]?.question).toBe("/slow /long 400")
})

test("a change is shown, edited and approved", async () => {
  await send("/write Shopping list: milk")
  const approval = await page.waitForSelector(".approval")
  expect(await approval.textContent()).toContain("create “Shopping list”")
  expect(await page.textContent(".diff .added")).toBe("+ milk\n")
  await page.click("text=Edit…")
  await page.fill(".approval textarea", '{"title":"Shopping list","text":"bread"}')
  await page.click("text=Use this instead")
  await page.waitForSelector(".diff .added:has-text('bread')")
  await page.click("text=Approve")
  await status("completed")
  expect(await page.textContent(".tool summary")).toContain("applied")
  expect(await page.$$(".approval")).toEqual([])
})

test("a tool that failed says so and why", async () => {
  await send("/fail-tool")
  await status("completed")
  expect(await page.textContent(".tool.failed summary")).toContain("failed:")
})

test("the end stays in view until the reader scrolls away from it", async () => {
  await send("/long 350")
  const gap = () => page.evaluate(() => document.documentElement.scrollHeight - innerHeight - scrollY)
  await page.waitForFunction(() => document.documentElement.scrollHeight > innerHeight + 300)
  expect(await gap()).toBeLessThan(60)
  await page.mouse.move(400, 200)
  await page.mouse.wheel(0, -200)
  await page.waitForFunction(() => document.documentElement.scrollHeight - innerHeight - scrollY > 150)
  const place = await page.evaluate(() => scrollY)
  await status("completed")
  expect(await page.evaluate(() => scrollY)).toBe(place)
})

test("a server that is away is said to be, what was written is kept, and one run comes of it", async () => {
  await send("/slow /long 60")
  await status("streaming")
  proxy.refuse(true)
  proxy.cut()
  await page.waitForFunction(() => document.querySelector("#status")?.textContent === "reconnecting…")
  await send("/long 5")
  await page.waitForSelector("#problem:has-text('can not be reached')")
  expect(await page.inputValue("#message")).toBe("/long 5")
  proxy.refuse(false)
  await sent()
  await page.waitForFunction(() => document.querySelectorAll(".turn").length === 2)
  await page.waitForFunction(() => document.querySelectorAll(".turn")[1]?.querySelector(".message:not(.user)") !== null)
  await status("completed")
  expect(await page.isVisible("#problem")).toBe(false)
})
