/**
 * The chat page in a real browser: tabs of it, what they show, and all that must not happen while they are open.
 */
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core"
import { expect } from "vitest"
import * as Chromium from "../../client/support/Chromium.js"
import * as Proxy from "../../client/support/Proxy.js"
import * as World from "../../e2e/support/World.js"

declare global {
  interface Window {
    /** Every text of the last answer that was shown, one after the other. */
    shown: Array<string>
    violations: Array<string>
    shifts: number
  }
}

/** In the page, from its first moment: what is shown, what the policy stopped, and what moved by itself. */
const watch = () => {
  window.shown = []
  window.violations = []
  window.shifts = 0
  document.addEventListener("securitypolicyviolation", (event) => {
    window.violations.push(`${event.violatedDirective} ${event.blockedURI}`)
  })
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if ("value" in entry && typeof entry.value === "number") window.shifts += entry.value
    }
  }).observe({ type: "layout-shift", buffered: true })
  new MutationObserver(() => {
    const answers = document.querySelectorAll(".turn:last-of-type .answer > .text")
    const text = [...answers].map((element) => element.textContent ?? "").join("")
    if (text !== window.shown.at(-1)) window.shown.push(text)
  }).observe(document, { childList: true, subtree: true, characterData: true })
}

export interface Tab {
  readonly page: Page
  readonly send: (text: string) => Promise<void>
  /** Resolves when the head of the page says so. */
  readonly status: (wanted: string) => Promise<unknown>
  readonly text: () => Promise<string>
  readonly until: (part: string) => Promise<unknown>
  readonly shown: () => Promise<ReadonlyArray<string>>
  readonly turns: (count: number) => Promise<unknown>
}

export interface Chat {
  readonly world: World.World
  readonly proxy: Proxy.Proxy
  readonly browser: Browser
  readonly context: () => BrowserContext
  /** A fresh browser profile; what was open in the one before is closed, and must have behaved. */
  readonly renew: (options?: BrowserContextOptions) => Promise<void>
  readonly tab: (hash?: string) => Promise<Tab>
  readonly stop: () => Promise<void>
}

export const tabOf = (page: Page): Tab => {
  const text = () =>
    page.$$eval(".turn:last-of-type .answer > .text", (all) => all.map((one) => one.textContent ?? "").join(""))
  return {
    page,
    send: async (message) => {
      await page.fill("#message", message)
      await page.press("#message", "Enter")
    },
    status: (wanted) => page.waitForSelector(`.status[data-status="${wanted}"]`, { state: "attached" }),
    text,
    until: (part) =>
      page.waitForFunction(
        (wanted) =>
          [...document.querySelectorAll(".turn:last-of-type .answer > .text")]
            .map((one) => one.textContent ?? "")
            .join("")
            .includes(wanted),
        part
      ),
    shown: () => page.evaluate(() => window.shown),
    turns: (count) =>
      page.waitForFunction((many) => document.querySelectorAll(".turn:has(.bubble)").length === many, count)
  }
}

export const start = async (options: World.Options = {}): Promise<Chat> => {
  const world = await World.start(options)
  const proxy = await Proxy.start(world.url())
  const browser = await Chromium.launch()
  let context = await browser.newContext()
  let mistakes: Array<string> = []

  const close = async () => {
    for (const page of context.pages()) {
      if (page.isClosed()) continue
      const violations = await page.evaluate(() => window.violations).catch(() => [])
      mistakes.push(...violations)
    }
    await context.close()
    expect(mistakes).toEqual([])
  }

  const open = async (more: BrowserContextOptions = {}) => {
    mistakes = []
    context = await browser.newContext({ viewport: { width: 1100, height: 700 }, locale: "en-US", ...more })
    await context.addInitScript(watch)
    context.on("page", (page) => {
      page.on("pageerror", (error) => mistakes.push(error.stack ?? error.message))
      page.on("dialog", (dialog) => {
        mistakes.push(`a dialog: ${dialog.message()}`)
        void dialog.dismiss()
      })
      page.on("request", (request) => {
        const url = request.url()
        if (!url.startsWith(proxy.url) && !url.startsWith("data:") && !url.startsWith("about:")) {
          mistakes.push(`a foreign request: ${url}`)
        }
      })
    })
  }

  return {
    world,
    proxy,
    browser,
    context: () => context,
    renew: async (more) => {
      await close()
      await open(more)
    },
    tab: async (hash = "") => {
      const page = await context.newPage()
      await page.goto(`${proxy.url}/${hash}`)
      return tabOf(page)
    },
    stop: async () => {
      await close()
      await browser.close()
      await proxy.stop()
      await world.stop()
    }
  }
}
