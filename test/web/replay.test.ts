/** The replay page in a real browser, against a server with runs that have ended and one that goes on. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest"
import type { Envelope } from "../../src/domain/Envelope.js"
import * as RunState from "../../src/domain/RunState.js"
import * as Trace from "../../src/web/replay/Trace.js"
import * as Chromium from "../client/support/Chromium.js"
import * as Proxy from "../client/support/Proxy.js"
import * as Server from "../e2e/support/Server.js"
import * as Long from "./support/LongRun.js"
import * as Seed from "./support/Seed.js"
import * as Told from "./support/Told.js"

const long = Long.log(50_000)
const hostile = '<img src=x onerror="alert(1)"><script>alert(2)</script> [go](javascript:alert(3)) '
const first = Told.tell({ n: 21 }, [
  ...Told.thought("Let me look it up."),
  ...Told.call("search", { q: "cats" }, { hits: 3 }),
  ...Told.text("Cats are small animals that sleep most of the day.", "2.text"),
  ...Told.done(2)
])
const second = Told.tell({ n: 22, thread: 21, stepMs: 55 }, [
  ...Told.thought("Let me look it up."),
  ...Told.call("search", { q: "cats" }, { hits: 4 }),
  ...Told.text("Cats are small animals that hunt most of the night.", "2.text"),
  ...Told.done(2)
])
const nasty = Told.tell({ n: 23 }, [
  ...Told.thought(hostile),
  ...Told.call(`${hostile}tool`, { html: hostile, [hostile]: 1 }, hostile, hostile),
  ...Told.text(`${hostile} and a [good link](https://example.com/).`, "2.text"),
  {
    type: "error",
    code: "broken",
    message: hostile,
    recoverable: false,
    usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
  }
])
const removed = Told.tell({ n: 24 }, [...Told.text("It is all that is left."), ...Told.done()])
const golden = (name: string) => readFileSync(join(import.meta.dirname, `../golden/${name}.jsonl`), "utf8")
const recovered = Trace.read(golden("recovered-run")).envelopes
const traceOf = (digit: string) => ({ trace: `00-${digit.repeat(32)}-${digit.repeat(16)}-01` })
/** A run whose second attempt is in a trace of its own. */
const traced = Told.tell({ n: 25 }, [
  ...Told.text("Once"),
  {
    type: "run-resumed",
    attempt: 2,
    reason: "resume",
    checkpointSeq: 4,
    textLength: 0,
    reasoningLength: 0,
    droppedToolCallIds: [],
    ...traceOf("b")
  },
  { type: "run-status", status: "streaming" },
  ...Told.text("Twice", "1.again"),
  ...Told.done()
]).map(({ event, ...envelope }) => ({
  ...envelope,
  event: event.type === "run-start" ? { ...event, ...traceOf("a") } : event
}))
const others = Told.tell({ n: 31 }, [...Told.text("This is Alice's."), ...Told.done()])

let directory: string
let server: Server.Server
let proxy: Proxy.Proxy
let browser: Browser
let context: BrowserContext
let page: Page
let mistakes: Array<string> = []
let writes: Array<string> = []

/** The runs of these tests ended long ago; they are kept nevertheless. */
const kept = {
  models: { demo: { provider: "demo" } },
  defaultModel: "demo",
  retention: { eventsMs: 1e13, runsMs: 1e13 },
  telemetry: { traceUrl: 'https://traces.example.com/t/{traceId}?span={spanId}&of="<runs>"' }
}
const file = (name: string, content: string) => {
  const path = join(directory, name)
  writeFileSync(path, content)
  return path
}
const lines = (log: Iterable<Envelope>) => [...log].map((envelope) => JSON.stringify(envelope)).join("\n")

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "runlet-replay-"))
  const config = file("config.json", JSON.stringify(kept))
  const data = join(directory, "runlet.db")
  await Seed.seed(data, [
    { log: long, question: "A long one" },
    { log: first, question: "What is a cat?" },
    { log: second, question: "What is a cat?", again: true },
    { log: nasty, question: hostile },
    { log: recovered, question: "Recovered" },
    { log: traced, question: "Where is its trace?" },
    { log: removed, question: "What was it?", compacted: true }
  ])
  server = await Server.start(config, data)
  proxy = await Proxy.start(server.url)
  browser = await Chromium.launch()
})
afterAll(async () => {
  await browser?.close()
  await proxy?.stop()
  await server?.stop()
  rmSync(directory, { recursive: true, force: true })
})

const visit = async (options: BrowserContextOptions = {}) => {
  await context?.close()
  context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  page = await context.newPage()
  page.on("pageerror", (error) => mistakes.push(error.message))
  page.on("dialog", (dialog) => mistakes.push(`dialog: ${dialog.message()}`))
  page.on("console", (message) => {
    if (/Content.Security.Policy/i.test(message.text())) mistakes.push(message.text())
  })
  page.on("request", (request) => {
    if (request.method() !== "GET") writes.push(`${request.method()} ${request.url()}`)
    if (!request.url().startsWith(proxy.url) && !request.url().startsWith("blob:")) writes.push(request.url())
  })
}
beforeEach(async () => {
  mistakes = []
  writes = []
  proxy.refuse(false)
  proxy.cutAfter(Number.POSITIVE_INFINITY)
  await visit()
})
afterEach(async () => {
  await context.close()
  expect(mistakes).toEqual([])
  // The page asks this server alone, and never for a change.
  expect(writes).toEqual([])
})

const address = (log: ReadonlyArray<Envelope>) => `${proxy.url}/runs/${log[0]?.runId}/replay`
const show = async (log: ReadonlyArray<Envelope>, more = "") => {
  await page.goto(address(log) + more)
  await page.waitForFunction(
    () => document.querySelector(".plot") !== null && document.querySelector(".loading") === null
  )
}
const seqIs = (seq: number) =>
  page.waitForFunction((wanted) => document.querySelector<HTMLElement>("#answer")?.dataset.seq === String(wanted), seq)
const shown = async () => Number(await page.getAttribute("#answer", "data-seq"))
const press = (...keys: ReadonlyArray<string>) =>
  keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve())
const answer = () => page.$$eval("#answer .markdown", (all) => all.map((_) => _.textContent ?? "").join(" "))
const squeezed = (text: string) => text.replace(/\s+/g, " ").trim()
const fold = (log: ReadonlyArray<Envelope>, seq: number) => RunState.reduceAll(RunState.empty(""), log.slice(0, seq))

describe("the page", () => {
  test("is the same for every run, known or not, and says nothing of it", async () => {
    const pages = await Promise.all(
      [address(first), `${proxy.url}/runs/run_unknown/replay`, `${proxy.url}/replay`].map(async (url) => {
        const response = await fetch(url)
        return {
          status: response.status,
          text: await response.text(),
          policy: response.headers.get("content-security-policy")
        }
      })
    )
    expect(pages[0]?.status).toBe(200)
    expect(pages[0]?.policy).toContain("default-src 'none'")
    expect(pages[0]?.policy).toContain("script-src 'self'")
    expect(pages[1]).toEqual(pages[0])
    expect(pages[2]).toEqual(pages[0])
  })

  test("shows the answer as it stood at any place, gone to in any order", async () => {
    await show(first)
    await seqIs(first.length)
    expect(squeezed(await answer())).toContain("Cats are small animals that sleep most of the day.")
    for (const seq of [12, 22, 5, 19, first.length, 1, 18]) {
      await page.evaluate((hash) => (location.hash = hash), `#${seq}`)
      await seqIs(seq)
      const state = fold(first, seq)
      const text = `${RunState.text(state, "reasoning")} ${RunState.text(state)}`
      expect(squeezed(await answer())).toBe(squeezed(text))
      expect((await page.$$("#answer .call")).length).toBe(RunState.turns(state).flatMap(({ calls }) => calls).length)
      expect(await page.textContent(".inspector header code")).toBe(first[seq - 1]?.event.type)
      expect(await page.textContent("[aria-selected=true] .seq")).toBe(String(seq))
    }
  })

  test("is moved by keys, buttons, the timeline and the list", async () => {
    await show(first)
    await press("Home")
    await seqIs(1)
    await press("ArrowRight", "ArrowRight", "ArrowRight")
    await seqIs(4)
    await press("ArrowLeft")
    await seqIs(3)
    await press("Shift+ArrowRight")
    await seqIs(13)
    await press("]")
    const checkpoint = await shown()
    expect(first[checkpoint - 1]?.event.type).toBe("checkpoint")
    await press("[", "End")
    await seqIs(first.length)
    await page.click("[aria-label='One event back']")
    await seqIs(first.length - 1)
    const plot = await page.locator("#plot").boundingBox()
    if (plot === null) throw new Error("no timeline")
    await page.mouse.move(plot.x + plot.width / 4, plot.y + 10)
    await page.mouse.down()
    await page.mouse.move(plot.x + plot.width / 2, plot.y + 10, { steps: 5 })
    await page.mouse.up()
    await seqIs(Math.ceil(first.length / 2))
    await page.mouse.move(plot.x + plot.width * 0.9, plot.y + 10)
    await seqIs(Math.ceil(first.length / 2))
    await page.click("#events .event:has-text('Tool result')")
    await page.waitForFunction(
      () => document.querySelector(".inspector header code")?.textContent === "tool-call-result"
    )
    await page.focus("#events")
    const before = await shown()
    await press("ArrowDown")
    await seqIs(before + 1)
    // A key that has a meaning of its own where the focus is keeps it.
    await page.focus("#search")
    await page.keyboard.type("0 [")
    await press("Home", "ArrowRight")
    expect(await page.inputValue("#search")).toBe("0 [")
    expect(await shown()).toBe(before + 1)
  })

  test("plays to the end, at a speed that can be chosen, and can be paused", async () => {
    await show(first)
    await page.selectOption("#speed", "0.25")
    await press(" ")
    // It stands at the end before it begins anew.
    await page.waitForFunction((end) => {
      const seq = Number(document.querySelector<HTMLElement>("#answer")?.dataset.seq)
      return seq > 3 && seq < end
    }, first.length)
    await press(" ")
    const place = await shown()
    expect(place).toBeLessThan(first.length)
    expect(await page.getAttribute("#play", "aria-label")).toBe("Play")
    await page.selectOption("#speed", "64")
    await page.click("#play")
    await seqIs(first.length)
    await page.waitForSelector("#play[aria-label=Play]")
  })

  test("can be given to somebody at a place, and finds it again after a reload", async () => {
    await show(first, "#9")
    await seqIs(9)
    await press("ArrowRight")
    await page.waitForFunction(() => location.hash === "#10")
    await page.reload()
    await seqIs(10)
  })

  test("leads to the conversation that the run belongs to, and from there back", async () => {
    await show(first)
    await page.waitForSelector(`a[href="/#${Told.id("conv", 21)}"]`)
    await page.click("header a:has-text('Chat')")
    await page.waitForSelector(`a[href="/runs/${second[0]?.runId}/replay"]`)
    await page.goBack()
    await seqIs(first.length)
  })

  test("leads to the trace of the attempt on display, where one is kept", async () => {
    const trace = () => page.getAttribute("#trace", "href", { timeout: 2000 })
    await show(traced, "#3")
    const to = (digit: string) =>
      `https://traces.example.com/t/${digit.repeat(32)}?span=${digit.repeat(16)}&of="<runs>"`
    expect(await trace()).toBe(to("a"))
    await press("End")
    await page.waitForFunction((wanted) => document.querySelector("#trace")?.getAttribute("href") === wanted, to("b"))
    expect(await page.getAttribute("#trace", "rel")).toBe("noopener noreferrer")
    await show(first)
    expect(await page.$("#trace")).toBeNull()
  })

  test("finds what was written, over the pieces that it came in, and steps through it", async () => {
    await show(first)
    // Whoever writes at once writes into the search.
    await press("/", ...[..."small"], "Space", ...[..."animals"])
    await page.waitForSelector("text=2 found")
    expect(await page.$$eval(".event .says", (all) => all.map((_) => _.textContent?.trim()))).toEqual([
      "small",
      "animals"
    ])
    await press("Shift+Enter")
    await page.waitForFunction(
      () => document.querySelector("[aria-selected=true] .says")?.textContent?.trim() === "animals"
    )
    await press("Escape", "Home")
    await page.click("[aria-label='Show Text']")
    expect(await page.getAttribute("[aria-label='Show Text']", "aria-pressed")).toBe("false")
    await press("End", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft")
    expect(first[(await shown()) - 1]?.event.type).not.toBe("text-delta")
  })

  test("zooms by keys and wheel, and keeps the place in view", async () => {
    await show(first)
    await press("Home", "+", "+")
    await page.waitForSelector(".overview:not([hidden])")
    await press("End")
    const inView = () =>
      page.evaluate(() => {
        const head = document.querySelector(".playhead")?.getBoundingClientRect()
        const plot = document.querySelector("#plot")?.getBoundingClientRect()
        return head !== undefined && plot !== undefined && head.right >= plot.left && head.left <= plot.right + 1
      })
    await seqIs(first.length)
    expect(await inView()).toBe(true)
    await press("0")
    await page.waitForSelector(".overview[hidden]", { state: "attached" })
    await page.hover("#plot")
    await page.keyboard.down("Control")
    await page.mouse.wheel(0, -400)
    await page.keyboard.up("Control")
    await page.waitForSelector(".overview:not([hidden])")
  })

  test("counts the timeline by events or by time, with pauses shortened or in full", async () => {
    await show(first)
    const marks = () => page.$$eval(".ruler span", (all) => all.map((_) => _.textContent ?? "").filter((_) => _ !== ""))
    expect((await marks()).every((mark) => /^\d+$/.test(mark))).toBe(true)
    await page.selectOption("#axis", "short")
    await page.waitForFunction(() => document.querySelector(".ruler span")?.textContent === "0 s")
    expect((await marks()).every((mark) => / s$/.test(mark))).toBe(true)
  })

  test("shows what a resume would start from", async () => {
    await show(recovered)
    await press("Home", "]")
    await page.waitForSelector(".resume[aria-busy=false]")
    expect(await page.textContent(".resume")).toContain("Messages last sent to the model")
    expect(await page.textContent(".resume")).toContain("Draft kept")
    // The next one, quickly, is not mistaken for this one.
    await press("]", "[", "]")
    const place = 8
    await seqIs(place)
    await page.waitForFunction(
      (seq) =>
        document.querySelector(".inspector .facts dd")?.textContent === String(seq) &&
        document.querySelector(".resume")?.ariaBusy === "false",
      place
    )
    expect(await page.textContent(".resume")).toContain("Draft kept")
  })
})

describe("a run whose events were removed", () => {
  test("shows what they came to, and says so", async () => {
    await page.goto(address(removed))
    await page.waitForSelector("text=The events of this run were removed to save space")
    await page.waitForSelector("#answer .markdown")
    expect(await answer()).toBe("It is all that is left.")
    expect(await page.$$(".event")).toEqual([])
    await press("Home", "ArrowLeft", "]", "End", " ")
    expect(await answer()).toBe("It is all that is left.")
  })
})

describe("two runs", () => {
  test("are compared side by side, word by word", async () => {
    await show(second)
    await page.waitForFunction(() => document.querySelectorAll("#compare option").length === 3)
    await page.selectOption("#compare", { index: 1 })
    await page.waitForSelector("#comparison del")
    const marked = (selector: string) => page.$$eval(selector, (all) => all.map((_) => _.textContent?.trim()))
    expect(await marked("del")).toEqual(["hunt", "night"])
    expect(await marked("ins")).toEqual(["sleep", "day"])
    expect((await page.$$(".pair .call")).length).toBe(2)
    expect(await page.textContent(".options")).toMatch(/\d+ % of the words in both/)
    await page.waitForFunction((id) => location.search === `?with=${id}`, first[0]?.runId)
    // Both move together, by time.
    await press("Home")
    await page.waitForFunction(() => document.querySelectorAll(".pair").length === 0)
    await page.reload()
    await page.waitForSelector("#comparison .head")
    await page.click("text=Stop comparing")
    await page.waitForSelector("#answer")
    expect(await page.evaluate(() => location.search)).toBe("")
  })

  test("may come from a run and a file", async () => {
    await show(first)
    const [chooser] = await Promise.all([page.waitForEvent("filechooser"), page.selectOption("#compare", "file")])
    await chooser.setFiles(file("second.jsonl", lines(second)))
    await page.waitForSelector("#comparison del")
    expect(await page.textContent("del")).toBe("sleep")
  })
})

describe("a trace", () => {
  test("is downloaded as the server has it, and opened again without any server", async () => {
    await show(first)
    const [download] = await Promise.all([page.waitForEvent("download"), page.click("#download")])
    const path = join(directory, "downloaded.jsonl")
    await download.saveAs(path)
    expect(download.suggestedFilename()).toBe(`${first[0]?.runId}.jsonl`)
    const saved = Trace.read(readFileSync(path, "utf8"))
    expect(saved.problem).toBeUndefined()
    const kept = await (await fetch(`${proxy.url}/runs/${first[0]?.runId}/trace`)).text()
    expect(saved.envelopes).toEqual(Trace.read(kept).envelopes)
    const [header, served] = [readFileSync(path, "utf8"), kept].map((text) => JSON.parse(text.split("\n")[0] ?? ""))
    expect(header).toMatchObject({ format: "runlet-trace", version: 1 })
    expect(header.run).toEqual({ ...served.run, expiresAt: undefined })

    await page.goto(`${proxy.url}/replay`)
    await page.waitForSelector("text=Look at a run again")
    proxy.refuse(true)
    proxy.cut()
    await page.setInputFiles("#file", path)
    await seqIs(first.length)
    expect(squeezed(await answer())).toContain("Cats are small animals")
    await press("Home", "]")
    await page.waitForSelector("text=only the server knows it")
    expect(await page.textContent(".resume")).toContain("Draft kept")
    await page.click("[aria-label='Close this file']")
    await page.waitForSelector("text=Look at a run again")
  })

  test("is opened by dropping it on the page, also where the run is unknown", async () => {
    await page.goto(`${proxy.url}/runs/run_unknown/replay`)
    await page.waitForSelector("text=There is no such run here")
    const data = await page.evaluateHandle(
      (texts) => {
        const transfer = new DataTransfer()
        for (const text of texts) transfer.items.add(new File([text], "dropped.jsonl"))
        return transfer
      },
      [lines(first), lines(second)]
    )
    await page.dispatchEvent("body", "dragover", { dataTransfer: data })
    await page.waitForSelector(".drop")
    await page.dispatchEvent("body", "drop", { dataTransfer: data })
    await page.waitForSelector("#comparison del")
    expect(await page.textContent(".head .name")).toBe("dropped.jsonl")
  })

  test("that is broken says in which line, and shows what stands before", async () => {
    await page.goto(`${proxy.url}/replay`)
    const all = lines(first).split("\n")
    await page.setInputFiles("#file", file("hole.jsonl", all.toSpliced(10, 1).join("\n")))
    await page.waitForSelector(".notice-bad:has-text('Line 11: event 11 should be here, and this is 12.')")
    await seqIs(10)
    await page.setInputFiles("#file", file("cut.jsonl", lines(first).slice(0, -9)))
    await page.waitForSelector(
      `.notice-bad:has-text('Line ${first.length}: the file ends in the middle of this line.')`
    )
    await page.setInputFiles("#file", file("letter.jsonl", "Dear Sir,\nthis is no trace."))
    await page.waitForSelector("[role=alert]:has-text('letter.jsonl is not a sound trace')")
    expect(await page.textContent("[role=alert]")).toContain("Line 1: this is not JSON.")
    await page.setInputFiles("#file", file("good.jsonl", lines(first)))
    await seqIs(first.length)
    expect(await page.$$(".notice-bad")).toEqual([])
  })
})

describe("a run that goes on", () => {
  const start = async (message: string): Promise<string> => {
    const headers = { "content-type": "application/json", prefer: "respond-async" }
    const response = await fetch(`${server.url}/chat`, { method: "POST", headers, body: JSON.stringify({ message }) })
    const { runId } = (await response.json()) as { runId: string }
    return runId
  }

  test("is followed live, unless one looks at something else, through a cut network", async () => {
    const runId = await start("/slow /long 70")
    await page.goto(`${proxy.url}/runs/${runId}/replay`)
    await page.waitForSelector("#live[aria-pressed=true]")
    await page.waitForFunction(() => Number(document.querySelector<HTMLElement>("#answer")?.dataset.seq) > 20)
    await press("Home")
    await seqIs(1)
    expect(await page.getAttribute("#live", "aria-pressed")).toBe("false")
    const known = () => page.getAttribute("#plot", "aria-valuemax").then(Number)
    const before = await known()
    await page.waitForFunction((n) => Number(document.querySelector("#plot")?.ariaValueMax) > n, before)
    expect(await shown()).toBe(1)
    proxy.refuse(true)
    proxy.cut()
    await page.waitForSelector("text=Trying again")
    proxy.refuse(false)
    await page.click("#live")
    await page.waitForSelector("#live", { state: "detached" })
    expect(await known()).toBe(await shown())
    const log = Trace.read(await (await fetch(`${server.url}/runs/${runId}/trace`)).text()).envelopes
    expect(await shown()).toBe(log.length)
    expect(squeezed(await answer()).slice(-40)).toBe(squeezed(RunState.text(fold(log, log.length))).slice(-40))
  })

  test("waits for a person, and offers no way to answer", async () => {
    const runId = await start("/write List: milk")
    await page.goto(`${proxy.url}/runs/${runId}/replay`)
    await page.waitForSelector(".chip:has-text('Waiting for a person')")
    expect(await page.textContent("#answer .asked")).toContain("milk")
    const labels = await page.$$eval("button, a, input, select", (all) =>
      all.map((_) => `${_.textContent} ${_.ariaLabel}`)
    )
    expect(
      labels.filter((label) => /approve|reject|edit|cancel|stop\b|resume|regenerate|continue/i.test(label))
    ).toEqual([])
  })
})

describe("50,000 events", () => {
  test("load piece by piece from where the connection was cut, and none of them twice", async () => {
    proxy.cutAfter(2_000_000)
    // Whatever is asked after the cut waits until the page was looked at.
    let asked = 0
    let look: () => void = () => undefined
    const looked = new Promise<void>((done) => (look = done))
    await page.route(/\/events\?/, async (route) => {
      if (++asked > 1) await looked
      await route.continue()
    })
    await page.goto(address(long))
    await expect.poll(() => asked, { timeout: 30_000 }).toBe(2)
    await page.waitForSelector(".loading span:has-text('of 50,000 events')")
    const part = await page.getAttribute("#plot", "aria-valuemax").then(Number)
    expect(part).toBeGreaterThan(1)
    expect(part).toBeLessThan(50_000)
    // What is there can be looked at already.
    await press("Home")
    await seqIs(1)
    look()
    proxy.cutAfter(Number.POSITIVE_INFINITY)
    await page.waitForFunction(() => document.querySelector("#plot")?.ariaValueMax === "50000")
    const cursors = proxy.requests.flatMap(({ url }) =>
      url.includes(`${Long.runId}/events`) ? [Number(new URL(url, proxy.url).searchParams.get("after"))] : []
    )
    expect(cursors[0]).toBe(0)
    expect(cursors.length).toBeGreaterThan(1)
    expect(cursors.slice(1).every((cursor) => cursor > 0)).toBe(true)
    expect(await shown()).toBe(1)
  })

  test("cost no more to move in than a few do: no drawing of lanes, few elements, one look a frame", async () => {
    await page.addInitScript(() => {
      const work = { rects: 0 }
      Object.assign(globalThis, { work })
      for (const name of ["fillRect", "clearRect", "fill"] as const) {
        const draw = CanvasRenderingContext2D.prototype[name]
        Object.assign(CanvasRenderingContext2D.prototype, {
          [name](this: CanvasRenderingContext2D, ...given: ReadonlyArray<never>) {
            work.rects++
            return Reflect.apply(draw, this, given)
          }
        })
      }
    })
    const measure = async (log: ReadonlyArray<Envelope>) => {
      await page.goto(`${proxy.url}/replay`)
      await page.setInputFiles("#file", file("measured.jsonl", lines(log)))
      await page.waitForFunction((n) => document.querySelector("#plot")?.ariaValueMax === String(n), log.length)
      await seqIs(log.length)
      return page.evaluate(async (last) => {
        const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
        const counts: { rects: number } = Object(globalThis).work
        const plot = document.querySelector("#plot")
        const answer = document.querySelector("#answer")
        if (!plot || !answer) throw new Error("no page")
        const box = plot.getBoundingClientRect()
        await frame()
        await frame()
        let looks = 0
        let touched = 0
        const seen = new MutationObserver((records) => {
          looks += records.length
        })
        seen.observe(answer, { attributes: true, attributeFilter: ["data-seq"] })
        const all = new MutationObserver((records) => {
          for (const { addedNodes, removedNodes } of records) touched += addedNodes.length + removedNodes.length
        })
        all.observe(document.body, { childList: true, subtree: true })
        counts.rects = 0
        // A hasty hand: many movements between two frames, all over the run.
        const moves = 40
        const times = 25
        for (let move = 0; move < moves; move++) {
          for (let time = 0; time < times; time++) {
            const x = box.left + ((move * 7 + time * 3) % 100) * (box.width / 100)
            plot.dispatchEvent(
              new PointerEvent("pointermove", { clientX: x, clientY: box.top + 5, buttons: 1, bubbles: true })
            )
          }
          await frame()
        }
        plot.dispatchEvent(
          new PointerEvent("pointermove", {
            clientX: box.left + box.width / 2,
            clientY: box.top,
            buttons: 1,
            bubbles: true
          })
        )
        await frame()
        return {
          events: moves * times + 1,
          looks,
          touched: touched / looks,
          rects: counts.rects,
          at: Number(plot.ariaValueNow) / last,
          shown: Number(Object(answer).dataset.seq) / last,
          elements: document.querySelectorAll("*").length,
          rows: document.querySelectorAll(".event").length
        }
      }, log.length)
    }
    const few = await measure(Long.log(5_000))
    const many = await measure(long)
    for (const { at, elements, events, looks, rects, rows, shown: place } of [few, many]) {
      // Many movements, and a look at each frame's last.
      expect(events).toBe(1001)
      expect(looks).toBeLessThanOrEqual(42)
      expect(looks).toBeGreaterThanOrEqual(20)
      expect(rects).toBe(0)
      expect(at).toBeCloseTo(0.5, 2)
      expect(place).toBe(at)
      expect(rows).toBeLessThan(80)
      expect(elements).toBeLessThan(1500)
    }
    expect(many.touched).toBeLessThan(few.touched * 2 + 100)
  })

  test("show the end of what was written up to any place", async () => {
    await show(long)
    for (const seq of [50_000, 423, 25_000, 41_234, 2_050]) {
      await page.evaluate((hash) => (location.hash = hash), `#${seq}`)
      await seqIs(seq)
      const turn = RunState.turns(fold(long, seq)).findLast((one) => RunState.turnText(one) !== "")
      const text = turn === undefined ? "" : squeezed(RunState.turnText(turn))
      expect(text).not.toBe("")
      expect(squeezed(await answer())).toContain(text.slice(-60))
    }
    const least = await page.$$eval("#answer .markdown", (all) => all.length)
    await page.evaluate(() => (location.hash = "#50000"))
    await seqIs(50_000)
    const some = await page.$$eval("#answer .markdown", (all) => all.length)
    await page.click("text=Show what came before")
    await page.waitForFunction((n) => document.querySelectorAll("#answer .markdown").length > n, Math.max(some, least))
  })
})

describe("access", () => {
  test("without a sign-in nothing is shown but how to sign in, and then it goes on", async () => {
    const config = file(
      "private.json",
      JSON.stringify({
        ...kept,
        auth: {
          tokens: [
            { token: "alice-token-1", user: "alice" },
            { token: "bob-token-22", user: "bob" }
          ]
        }
      })
    )
    const data = join(directory, "private.db")
    await Seed.seed(data, [{ log: others, question: "Mine", user: "alice" }])
    const own = await Server.start(config, data)
    try {
      const url = `${own.url}/runs/${others[0]?.runId}/replay`
      await page.goto(url)
      writes = []
      await page.waitForSelector("text=You are signed out")
      expect(await page.textContent("body")).not.toContain("Alice")
      const signIn = async (token: string) => {
        const answered = await context.request.post(`${own.url}/session`, {
          data: { token },
          headers: { origin: own.url }
        })
        expect(answered.status()).toBe(204)
        await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")))
      }
      await signIn("bob-token-22")
      await page.waitForSelector("text=There is no such run here")
      expect(await page.textContent("body")).not.toContain("Alice")
      await signIn("alice-token-1")
      await seqIs(others.length)
      expect(await answer()).toContain("This is Alice's.")
      expect(writes.filter((write) => !write.startsWith(own.url))).toEqual([])
    } finally {
      await own.stop()
      writes = []
    }
  })

  test("markup and scripts in a model's, a tool's and a person's words are words", async () => {
    await show(nasty)
    for (const seq of [nasty.length, 5, 7, 10, 12]) {
      await page.evaluate((hash) => (location.hash = hash), `#${seq}`)
      await seqIs(seq)
    }
    await page.evaluate(() => (location.hash = "#6"))
    await page.evaluate((last) => (location.hash = `#${last}`), nasty.length)
    await seqIs(nasty.length)
    for (const details of await page.$$("details:not([open]) > summary")) await details.click()
    expect(await page.$$eval("img, #answer script, iframe, object, embed", (all) => all.length)).toBe(0)
    const links = await page.$$eval("#answer a", (all) => all.map((_) => _.getAttribute("href")))
    expect(links.filter((link) => link !== null)).toEqual(["https://example.com/"])
    expect(await page.textContent(".ending")).toContain("<script>alert(2)</script>")
    await page.click("#events .event >> nth=3")
  })
})

describe("manners", () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8")
  const problems = async () => {
    const session = await context.newCDPSession(page)
    // The page's own policy, rightly, does not let a script of ours in.
    await session.send("Runtime.evaluate", { expression: axe })
    return page.evaluate(async () => {
      const {
        violations
      }: { violations: ReadonlyArray<{ id: string; nodes: ReadonlyArray<{ html: string; failureSummary: string }> }> } =
        await Object(globalThis).axe.run(document)
      return violations.map(
        ({ id, nodes }) => `${id}: ${nodes.map(({ failureSummary, html }) => `${html} ${failureSummary}`).join("\n")}`
      )
    })
  }

  for (const colorScheme of ["light", "dark"] as const) {
    test(`axe finds nothing, ${colorScheme}: a run, a checkpoint, two runs, a phone, a broken file, no run`, async () => {
      await visit({ colorScheme })
      await show(nasty)
      expect(await problems()).toEqual([])
      await show(recovered)
      await press("Home", "]")
      await page.waitForSelector(".resume[aria-busy=false]")
      expect(await problems()).toEqual([])
      await show(second, `?with=${first[0]?.runId}`).catch(() => {})
      await page.waitForSelector("#comparison del")
      expect(await problems()).toEqual([])
      await visit({ colorScheme, viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true })
      await show(first)
      expect(await problems()).toEqual([])
      await page.click(".narrow-only")
      expect(await problems()).toEqual([])
      await page.goto(`${proxy.url}/replay`)
      await page.setInputFiles("#file", file("bad.jsonl", "no"))
      await page.waitForSelector("[role=alert]")
      expect(await problems()).toEqual([])
    })
  }

  test("a phone shows one view at a time and needs no sideways scrolling", async () => {
    await visit({ viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true })
    await show(first)
    expect(await page.isVisible("#answer")).toBe(true)
    expect(await page.isVisible("#events")).toBe(false)
    await page.tap(".tabs [data-of=events]")
    expect(await page.isVisible("#events")).toBe(true)
    expect(await page.isVisible("#answer")).toBe(false)
    await page.tap(".tabs [data-of=details]")
    expect(await page.isVisible("#details")).toBe(true)
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    expect(wide).toBeLessThanOrEqual(0)
    await page.tap("#plot")
    await page.waitForFunction((n) => document.querySelector("#plot")?.ariaValueNow !== String(n), first.length)
  })

  test("speaks Chinese where the browser does, and English where a person says so", async () => {
    await visit({ locale: "zh-CN" })
    await show(first)
    expect(await page.getAttribute("html", "lang")).toBe("zh-CN")
    expect(await page.textContent("h1")).toBe("回放")
    expect(await page.getAttribute("#plot", "aria-valuetext")).toContain("第")
    await page.selectOption("select[aria-label=语言]", "en")
    await page.waitForFunction(() => document.querySelector("h1")?.textContent === "Replay")
    expect(await page.getAttribute("html", "lang")).toBe("en")
  })

  test("says where it rests to those who listen, and not every word while it plays", async () => {
    await show(first)
    await press("Home", "ArrowRight", "ArrowRight")
    await page.waitForFunction(() => document.querySelector("p[role=status]")?.textContent?.startsWith("Event 3 of"))
    expect(await page.getAttribute("#plot", "aria-valuetext")).toMatch(/^Event 3 of \d+, State Running, at /)
    await page.selectOption("#speed", "0.25")
    await press(" ")
    await page.waitForFunction(() => Number(document.querySelector<HTMLElement>("#answer")?.dataset.seq) > 6)
    expect(await page.textContent("p[role=status]")).toBe("")
  })

  test("nothing moves by itself for those who want it so", async () => {
    await visit({ reducedMotion: "reduce" })
    await show(first)
    await press("Home", "End")
    expect(await page.evaluate(() => document.getAnimations().length)).toBe(0)
  })
})
