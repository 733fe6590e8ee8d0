import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"
import { afterEach, describe, expect, it } from "vitest"
import { eventually } from "../e2e/support/Waiting.js"
import { bundle, type Program, printed, start } from "./support.js"

const programs: Array<Program> = []
afterEach(async () => {
  await Promise.all(programs.splice(0).map(({ close }) => close()))
})

const launch = async (name: string, env: Record<string, string> = {}, args: ReadonlyArray<string> = []) => {
  const program = start(await bundle(readFileSync(join(__dirname, `${name}.ts`), "utf8"), name), env, args)
  programs.push(program)
  return program
}

const addressOf = async (program: Program) => (await printed(program, /http:\/\/[\w.]+:(\d+)/))[1]

describe("an HttpApi of one's own", () => {
  it("answers questions, shows them behind any event to their customer alone, and stops them", async () => {
    const url = `http://127.0.0.1:${await addressOf(await launch("http-api", { PORT: "0" }))}`
    const call = (customer: string, method: string, path: string, headers: Record<string, string> = {}) =>
      fetch(`${url}${path}`, { method, headers: { customer, ...headers } })

    const asked = await call("ada", "POST", "/orders/17/questions")
    expect(asked.status).toBe(202)
    const { answer } = (await asked.json()) as { answer: string }
    const stream = await call("ada", "GET", `/answers/${answer}`)
    expect(stream.headers.get("content-type")).toContain("text/event-stream")
    const text = await stream.text()
    expect(text).toContain('"result":{"state":"on its way"}')
    const ids = [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id))
    expect(ids).toEqual(ids.map((_, index) => index + 1))
    const rest = await (await call("ada", "GET", `/answers/${answer}`, { "last-event-id": "5" })).text()
    expect(rest).toBe(text.slice(text.indexOf("id: 6\n")))
    expect(await (await call("ada", "POST", `/answers/${answer}/stop`)).json()).toEqual({ status: "completed" })

    for (const [customer, method, path] of [
      ["bob", "POST", "/orders/17/questions"],
      ["bob", "GET", `/answers/${answer}`],
      ["bob", "POST", `/answers/${answer}/stop`],
      ["ada", "GET", "/answers/none"]
    ] as const) {
      const refused = await call(customer, method, path)
      expect([refused.status, ((await refused.json()) as { _tag: string })._tag]).toEqual([404, "NotFound"])
    }
    const beyond = await call("ada", "GET", `/answers/${answer}`, { "last-event-id": "999" })
    expect(beyond.status).toBe(400)
  })
})

describe("an agent in a terminal", () => {
  it("answers, asks before it writes, and takes no for an answer", async () => {
    for (const reply of ["yes", "no"]) {
      const question = '/call write_file {"file":"list.txt","text":"milk"}'
      const program = await launch("cli-agent", {}, [question])
      await printed(program, /write_file\? \[y\/N\]/)
      expect(program.output()).toContain('"after": "milk"')
      program.child.stdin.write(`${reply}\n`)
      expect(await program.ended).toBe(0)
      const written = () => readFileSync(join(program.cwd, "list.txt"), "utf8")
      if (reply === "yes") expect(written()).toBe("milk")
      else expect(written).toThrow("ENOENT")
    }
  })

  it("reads what is there, and nothing elsewhere", async () => {
    const program = await launch("cli-agent", {}, ['/call read_file {"file":"../secret"}'])
    expect(await program.ended).toBe(0)
    expect(program.output()).not.toContain("· read_file")
  })

  it("stops its run when it is interrupted", async () => {
    const program = await launch("cli-agent", {}, ["/long 5000"])
    await printed(program, /\w+ \w+/)
    program.child.kill("SIGINT")
    await program.ended
    const database = new Database(join(program.cwd, ".agent/runs.db"), { readonly: true })
    expect(database.prepare("SELECT status FROM runs").all()).toEqual([{ status: "cancelled" }])
    database.close()
  })
})

describe("two services that share a database", () => {
  it("divide the work, and one goes on with what the other one left", async () => {
    const directory = mkdtempSync(join(tmpdir(), "runlet-services-"))
    const env = { PORT: "0", DATABASE: join(directory, "runs.db") }
    try {
      const desk = await launch("two-services", env, ["desk"])
      let url = `http://127.0.0.1:${await addressOf(desk)}`
      const post = async (message: string) => {
        const body = JSON.stringify({ message, background: true })
        const answer = await fetch(`${url}/chat`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body
        })
        return ((await answer.json()) as { runId: string }).runId
      }
      const run = async (id: string) =>
        (await fetch(`${url}/runs/${id}`)).json() as Promise<{
          status: string
          text: string
          attempt: number
          toolCalls: ReadonlyArray<{ state: string; approval?: { decision?: { reason?: string } } }>
        }>
      const until = (id: string, status: string) =>
        eventually(`the run to be ${status}`, async () => {
          const now = await run(id)
          return now.status === status ? now : undefined
        })

      const small = await post('/call refund {"order":"17","euros":20}')
      const large = await post('/call refund {"order":"18","euros":900}')
      await until(small, "waiting_approval")
      const office = await launch("two-services", env, ["office"])
      await printed(office, /approved 20 euros for order 17/)
      const [call] = (await until(small, "completed")).toolCalls
      expect([call?.state, call?.approval?.decision?.reason]).toEqual(["done", "a small refund"])
      expect((await run(large)).status).toBe("waiting_approval")

      // The office rests, so that it is the desk that has the run when it dies.
      await office.close()
      const left = await post("/long 500")
      await until(left, "streaming")
      desk.child.kill("SIGKILL")
      await desk.ended
      await launch("two-services", env, ["office"])
      url = `http://127.0.0.1:${await addressOf(await launch("two-services", env, ["desk"]))}`
      const { attempt, text } = await until(left, "completed")
      expect([attempt > 1, text.split(/\s+/).length]).toEqual([true, 500])
      expect((await run(large)).status).toBe("waiting_approval")
    } finally {
      await Promise.all(programs.splice(0).map(({ close }) => close()))
      rmSync(directory, { recursive: true, force: true })
    }
  })
})
