/** @jsxImportSource react */
/** The hook, rendered: by React in a browser, mounted twice and taken away in mid-answer, and on a server. */
import { build } from "esbuild"
import type { Browser, BrowserContext, Page } from "playwright-core"
import { renderToString } from "react-dom/server"
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest"
import { makeClient } from "../../src/client/index.js"
import { useRun } from "../../src/client/react.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import * as World from "../e2e/support/World.js"
import * as Chromium from "./support/Chromium.js"
import * as Proxy from "./support/Proxy.js"

const app = `
import { StrictMode, useEffect, useState } from "react"
import { createRoot } from "react-dom/client"
import { makeApi } from "./src/client/Api.js"
import { makeClient, text } from "./src/client/index.js"
import { useRun } from "./src/client/react.js"

const client = makeClient({ maxDelayMs: 300 })
globalThis.client = client
globalThis.signIn = async (token) => {
  await makeApi().signIn(token)
  client.signedIn()
}
globalThis.renders = 0

const Answer = () => {
  const { canContinue, phase, run } = useRun(client)
  globalThis.renders++
  return (
    <section id="answer" data-phase={phase}>
      <p>{run && text(run)}</p>
      {canContinue && <button onClick={() => client.continue()}>Continue</button>}
    </section>
  )
}

const App = () => {
  const [shown, show] = useState(true)
  useEffect(() => {
    client.restore()
  }, [])
  return (
    <>
      <button id="toggle" onClick={() => show(!shown)}>Toggle</button>
      {shown && <Answer />}
      {shown && <Answer />}
    </>
  )
}

createRoot(document.body.appendChild(document.createElement("div"))).render(<StrictMode><App /></StrictMode>)
`

let world: World.World
let proxy: Proxy.Proxy
let browser: Browser
let context: BrowserContext
let page: Page
let script: string
beforeAll(async () => {
  world = await World.start({ users: { alice: "token-of-alice" } })
  proxy = await Proxy.start(world.url())
  browser = await Chromium.launch()
  const { outputFiles } = await build({
    stdin: { contents: app, resolveDir: process.cwd(), loader: "tsx" },
    bundle: true,
    write: false,
    format: "iife",
    platform: "browser",
    jsx: "automatic",
    jsxImportSource: "react",
    // Its development form is the one that mounts twice.
    define: { "process.env.NODE_ENV": '"development"' }
  })
  script = outputFiles[0]?.text ?? ""
})
beforeEach(async () => {
  context = await browser.newContext()
  page = await context.newPage()
  // A page of somebody else's, beside the server under one origin.
  await page.route("**/react", (route) =>
    route.fulfill({
      contentType: "text/html",
      body: `<!doctype html><title>test</title><body><script>${script.replaceAll("</script", "<\\/script")}</script>`
    })
  )
  await page.goto(`${proxy.url}/react`)
  await page.evaluate(() => Reflect.get(window, "signIn")("token-of-alice"))
})
afterEach(() => context.close())
afterAll(async () => {
  await browser.close()
  await proxy.stop()
  await world.stop()
})

const pieces = (count: number, waitMs: number) =>
  Array.from({ length: count }, (_, i) => [Script.text(`${i} `), Script.wait(waitMs)]).flat()
const told = (count: number) => Array.from({ length: count }, (_, i) => `${i} `).join("")
const end = [Script.finish("stop"), Script.usage(10, 20), Script.done]
const begin = (message: string) =>
  page.evaluate((text) => Reflect.get(window, "client").start({ message: text }), message)
const phase = (wanted: string) => page.waitForSelector(`#answer[data-phase="${wanted}"]`)
const until = (text: string) =>
  page.waitForFunction((part) => document.querySelector("#answer p")?.textContent?.includes(part), text)
const texts = () => page.$$eval("#answer p", (all) => all.map((one) => one.textContent))
const streams = (from: number) => proxy.requests.slice(from).filter(({ url }) => url.includes("/events"))

test("shows an answer as it comes, through mounting twice, being taken away, new credentials and a cut", async () => {
  world.upstream.script("In React", [Script.reply([...pieces(60, 30), Script.gate("react"), ...end])])
  const from = proxy.requests.length
  await begin("In React")
  await until(" 5 ")
  await page.click("#toggle")
  expect(await page.$("#answer")).toBeNull()
  await page.evaluate(() => Reflect.get(window, "signIn")("token-of-alice"))
  await page.click("#toggle")
  await until(" 20 ")
  // Neither the second mounting nor the second component nor the new credential opened another one.
  expect(streams(from)).toHaveLength(1)
  proxy.cut()
  await until(" 59 ")
  await world.upstream.release("react")
  await phase("completed")
  expect(await texts()).toEqual([told(60), told(60)])
  expect(streams(from)).toHaveLength(2)
})

test("the next message goes out straight after a reload, and the answer before it is shown meanwhile", async () => {
  world.upstream.script("Before the reload", [Script.reply([...pieces(5, 5), Script.gate("reloaded"), ...end])])
  world.upstream.script("After the reload", [Script.answer("Next.")])
  await begin("Before the reload")
  await until(told(5).trim())
  await page.reload()
  await phase("streaming")
  await until(told(5).trim())
  const from = proxy.requests.length
  await begin("After the reload")
  await until("Next.")
  await phase("completed")
  expect(streams(from).length).toBeLessThanOrEqual(1)
  await world.upstream.release("reloaded")
})

test("offers to continue what broke off", async () => {
  world.upstream.script("Broken in React", [
    Script.reply([Script.text("half"), Script.wait(30)], { framing: "close" }),
    Script.answer("whole")
  ])
  await begin("Broken in React")
  await phase("failed")
  await page.click("text=Continue")
  await phase("completed")
  expect((await texts())[0]).toBe("whole")
})

test("is drawn anew only when something has changed", async () => {
  world.upstream.script("Quiet", [Script.answer("Done.")])
  await begin("Quiet")
  await phase("completed")
  const renders = () => page.evaluate((): number => Reflect.get(window, "renders"))
  const before = await renders()
  await page.waitForTimeout(500)
  expect(await renders()).toBe(before)
})

test("is that of a new client where pages are made on a server", () => {
  const client = makeClient({ baseUrl: "http://server" })
  const Answer = () => {
    const { phase, run } = useRun(client)
    return (
      <p>
        {phase} {run?.runId ?? "nothing"}
      </p>
    )
  }
  expect(renderToString(<Answer />)).toBe("<p>idle<!-- --> <!-- -->nothing</p>")
})
