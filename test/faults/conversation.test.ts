import { readFileSync } from "node:fs"
import * as Net from "node:net"
import Database from "better-sqlite3"
import { afterAll, beforeAll, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import * as World from "../e2e/support/World.js"

/** A conversation that is larger than what anybody may hold in memory for each who asks. */
const exchanges = 150
const chars = 400_000
const mb = 1024 * 1024

let world: World.World
let conversationId = ""
beforeAll(async () => {
  world = await World.start()
  world.upstream.script("The first question", [Script.answer("The first answer")])
  const run = await world.client.start("The first question")
  await world.client.settled(run.runId)
  conversationId = run.conversationId
  await world.server().stop()
  const database = new Database(world.data)
  const columns = database
    .prepare<[], { readonly name: string }>("SELECT name FROM pragma_table_info('runs') WHERE name <> 'key'")
    .all()
    .map(({ name }) => name)
  const copied: Record<string, string> = {
    run_id: "@run",
    user_message_id: "@question",
    assistant_message_id: "@answer",
    ord: "ord + @n"
  }
  const copy = database.prepare(
    `INSERT INTO runs (${columns.join()}) SELECT ${columns.map((name) => copied[name] ?? name).join()} FROM runs WHERE run_id = '${run.runId}'`
  )
  const say = database.prepare(
    "INSERT INTO messages (message_id, conversation_id, role, content, created_at) VALUES (?, ?, ?, ?, 1)"
  )
  database.transaction(() => {
    for (let n = 1; n <= exchanges; n++) {
      const id = (kind: string) => `${kind}_00000000-0000-7000-8000-${String(n).padStart(12, "0")}`
      const [question, answer] = [id("msg"), id("msg").replace("0000-7000", "1111-7000")]
      say.run(question, conversationId, "user", `${n} `.padEnd(chars, "x"))
      say.run(answer, conversationId, "assistant", `Answer ${n}`)
      copy.run({ run: id("run"), question, answer, n })
    }
  })()
  database.close()
  await world.restart()
}, 60_000)
afterAll(() => world.stop())

const resident = (): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${world.server().pid}/status`, "utf8"))?.[1]) * 1024

/** How much memory the server took at most, beyond what it had before. */
const grown = async (work: () => Promise<void>): Promise<number> => {
  const before = resident()
  let most = before
  const look = setInterval(() => {
    most = Math.max(most, resident())
  }, 20)
  await work()
  clearInterval(look)
  return most - before
}

test.each([
  ["the messages", () => `/conversations/${conversationId}`],
  ["the messages of a chat", () => `/adapters/ai-sdk/chat/${conversationId}`]
])(
  "%s of a long conversation are answered whole, to many at once, without being held",
  async (what, path) => {
    const whole = await world.client.call("GET", path())
    expect(whole.status).toBe(200)
    expect(whole.body.messages).toHaveLength(2 * exchanges + 2)
    expect(whole.text.length).toBeGreaterThan(exchanges * chars)
    const bytes = await grown(async () => {
      await Promise.all(
        Array.from({ length: 10 }, async () => {
          const response = await fetch(`${world.url()}${path()}`)
          const reader = response.body?.getReader()
          let size = 0
          for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
            size += next.value.length
          }
          expect(size).toBe(Buffer.byteLength(whole.text))
        })
      )
    })
    console.info(
      `${what}: ${Math.round(whole.text.length / mb)} MB, ten times at once, in ${Math.round(bytes / mb)} MB`
    )
    expect(bytes).toBeLessThan(200 * mb)
  },
  60_000
)

test("who asks for a long conversation and does not read it costs next to nothing", async () => {
  const sockets: Array<Net.Socket> = []
  const bytes = await grown(async () => {
    const { hostname, port } = new URL(world.url())
    for (let n = 0; n < 40; n++) {
      const socket = Net.connect(Number(port), hostname)
      socket.on("error", () => undefined)
      socket.pause()
      socket.write(`GET /conversations/${conversationId} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
      sockets.push(socket)
    }
    for (let n = 0; n < 20; n++) expect((await world.client.call("GET", "/runs?limit=1")).status).toBe(200)
  })
  for (const socket of sockets) socket.destroy()
  expect(bytes).toBeLessThan(300 * mb)
}, 60_000)
