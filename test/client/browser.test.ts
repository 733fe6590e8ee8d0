/** The client in tabs of a real browser, with the browser's own locks, channels, storage and cookies. */
import { createServer, request, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { build } from "esbuild"
import type { Browser, BrowserContext, Page } from "playwright-core"
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest"
import type { Client } from "../../src/client/index.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { eventually, pause } from "../e2e/support/Waiting.js"
import * as World from "../e2e/support/World.js"
import * as Chromium from "./support/Chromium.js"
import * as Proxy from "./support/Proxy.js"

const heartbeatMs = 1000

let world: World.World
let browser: Browser
let site: Server
let proxy: Proxy.Proxy
let context: BrowserContext
beforeAll(async () => {
  world = await World.start({ limits: { heartbeatMs }, users: { alice: "token-of-alice" } })
  browser = await Chromium.launch()
  const { outputFiles } = await build({
    stdin: {
      contents: `import * as client from "./src/client/index.js"
        import { makeApi } from "./src/client/Api.js"
        globalThis.library = client
        globalThis.client = client.makeClient({ heartbeatMs: ${heartbeatMs}, maxDelayMs: 300 })
        globalThis.signIn = async (token) => {
          await makeApi().signIn(token)
          globalThis.client.signedIn()
        }
        globalThis.texts = []
        globalThis.client.subscribe(() => {
          const { run } = globalThis.client.getSnapshot()
          const text = run ? client.text(run) : ""
          if (text !== globalThis.texts.at(-1)) globalThis.texts.push(text)
        })`,
      resolveDir: process.cwd(),
      loader: "ts"
    },
    bundle: true,
    write: false,
    format: "iife",
    platform: "browser"
  })
  const script = outputFiles[0]?.text ?? ""
  // The page and the server are one origin, as they are in use.
  site = createServer((incoming, outgoing) => {
    if (incoming.url === "/page") {
      outgoing.setHeader("content-type", "text/html")
      return outgoing.end(`<!doctype html><title>test</title><script>${script}</script>`)
    }
    const onward = request(
      new URL(incoming.url ?? "/", world.url()),
      { method: incoming.method ?? "GET", headers: incoming.headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
        outgoing.flushHeaders()
        answer.pipe(outgoing)
      }
    )
    onward.on("error", () => outgoing.destroy())
    outgoing.on("close", () => onward.destroy())
    incoming.pipe(onward)
  })
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve))
  proxy = await Proxy.start(`http://127.0.0.1:${(site.address() as AddressInfo).port}`)
})
beforeEach(async () => {
  context = await browser.newContext()
})
afterEach(() => context.close())
afterAll(async () => {
  await browser.close()
  await proxy.stop()
  site.closeAllConnections()
  site.close()
  await world.stop()
})

declare const client: Client
declare const signIn: (token: string) => Promise<void>
declare const texts: ReadonlyArray<string>

const tab = async (): Promise<Page> => {
  const page = await context.newPage()
  await page.goto(`${proxy.url}/page`)
  return page
}
const signInto = (page: Page) => page.evaluate(() => signIn("token-of-alice"))
const start = (page: Page, message: string) =>
  page.evaluate((text) => client.start({ message: text }).then(({ runId }) => runId), message)
const shows = (page: Page) =>
  page.evaluate(() => ({ phase: client.getSnapshot().phase, text: texts.at(-1) ?? "", texts }))
const until = (page: Page, what: string, wanted: (shown: Awaited<ReturnType<typeof shows>>) => boolean) =>
  eventually(what, async () => {
    const shown = await shows(page)
    return wanted(shown) ? shown : undefined
  })
const streams = (from: number) => proxy.requests.slice(from).filter(({ url }) => url.includes("/events"))

const pieces = (count: number, waitMs: number) =>
  Array.from({ length: count }, (_, i) => [Script.text(`${i} `), Script.wait(waitMs)]).flat()
const whole = (count: number, waitMs: number) =>
  Script.reply([...pieces(count, waitMs), Script.finish("stop"), Script.done])
const told = (count: number) => Array.from({ length: count }, (_, i) => `${i} `).join("")

test("eight tabs share one connection, which survives the tab that has it, a cut and a reload", async () => {
  world.upstream.script("Eight tabs", [whole(150, 80)])
  const first = await tab()
  await signInto(first)
  const from = proxy.requests.length
  const runId = await start(first, "Eight tabs")
  const others = await Promise.all(Array.from({ length: 7 }, tab))
  // More tabs than a browser has connections to one host: all of them get their answers.
  await Promise.all(others.map((page) => page.evaluate((id) => client.attach(id), runId)))
  for (const page of others) await until(page, "a live text", ({ phase, text }) => phase === "streaming" && text !== "")
  await pause(500)
  expect(streams(from)).toHaveLength(1)
  await first.close()
  const [second, ...rest] = others
  const before = (await shows(rest[0] as Page)).text.length
  for (const page of rest) await until(page, "more text", ({ text }) => text.length > before + 20)
  expect(streams(from)).toHaveLength(2)
  proxy.cut()
  await second?.reload()
  await second?.evaluate(() => client.restore())
  for (const page of others) {
    const { phase, text, texts: all } = await until(page, "the end", (shown) => shown.phase === "completed")
    expect([phase, text]).toEqual(["completed", told(150)])
    for (const shown of all) expect(told(150).startsWith(shown)).toBe(true)
  }
  const { length } = proxy.requests
  await pause(heartbeatMs * 4)
  expect(proxy.requests).toHaveLength(length)
  expect(streams(from).length).toBeLessThanOrEqual(8)
}, 120_000)

test("signing in again in one tab lets all go on where they stood", async () => {
  world.upstream.script("Signed out everywhere", [
    Script.reply([...pieces(5, 5), Script.gate("again"), ...pieces(3, 5), Script.finish("stop"), Script.done])
  ])
  const one = await tab()
  await signInto(one)
  const runId = await start(one, "Signed out everywhere")
  const two = await tab()
  await two.evaluate((id) => client.attach(id), runId)
  for (const page of [one, two]) await until(page, "the beginning", ({ text }) => text === told(5))
  await context.clearCookies()
  proxy.cut()
  await eventually("both to stop", async () => {
    const out = await Promise.all([one, two].map((page) => page.evaluate(() => client.getSnapshot().signedOut)))
    return out.every(Boolean) ? true : undefined
  })
  const { length } = proxy.requests
  await pause(heartbeatMs * 4)
  expect(proxy.requests).toHaveLength(length)
  await world.upstream.release("again")
  await signInto(two)
  for (const page of [one, two]) {
    const { text } = await until(page, "the end", ({ phase }) => phase === "completed")
    expect(text).toBe(told(5) + told(3))
  }
}, 60_000)
