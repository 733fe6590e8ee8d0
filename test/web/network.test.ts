/** The page through a network and a server that fail: nothing is lost, nothing repeats, and nobody needs to reload. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { eventually, pause } from "../e2e/support/Waiting.js"
import * as Chat from "./support/Chat.js"

let chat: Chat.Chat
beforeAll(async () => {
  chat = await Chat.start()
})
beforeEach(async () => {
  chat.proxy.refuse(false)
  await chat.renew()
})
afterAll(() => chat.stop())

const pieces = (count: number, waitMs: number, from = 0) =>
  Array.from({ length: count }, (_, i) => [Script.text(`${from + i} `), Script.wait(waitMs)]).flat()
const told = (count: number) => Array.from({ length: count }, (_, i) => `${i} `).join("")
const end = [Script.finish("stop"), Script.usage(10, 20), Script.done]
const script = (message: string, ...replies: ReadonlyArray<Script.Reply>) =>
  chat.world.upstream.script(message, replies)
const watching = (from: number) => chat.proxy.requests.slice(from).filter(({ url }) => url.includes("/events"))

/** Nothing was shown that the whole text does not begin with. */
const neverWrong = async (tab: Chat.Tab, whole: string) => {
  for (const text of await tab.shown()) expect(whole.startsWith(text.trimEnd()), `shown: ${text}`).toBe(true)
}

/** Nothing more is asked once everything has come to an end. */
const quiet = async () => {
  await pause(500)
  const { length } = chat.proxy.requests
  await pause(3000)
  expect(chat.proxy.requests.slice(length)).toEqual([])
}

test("an answer that is cut again and again in mid-word comes whole, and then nothing more is asked", async () => {
  script("Cut", Script.reply([...pieces(150, 30), Script.gate("cut enough"), ...end]))
  const tab = await chat.tab()
  await tab.send("Cut")
  for (let cut = 1; cut <= 4; cut++) {
    await tab.until(` ${cut * 20} `)
    const from = chat.proxy.requests.length
    chat.proxy.cut()
    await eventually("to come back", () => (watching(from).length > 0 ? true : undefined))
  }
  await chat.world.upstream.release("cut enough")
  await tab.status("completed")
  expect(await tab.text()).toBe(told(150))
  await neverWrong(tab, told(150))
  await quiet()
})

test("a server that is killed and started again in mid-answer goes on, and nothing repeats", async () => {
  script(
    "Killed",
    Script.reply([...pieces(40, 5), Script.text("and half a wo"), Script.gate("never")]),
    Script.reply([...pieces(80, 10), ...end])
  )
  const tab = await chat.tab()
  await tab.send("Killed")
  await tab.until("half a wo")
  await chat.world.restart()
  chat.proxy.retarget(chat.world.url())
  await tab.until("79")
  await tab.status("completed")
  expect(await tab.text()).toBe(told(80))
  const wholes = [`${told(40)}and half a wo`, told(80)]
  for (const text of await tab.shown()) {
    expect(
      wholes.some((whole) => whole.startsWith(text.trimEnd())),
      `shown: ${text}`
    ).toBe(true)
  }
  // One sentence, though two attempts wrote it.
  expect(await tab.page.$$(".turn:last-of-type .answer > .text > p")).toHaveLength(1)
  expect(await tab.page.textContent(".facts")).toContain("attempt 2")
  expect(chat.world.upstream.asked("Killed")).toHaveLength(2)
})

test("a stop in mid-word keeps what was there, here, after a reload, and on the server", async () => {
  script("Stop", Script.reply([Script.text("A sentence that ends in the mid"), Script.gate("never stopped"), ...end]))
  const tab = await chat.tab()
  await tab.send("Stop")
  await tab.until("in the mid")
  await tab.page.keyboard.press("Escape")
  await tab.status("cancelled")
  await chat.world.upstream.closed("Stop")
  expect(await tab.text()).toBe("A sentence that ends in the mid")
  await quiet()
  await tab.page.reload()
  await tab.status("cancelled")
  expect(await tab.text()).toBe("A sentence that ends in the mid")
  expect(await tab.page.textContent(".ending")).toBe("Stopped.")
})

test("an approval waits through a restart, on a page that stays and on one that comes, and is done once", async () => {
  script(
    "Save it",
    Script.calls({ id: "save", name: "save_note", args: JSON.stringify({ doc: "restart", text: "kept" }) }),
    Script.answer("Saved.")
  )
  const tab = await chat.tab()
  await tab.send("Save it")
  await tab.page.waitForSelector(".approval")
  await tab.status("waiting_approval")
  await chat.world.restart()
  chat.proxy.retarget(chat.world.url())
  chat.proxy.cut()
  const other = await chat.tab(new URL(tab.page.url()).hash)
  await other.page.waitForSelector(".approval:has-text('kept')")
  expect(await tab.page.isVisible(".approval:has-text('kept')")).toBe(true)
  await other.page.click("text=Approve")
  for (const one of [tab, other]) {
    await one.until("Saved.")
    await one.status("completed")
    expect(await one.page.$$(".approval")).toEqual([])
    expect(await one.page.getAttribute(".tool", "data-state")).toBe("applied")
  }
  expect(
    chat.world.tools.ledger.filter(({ input, phase }) => phase === "commit" && input.doc === "restart")
  ).toHaveLength(1)
})

test("two tabs show the same live through one connection, and either may ask and stop", async () => {
  script("Both", Script.reply([...pieces(60, 40), Script.gate("both"), ...end]))
  script("From the second", Script.reply([Script.text("To the end"), Script.gate("second"), ...end]))
  const one = await chat.tab()
  const from = chat.proxy.requests.length
  await one.send("Both")
  await one.until("5 ")
  const two = await chat.tab(new URL(one.page.url()).hash)
  await two.until("10 ")
  for (const tab of [one, two]) await tab.until("40 ")
  expect(watching(from)).toHaveLength(1)
  await two.send("From the second")
  for (const tab of [one, two]) await tab.turns(2)
  // What is stopped is what is under way, not what was asked last.
  await two.page.click(".stop")
  for (const tab of [one, two]) {
    await tab.page.waitForSelector(".turn:first-of-type .ending:has-text('Stopped.')")
    await tab.until("To the end")
  }
  await chat.world.upstream.release("second")
  for (const tab of [one, two]) await tab.status("completed")
  const first = await Promise.all([one, two].map(({ page }) => page.textContent(".turn:first-of-type .answer > .text")))
  expect(first[0]).toBe(first[1])
  expect(told(60).startsWith(first[0] ?? "-")).toBe(true)
  await quiet()
})

test("a connection that dies without a word is noticed", async () => {
  script(
    "Black hole",
    Script.reply([Script.text("Before. "), Script.gate("in the hole"), Script.text("After."), ...end])
  )
  const tab = await chat.tab()
  await tab.page.clock.install()
  await tab.page.reload()
  await tab.send("Black hole")
  await tab.until("Before.")
  chat.proxy.blackHole()
  await chat.world.upstream.release("in the hole")
  await pause(500)
  expect((await tab.text()).trim()).toBe("Before.")
  // The page is patient for two and a half heartbeats; a request that is sent into another dead connection, for one.
  await eventually("the rest", async () => {
    await tab.page.clock.fastForward(10_000)
    return (await tab.text()).includes("After.") ? true : undefined
  })
  await tab.status("completed")
  await neverWrong(tab, "Before. After.")
})

test("a page that was away from the network for the end of an answer finds it by itself", async () => {
  script("Away", Script.reply([Script.text("Half "), Script.gate("away"), Script.text("and whole."), ...end]))
  const tab = await chat.tab()
  await tab.send("Away")
  await tab.until("Half")
  await chat.context().setOffline(true)
  chat.proxy.cut()
  await tab.status("cut")
  await chat.world.upstream.release("away")
  await pause(500)
  await chat.context().setOffline(false)
  await tab.until("and whole.")
  await tab.status("completed")
  await neverWrong(tab, "Half and whole.")
})
