/** How the page behaves towards those who use it: by keyboard, by ear, in the dark, on a phone, in their language. */
import axe from "axe-core"
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import * as ToolServer from "../e2e/support/ToolServer.js"
import * as Chat from "./support/Chat.js"

let chat: Chat.Chat
beforeAll(async () => {
  chat = await Chat.start({ models: { demo: { provider: "demo" } } })
})
beforeEach(() => chat.renew())
afterAll(() => chat.stop())

const end = [Script.finish("stop"), Script.usage(10, 20), Script.done]
const script = (message: string, ...replies: ReadonlyArray<Script.Reply>) =>
  chat.world.upstream.script(message, replies)

/** What axe finds wrong with the page as it stands, told briefly. */
const faults = async ({ page }: Chat.Tab) => {
  // By the browser's own console, which no policy of the page stops.
  await page.evaluate(axe.source)
  return page.evaluate(async () => {
    const { violations } = await Reflect.get(window, "axe").run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    })
    return violations.map((one: { id: string; nodes: Array<{ html: string; failureSummary: string }> }) => ({
      id: one.id,
      nodes: one.nodes.map(({ failureSummary, html }) => `${html.slice(0, 160)} ${failureSummary}`)
    }))
  })
}

for (const colorScheme of ["light", "dark"] as const) {
  test(`axe finds nothing wrong, whatever is on display, in the ${colorScheme}`, async () => {
    await chat.renew({ colorScheme, reducedMotion: "reduce" })
    const question = `Everything in the ${colorScheme}`
    chat.world.tools.on("lookup", `hang ${colorScheme}`, ToolServer.hang)
    script(
      question,
      Script.reply([
        Script.reasoning("Thinking about it."),
        Script.text(
          "# Heading\n\nText with `code` and [a link](https://example.org).\n\n- item\n\n| a | b |\n| - | - |\n| 1 | 2 |\n\n```js\nlet a\n```\n"
        ),
        Script.toolCall({ index: 0, id: "look", name: "lookup", args: '{"q":"word"}' }),
        Script.finish("tool_calls"),
        Script.done
      ]),
      Script.calls({ id: "save", name: "save_note", args: JSON.stringify({ doc: "axe", text: "noted" }) }),
      Script.calls({ id: "hang", name: "lookup", args: JSON.stringify({ q: `hang ${colorScheme}` }) })
    )
    script(`Breaks in the ${colorScheme}`, Script.reply([Script.text("half"), Script.wait(30)], { framing: "close" }))
    const tab = await chat.tab()
    const { page, send, status } = tab
    await page.waitForSelector(".welcome")
    expect(await faults(tab)).toEqual([])
    await send(question)
    await page.waitForSelector(".approval")
    for (const summary of await page.$$("details:not([open]) > summary")) await summary.click()
    expect(await faults(tab)).toEqual([])
    await page.click(".approval >> text=Edit…")
    expect(await faults(tab)).toEqual([])
    await page.click(".approval >> text=Cancel")
    await page.click(".approval >> text=Reject")
    expect(await faults(tab)).toEqual([])
    await page.click(".approval >> text=Cancel")
    await page.click(".approval >> text=Approve")
    await page.waitForSelector(".tool[data-state=running]")
    expect(await faults(tab)).toEqual([])
    await page.keyboard.press("Escape")
    await status("cancelled")
    await page.click("[aria-label='Answer again']")
    await page.waitForSelector("text=2 of 2")
    await page.waitForSelector(".tool[data-state=running]")
    await page.keyboard.press("Escape")
    await status("cancelled")
    await page.click("text=Side by side")
    expect(await faults(tab)).toEqual([])
    await page.click(".fresh")
    await send(`Breaks in the ${colorScheme}`)
    await status("failed")
    expect(await faults(tab)).toEqual([])
    await page.hover(".sidebar li")
    await page.click(".sidebar li .tools button:last-child")
    await page.waitForSelector("dialog[open]")
    expect(await faults(tab)).toEqual([])
  })
}

test("everything can be done by keyboard", async () => {
  script("By keyboard", Script.reply([Script.text("Going "), Script.gate("keys"), ...end]))
  script(
    "Change by keyboard",
    Script.calls({ id: "save", name: "save_note", args: JSON.stringify({ doc: "keys", text: "pressed" }) }),
    Script.answer("Changed.")
  )
  const { page, send, status, until } = await chat.tab()
  const focused = () => page.evaluate(() => document.activeElement?.id ?? "")
  await page.click("body", { position: { x: 5, y: 600 } })
  expect(await focused()).not.toBe("message")
  await page.keyboard.press("/")
  expect(await focused()).toBe("message")
  expect(await page.inputValue("#message")).toBe("")
  await page.keyboard.type("By keyboard")
  await page.keyboard.press("Shift+Enter")
  expect(await page.inputValue("#message")).toBe("By keyboard\n")
  await page.keyboard.press("Enter")
  await until("Going")
  await page.keyboard.press("Escape")
  await status("cancelled")
  await send("Change by keyboard")
  await page.waitForSelector(".approval")
  // Backwards out of the form lies what was asked.
  for (let i = 0; i < 30; i++) {
    if (await page.evaluate(() => document.activeElement?.textContent?.includes("Approve") === true)) break
    await page.keyboard.press("Shift+Tab")
  }
  await page.keyboard.press("Enter")
  await until("Changed.")
})

test("a screen reader hears what happens, and not every word", async () => {
  const words = Array.from({ length: 40 }, (_, i) => [Script.text(`word${i} `), Script.wait(20)]).flat()
  script("Aloud", Script.reply([...words, ...end]))
  const { page, send, status } = await chat.tab()
  await page.evaluate(() => {
    const said: Array<string> = []
    Reflect.set(window, "said", said)
    for (const region of document.querySelectorAll("[role=status], [role=alert], [aria-live]")) {
      new MutationObserver(() => said.push(region.textContent ?? "")).observe(region, {
        childList: true,
        characterData: true,
        subtree: true
      })
    }
  })
  await send("Aloud")
  await status("completed")
  const said = await page.evaluate((): ReadonlyArray<string> => Reflect.get(window, "said"))
  expect(said.length).toBeLessThan(8)
  expect(said.join(" ")).toContain("Answering…")
  expect(said.at(-1)).toBe("Complete")
  expect(said.join(" ")).not.toContain("word")
  expect(await page.getAttribute(".answer", "aria-busy")).toBe("false")
})

test("nothing on the page moves by itself while an answer comes", async () => {
  const words = Array.from({ length: 150 }, (_, i) => [Script.text(`word${i} `), Script.wait(10)]).flat()
  script(
    "Steady",
    Script.reply([Script.reasoning("Let me see."), ...words, Script.text("\n\n- a\n- b\n\n"), ...words, ...end])
  )
  await chat.renew({ viewport: { width: 1100, height: 2000 } })
  const { page, send, status } = await chat.tab()
  await page.waitForSelector(".welcome")
  await send("Steady")
  await page.waitForSelector(".answer")
  // The first question moves the page from its welcome to the conversation.
  await page.evaluate(() => {
    window.shifts = 0
  })
  await status("completed")
  expect(await page.evaluate(() => window.shifts)).toBeLessThan(0.02)
})

test("those who want no motion see none", async () => {
  await chat.renew({ reducedMotion: "reduce" })
  script("Still", Script.reply([Script.text("Going "), Script.gate("still"), ...end]))
  const { page, send, until } = await chat.tab()
  await send("Still")
  await until("Going")
  expect(await page.evaluate(() => document.getAnimations().length)).toBe(0)
  await chat.world.upstream.release("still")
})

test("fits a phone, with the conversations behind a button", async () => {
  await chat.renew({ viewport: { width: 360, height: 640 }, hasTouch: true, isMobile: true })
  const long = "unbroken".repeat(30)
  script(
    "Narrow",
    Script.answer(`${long}\n\n| a | b | c |\n| - | - | - |\n| ${long} | 2 | 3 |\n\n\`\`\`\n${long}\n\`\`\`\n`)
  )
  const tab = await chat.tab()
  const { page, send, status } = tab
  await send("Narrow")
  await status("completed")
  const width = () => page.evaluate(() => document.documentElement.scrollWidth)
  expect(await width()).toBe(360)
  expect(await page.isVisible(".sidebar")).toBe(false)
  await page.click(".head .menu")
  await page.waitForSelector(".sidebar li a")
  expect(await faults(tab)).toEqual([])
  await page.click(".fresh")
  await page.waitForSelector(".sidebar", { state: "hidden" })
  await page.waitForSelector(".welcome")
  expect(await width()).toBe(360)
})

test("of several questions on a narrow screen each is read in lines, and what was decided is said while others wait", async () => {
  const note = { doc: "plan", text: "A note that is longer than the name of what it is about" }
  script(
    "Two at once",
    Script.calls(
      { id: "save", name: "save_note", args: JSON.stringify(note) },
      { id: "mail", name: "send_mail", args: JSON.stringify({ to: "ada@example.org" }) }
    ),
    Script.answer("Both decided.")
  )
  await chat.renew({ viewport: { width: 320, height: 700 } })
  const { page, send, status, until } = await chat.tab()
  await send("Two at once")
  await page.waitForSelector(".approval >> nth=1")
  const widths = await page.$$eval(".approval strong", (all) => all.map((one) => one.getBoundingClientRect().width))
  for (const width of widths) expect(width).toBeGreaterThan(150)
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320)
  await page.click(".approval:has-text('plan') >> text=Edit…")
  expect(await page.evaluate(() => document.activeElement?.getAttribute("name"))).toBe("text")
  await page.keyboard.press("Escape")
  await page.click(".approval:has-text('ada@') >> text=Reject")
  await page.click(".rejection button[type=submit]")
  await page.waitForSelector(".tool[data-state=rejected]:has-text('send_mail')")
  await status("waiting_approval")
  await page.click(".approval >> text=Approve")
  await until("Both decided.")
  await status("completed")
  await page.waitForSelector(".tool[data-state=applied]:has-text('save_note')")
})

test("texts run in their own direction, whatever the page's", async () => {
  const table = "| שם | ערך |\n| - | - |\n| אחד | 1 |\n"
  script(
    "שלום, מה שלומך?",
    Script.answer(`שלום עולם\n\nEnglish again.\n\n- פריט\n- English\n\n> ציטוט\n\n${table}\nA table:\n\n- one\n`)
  )
  await chat.renew({ viewport: { width: 320, height: 700 } })
  const { page, send, status } = await chat.tab()
  await send("שלום, מה שלומך?")
  await status("completed")
  const direction = (selector: string) => page.$eval(selector, (element) => getComputedStyle(element).direction)
  expect(await direction(".bubble")).toBe("rtl")
  expect(await direction(".text p")).toBe("rtl")
  expect(await direction(".text p:nth-of-type(2)")).toBe("ltr")
  // The marks, lines and columns stand where the text begins.
  for (const whole of ["ul", "li", "blockquote", "table"])
    expect([whole, await direction(`.text ${whole}`)]).toEqual([whole, "rtl"])
  expect(await direction(".text ul:last-of-type")).toBe("ltr")
  expect(await direction(".sidebar li a")).toBe("rtl")
  expect(await direction(".head")).toBe("ltr")
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320)
})

test("speaks Chinese to those who do, and anybody may choose", async () => {
  await chat.renew({ locale: "zh-Hans-SG" })
  const { page, send, status } = await chat.tab()
  await page.waitForSelector("text=您想知道什么？")
  expect(await page.getAttribute("html", "lang")).toBe("zh-CN")
  await page.selectOption("select.model", "demo")
  await send("断线后如何恢复？")
  await status("completed")
  expect(await page.textContent(".reasoning summary")).toMatch(/^思考了/)
  expect(await page.textContent(".facts")).toContain("词元")
  await page.selectOption(".choices select >> nth=0", "en")
  await page.waitForSelector("text=New conversation")
  await page.reload()
  await page.waitForSelector("text=New conversation")
})

test("light and dark follow the system until somebody chooses", async () => {
  await chat.renew({ colorScheme: "dark" })
  const { page } = await chat.tab()
  const paper = () => page.$eval("body", (element) => getComputedStyle(element).backgroundColor)
  await page.waitForSelector(".welcome")
  const dark = await paper()
  await page.selectOption(".choices select >> nth=1", "light")
  const light = await paper()
  expect(light).not.toBe(dark)
  await page.reload()
  await page.waitForSelector(".welcome")
  expect(await paper()).toBe(light)
})
