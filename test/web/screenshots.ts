/**
 * `npm run screenshots`: pictures of the pages as they come out of `npm run build`, with the demo model. Those for the
 * README are in `screenshots`; with a folder as its argument, all of them go there, to be looked at.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { BrowserContextOptions, Page } from "playwright-core"
import * as Chromium from "../client/support/Chromium.js"
import * as Server from "../e2e/support/Server.js"

const kept = new Set(["chat-light", "chat-dark", "phone", "approval", "replay"])
const folder = process.argv[2]
const out = folder ?? fileURLToPath(new URL("./screenshots/", import.meta.url))
mkdirSync(out, { recursive: true })
const directory = mkdtempSync(join(tmpdir(), "runlet-screenshots-"))
const config = join(directory, "config.json")
writeFileSync(config, JSON.stringify({ models: { demo: { provider: "demo" } }, defaultModel: "demo" }))
const server = await Server.start(config, join(directory, "runlet.db"))
const browser = await Chromium.launch()

const wide = { width: 1180, height: 800 }
const narrow = { width: 390, height: 800 }

const withPage = async (options: BrowserContextOptions, work: (page: Page) => Promise<void>) => {
  const context = await browser.newContext({ viewport: wide, reducedMotion: "reduce", locale: "en-US", ...options })
  const page = await context.newPage()
  page.on("pageerror", (error) => console.error(error))
  await page.goto(server.url)
  await work(page)
  await context.close()
}

const status = (page: Page, wanted: string) =>
  page.waitForSelector(`.status[data-status="${wanted}"]`, { state: "attached" })
const send = async (page: Page, text: string) => {
  await page.fill("#message", text)
  await page.keyboard.press("Enter")
}
const ask = async (page: Page, text: string, until = "completed") => {
  await send(page, text)
  await page.waitForFunction((said) => document.querySelector(".turn:last-of-type .bubble")?.textContent === said, text)
  await status(page, until)
}
const shoot = async (page: Page, name: string) => {
  if (folder === undefined && !kept.has(name)) return
  await page.mouse.move(0, 0)
  await page.waitForTimeout(300)
  await page.screenshot({ path: join(out, `${name}.png`) })
}
const fresh = (page: Page) => page.click(".fresh")

try {
  await withPage({ colorScheme: "light" }, async (page) => {
    await page.waitForSelector(".welcome")
    await shoot(page, "welcome")
    await ask(page, "/remember I like green tea", "waiting_approval")
    await page.click(".approval >> text=Approve")
    await status(page, "completed")
    await fresh(page)
    await ask(page, "What happens when the server is killed in the middle of an answer?")
    await fresh(page)
    await page.click("text=Think first")
    await ask(page, "How does a client resume a run?")
    await page.evaluate(() => scrollTo(0, 0))
    await shoot(page, "chat-light")
    const replay = await page.getAttribute(`[aria-label="Replay step by step"]`, "href")
    await fresh(page)
    await ask(page, "/write Shopping list: # For the weekend\n\n- milk\n- bread\n- green tea", "waiting_approval")
    await page.click(".approval >> text=Approve")
    await status(page, "completed")
    await ask(
      page,
      "/update Shopping list: # For the weekend\n\n- oat milk\n- bread\n- green tea\n- apples",
      "waiting_approval"
    )
    await shoot(page, "approval")
    await page.click(".approval >> text=Preview")
    await shoot(page, "approval-preview")
    await page.click(".approval >> text=Edit…")
    await shoot(page, "approval-edit")
    await page.click(".approval >> text=Cancel")
    await page.click(".approval >> text=Approve")
    await status(page, "completed")
    await page.click("text=/^\\d documents?$/")
    await shoot(page, "documents")
    await page.keyboard.press("Escape")
    await fresh(page)
    await ask(page, "How do approvals work?")
    await page.click("[aria-label='Answer again']")
    await page.waitForSelector("text=2 of 2")
    await status(page, "completed")
    await page.click("text=Side by side")
    await page.evaluate(() => scrollTo(0, 0))
    await shoot(page, "versions")
    await fresh(page)
    await ask(page, "/cut How do approvals work?", "failed")
    await shoot(page, "failed")
    await page.goto(server.url + replay)
    await page.waitForTimeout(1000)
    await shoot(page, "replay")
  })
  await withPage({ colorScheme: "dark" }, async (page) => {
    await page.click("text=How does a client resume a run?")
    await status(page, "completed")
    await page.evaluate(() => scrollTo(0, 0))
    await shoot(page, "chat-dark")
    await fresh(page)
    await ask(page, "/slow How do approvals work?", "streaming")
    await page.waitForTimeout(1500)
    await shoot(page, "streaming-dark")
    await page.keyboard.press("Escape")
    await status(page, "cancelled")
  })
  await withPage({ colorScheme: "light", viewport: narrow, hasTouch: true, isMobile: true }, async (page) => {
    await page.click(".head .menu")
    await page.waitForTimeout(300)
    await shoot(page, "phone-menu")
    await page.click(".sidebar li a:has-text('killed in the middle')")
    await status(page, "completed")
    await page.evaluate(() => scrollTo(0, 0))
    await shoot(page, "phone")
  })
} finally {
  await browser.close()
  await server.stop()
  rmSync(directory, { recursive: true, force: true })
}
