/** Whatever a model, a tool or a person writes is text on the page, and leads nowhere by itself. */

import { build } from "esbuild"
import * as fc from "fast-check"
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { safeUrl } from "../../src/web/markdown/Url.js"
import * as ToolServer from "../e2e/support/ToolServer.js"
import * as Chat from "./support/Chat.js"

const attack = [
  "<img src=x onerror=\"window.hacked='img'\">",
  "<svg onload=\"window.hacked='svg'\"></svg>",
  "</script><script>window.hacked='script'</script>",
  "<style>body{display:none}</style>",
  '<iframe src="https://evil.example/frame"></iframe>',
  "<a href=\"javascript:window.hacked='a'\">raw</a>"
].join(" ")
const links = [
  "[one](javascript:window.hacked=1)",
  "[two](JaVaScRiPt:window.hacked=2)",
  "[three](  javascript:window.hacked=3)",
  "[four](java\tscript:window.hacked=4)",
  "[five](data:text/html,<script>window.hacked=5</script>)",
  "[six](vbscript:window.hacked=6)",
  "[seven](/session)",
  "[eight](//evil.example/x)",
  "[nine](&#106;avascript:window.hacked=9)",
  "[ten](blob:https://evil.example/1)",
  "<javascript:window.hacked=11>",
  "![picture](https://evil.example/x.png)",
  "![inline](data:image/svg+xml,<svg onload='window.hacked=13'/>)",
  "[good](https://example.org/page) and https://example.org/raw"
].join("\n\n")
const everything = `${attack}\n\n${links}\n\n\`${attack}\`\n\n| ${attack.replaceAll("|", "")} | b |\n| --- | --- |\n| c | d |\n`

let chat: Chat.Chat
beforeAll(async () => {
  chat = await Chat.start({
    tools: [{ name: "evil", title: attack, description: "Evil", kind: "readonly" }]
  })
})
beforeEach(() => chat.renew())
afterAll(() => chat.stop())

/** What is on the page and should not be, and whether something ran. */
const harm = (tab: Chat.Tab) =>
  tab.page.evaluate((origin) => {
    const strange = [
      ...document.querySelectorAll("main img, main script, main style, main iframe, main object, main svg")
    ]
      .filter((element) => !element.matches("svg.icon"))
      .map((element) => element.outerHTML)
    const handlers = [...document.querySelectorAll("*")].flatMap((element) =>
      [...element.attributes].filter(({ name }) => name.startsWith("on")).map(({ name }) => name)
    )
    const foreign = [...document.querySelectorAll<HTMLAnchorElement>("a[href]")]
      .map(({ href }) => href)
      .filter((href) => !href.startsWith(`${origin}/`) && !/^https:\/\/(example\.org|evil\.example)\//.test(href))
    return {
      strange,
      handlers,
      foreign,
      hacked: Reflect.get(window, "hacked"),
      visible: document.body.offsetHeight > 0
    }
  }, chat.proxy.url)
const none = { strange: [], handlers: [], foreign: [], hacked: undefined, visible: true }

test("is inert in text, thoughts, tools, previews, titles and documents, as it comes and after a reload", async () => {
  const question = `Evil ${attack}`
  chat.world.tools.on("evil", "window.hacked", ({ input }, response) =>
    ToolServer.send(response, { error: attack, input }, 500)
  )
  chat.world.tools.on("save_note", "window.hacked", ({ input, phase }, response) => {
    if (phase === "preview")
      return ToolServer.send(response, { action: attack, title: attack, after: everything, diff: `+ ${attack}` })
    ToolServer.send(response, { id: "doc", title: attack, input })
  })
  const characters = [...everything]
  chat.world.upstream.script(question, [
    Script.reply([
      Script.reasoning(attack),
      // So small that every tag is completed only later.
      characters.map((character) => Script.text(character)),
      Script.toolCall({ index: 0, id: "e", name: "evil", args: JSON.stringify({ q: everything }) }),
      Script.toolCall({ index: 1, id: "n", name: attack, args: "{}" }),
      Script.finish("tool_calls"),
      Script.done
    ]),
    Script.calls({ id: "save", name: "save_note", args: JSON.stringify({ doc: attack, text: everything }) }),
    Script.answer(everything)
  ])
  const tab = await chat.tab()
  const { page } = tab
  await tab.send(question)
  await page.waitForSelector(".approval")
  expect(await harm(tab)).toEqual(none)
  await page.click(".approval >> text=Preview")
  await page.click(".approval >> text=Details")
  await page.reload()
  await page.waitForSelector(".approval")
  for (const details of await page.$$("details:not([open]) > summary")) await details.click()
  await page.click(".approval >> text=Preview")
  expect(await harm(tab)).toEqual(none)
  await page.click(".approval >> text=Edit…")
  await page.click(".approval >> text=Cancel")
  await page.click(".approval >> text=Approve")
  await tab.status("completed")
  await page.click("text=1 document")
  await page.waitForSelector("dialog.documents article")
  expect(await harm(tab)).toEqual(none)
  await page.click("text=Ask about it")
  await page.hover(".sidebar li")
  await page.click(".sidebar li .tools button:last-child")
  expect(await harm(tab)).toEqual(none)
  await page.keyboard.press("Escape")
  // It is all there to be read.
  const body = await page.textContent("main")
  for (const part of ["onerror", "<script>", "<style>", "<iframe"]) expect(body).toContain(part)
  const last = await page.$$eval(".turn:last-of-type .answer > .text:last-of-type a", (all) =>
    all.map((one) => [one.textContent, one.getAttribute("href"), one.getAttribute("rel")])
  )
  const rel = "noopener noreferrer nofollow"
  expect(last.filter(([, href]) => href !== null)).toEqual([
    ["picture", "https://evil.example/x.png", rel],
    ["good", "https://example.org/page", rel],
    ["https://example.org/raw", "https://example.org/raw", rel]
  ])
  for (const link of await page.$$(".answer a:not([href])")) await link.click({ force: true })
  expect(await harm(tab)).toEqual(none)
})

test("the pages allow no inline script or style, and ask nobody else for anything", async () => {
  for (const path of ["/", "/docs"]) {
    const response = await fetch(chat.proxy.url + path)
    const policy = response.headers.get("content-security-policy") ?? ""
    expect(policy).toContain("default-src 'none'")
    expect(policy).not.toContain("unsafe")
    const html = await response.text()
    expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|https?:\/\//)
  }
  const page = await chat.context().newPage()
  await page.goto(`${chat.proxy.url}/docs`)
  await page.waitForSelector("h2:has-text('POST')")
})

test("only whole addresses of the web and of mailboxes are led to", () => {
  for (const address of ["https://a.b/c?d#e", "http://a", "mailto:a@b.c", "HTTPS://A.B"])
    expect(safeUrl(address)).toBeDefined()
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.webUrl(), fc.constantFrom("javascript:a", " java\nscript:b", "//a", "/a", "#a")),
      (address) => {
        const url = safeUrl(address)
        if (url !== undefined) expect(url).toMatch(/^(https?|mailto):/)
      }
    )
  )
})

test("of a text nothing is lost or repeated however it is cut, and it is drawn only with what a text may have", async () => {
  const { outputFiles } = await build({
    stdin: {
      contents: `import { makeWriter } from "./src/web/markdown/Renderer.js"
        globalThis.draw = (pieces) => {
          const root = document.createElement("div")
          const writer = makeWriter(root)
          for (const piece of pieces) writer.write(piece)
          writer.end()
          return { tags: [...root.querySelectorAll("*")].map((one) => one.localName), text: [...root.textContent.replace(/\\s/g, "")].sort().join("") }
        }`,
      resolveDir: process.cwd(),
      loader: "ts"
    },
    bundle: true,
    write: false,
    format: "iife",
    platform: "browser"
  })
  const page = await chat.context().newPage()
  await page.addInitScript({ content: outputFiles[0]?.text ?? "" })
  await page.goto(chat.proxy.url)
  const word = fc.constantFrom(
    "word",
    "中文",
    "שלום",
    "**",
    "*",
    "_",
    "`",
    "```",
    "\n",
    "\n\n",
    "# ",
    "- ",
    "1. ",
    "> ",
    "[a](https://a.b)",
    "[b](javascript:c)",
    "![c](https://d.e/f.png)",
    "https://a.b/c",
    "<b>",
    "<script>",
    "|",
    "| a | b |\n| - | - |\n",
    "~~",
    "$",
    "\\",
    " ",
    "&lt;",
    "- [ ] ",
    "---\n",
    "😀"
  )
  const cut = fc.tuple(fc.array(word, { maxLength: 30 }), fc.infiniteStream(fc.integer({ min: 1, max: 5 })))
  const samples = fc.sample(cut, { numRuns: 400 })
  const cases = samples.map(([words, sizes]) => {
    const text = [...words.join("")]
    const pieces: Array<string> = []
    for (const size of sizes) {
      if (text.length === 0) break
      pieces.push(text.splice(0, size).join(""))
    }
    return pieces
  })
  const drawn = await page.evaluate((all) => {
    const draw: (pieces: ReadonlyArray<string>) => { tags: Array<string>; text: string } = Reflect.get(window, "draw")
    return all.map((pieces) => ({
      whole: draw([pieces.join("")]),
      parts: draw(pieces),
      single: draw([...pieces.join("")])
    }))
  }, cases)
  const allowed = new Set(
    "p h3 h4 h5 h6 blockquote br hr em strong s code a ul ol li tr td th pre div table thead tbody input span".split(
      " "
    )
  )
  drawn.forEach(({ parts, single, whole }, index) => {
    for (const other of [parts, single]) {
      expect(other.text, JSON.stringify(cases[index])).toBe(whole.text)
      expect(other.tags.filter((tag) => !allowed.has(tag))).toEqual([])
    }
    expect(whole.tags.filter((tag) => !allowed.has(tag))).toEqual([])
  })
})
