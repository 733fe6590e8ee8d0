import * as FastCheck from "effect/FastCheck"
import { afterAll, beforeAll, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import type { Client } from "./support/Client.js"
import { send } from "./support/ToolServer.js"
import * as World from "./support/World.js"

const aliceToken = "alice-8f14e45f-ceea-467a"
const envCanary = 'env/c4ca4238"a0b9 23820dcc509a6f75849b'
const urlCanary = "url-c81e728d9d4c2f636f067f89cc14862c"
/** What the configuration holds, by where. */
const configured = {
  apiKey: World.apiKey,
  toolHeader: World.toolSecret,
  userToken: aliceToken,
  variable: envCanary,
  address: urlCanary
}
/** What nobody has told the server, of forms that it knows. */
const wellKnown = {
  openai: "sk-proj-Zt4f0Nq2vXy7KcRb9mWd1sLpA6hEj3gU8oTi5",
  github: "ghp_1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8S",
  aws: "AKIA2E0A8F3B244C9986",
  jwt: "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJlLWNhbmFyeS0xMjM0NTY",
  pem: "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIcanaryMTIzNDU2Nzg5MDEyMzQ1Njc4OTA\nMTIzNDU2Nzg5MDEy\n-----END EC PRIVATE KEY-----"
}
const all = { ...configured, ...wellKnown }
/** What only its name makes a secret, so that it is one in the words of tools alone. */
const labelled = { device_code: "GmRhmhcxhwAzkoEqiMEgDnyEysNkuNhszIySk9eS", cookie: "sid=31f0c1a9b2; theme=dark" }

let world: World.World
let alice: Client
beforeAll(async () => {
  process.env.RUNLET_TEST_CANARY = envCanary
  world = await World.start({
    users: { alice: aliceToken },
    config: { outgoing: { allowHosts: null } },
    flags: ["--log-level", "all"],
    tools: [
      {
        name: "with_query",
        description: "Is called at an address with a key in it",
        kind: "readonly",
        url: `http://127.0.0.1:9/with_query?key=${urlCanary}`,
        headers: { "x-variable": { env: "RUNLET_TEST_CANARY" } }
      }
    ]
  })
  alice = world.as(aliceToken)
})
afterAll(() => world.stop())

const json = (text: string) => JSON.stringify(text).slice(1, -1)
const writings: ReadonlyArray<(text: string) => string> = [
  (text) => text,
  json,
  (text) =>
    text.replace(/[\x20-\x7e]/g, (char, at: number) =>
      at % 2 === 0 ? `\\u00${char.charCodeAt(0).toString(16)}` : json(char)
    ),
  encodeURIComponent
]

/** A text as somebody would read it who knows about escapes, to any depth. */
const read = (text: string, depth = 3): string =>
  depth === 0
    ? text
    : text +
      read(
        text
          .replace(/\\+u([0-9a-fA-F]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
          .replace(/\\+n/g, "\n")
          .replace(/\\+(["\\/])/g, "$1")
          .replace(/%([2-7][0-9a-fA-F])/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16))),
        depth - 1
      )

const leaks = (text: string, secrets: Record<string, string>): ReadonlyArray<string> => {
  const found = read(text)
  return Object.entries(secrets).flatMap(([name, secret]) => (found.includes(secret) ? [name] : []))
}

const cut = (text: string, sizes: ReadonlyArray<number>): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  for (let i = 0, n = 0; i < text.length; n++) {
    const size = sizes[n % sizes.length] ?? 1
    pieces.push(text.slice(i, i + size))
    i += size
  }
  return pieces
}

interface Leak {
  readonly place: number
  readonly secret: string
  readonly writing: (text: string) => string
  readonly sizes: ReadonlyArray<number>
}

const leak: FastCheck.Arbitrary<Leak> = FastCheck.record({
  place: FastCheck.nat(9),
  secret: FastCheck.constantFrom(...Object.values(all)),
  writing: FastCheck.constantFrom(...writings),
  sizes: FastCheck.array(FastCheck.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 5 })
})

/** Everywhere that a model server or a tool can say something. */
const script = (message: string, { place, secret, sizes, writing }: Leak): unknown => {
  const said = `it is ${writing(secret)} as you see`
  const pieces = cut(said, sizes)
  const call = (name: string, args: object) => Script.calls({ id: "call_1", name, args: JSON.stringify(args) })
  const tool = (name: string, handler: Parameters<typeof world.tools.on>[2], args: object = { q: message }) => {
    world.tools.on(name, message, handler)
    world.upstream.script(message, [call(name, args), Script.answer("Seen.")])
  }
  switch (place) {
    case 0:
      return world.upstream.script(message, [
        Script.reply([pieces.map(Script.text), Script.finish("stop"), Script.done])
      ])
    case 1:
      return world.upstream.script(message, [
        Script.reply([
          pieces.map((piece) => Script.delta({ reasoning_content: piece })),
          Script.text("Thought."),
          Script.finish("stop"),
          Script.done
        ])
      ])
    case 2: {
      const args = cut(JSON.stringify({ q: said }), sizes)
      return world.upstream.script(message, [
        Script.reply([
          args.map((part, index) =>
            Script.toolCall({ index: 0, ...(index === 0 && { id: "call_1", name: "lookup" }), args: part })
          ),
          Script.finish("tool_calls"),
          Script.done
        ]),
        Script.answer("Looked.")
      ])
    }
    case 3:
      return world.upstream.script(message, [
        Script.reply([
          Script.toolCall({ index: 0, id: secret, name: secret, args: "{}" }),
          Script.finish("tool_calls"),
          Script.done
        ]),
        Script.answer("No such tool.")
      ])
    case 4:
      return world.upstream.script(message, [
        Script.body(400, "application/json", JSON.stringify({ error: { message: said, code: secret, type: said } }))
      ])
    case 5:
      return world.upstream.script(message, [
        Script.reply([pieces.map(Script.text), Script.data({ error: { message: said, type: secret } })])
      ])
    case 6:
      return tool("lookup", (_, response) =>
        send(response, { result: said, [secret]: [said], headers: { "set-cookie": labelled.cookie }, ...labelled })
      )
    case 7:
      return tool("read_doc", (_, response) => send(response, { error: { message: said }, message: said }, 422))
    case 8:
      return tool("lookup", (_, response) => {
        response.writeHead(200, { "content-type": "text/plain" })
        response.end(`${said}\ndevice_code=${labelled.device_code}\nCookie: ${labelled.cookie}\n`)
      })
    default:
      return tool(
        "save_note",
        ({ phase }, response) =>
          send(
            response,
            phase === "commit" ? { message: said } : { preview: said, ...labelled },
            phase === "commit" ? 409 : 200
          ),
        { doc: "d", text: message }
      )
  }
}

test("nobody ever gets to read a secret, wherever it comes from", { timeout: 120_000 }, async () => {
  const secrets = { ...all, ...labelled }
  const seen: Array<readonly [string, string]> = []
  const look = async (path: string) => seen.push([path, (await alice.call("GET", path)).text])
  const cases = FastCheck.sample(leak, { numRuns: 40, seed: 20_261_130 })
  const runs = await Promise.all(
    cases.map(async (one, index) => {
      const message = `Leak ${index}`
      script(message, { ...one, place: index % 10 })
      const { conversationId, runId } = await alice.start(message)
      const end = await alice.settled(runId)
      if (end.status === "waiting_approval") {
        const [pending] = end.pendingApprovals
        await alice.decide(runId, pending?.approvalId ?? "", "approve")
        await alice.until(runId, "asked again or over", ({ pendingApprovals, status }) =>
          status !== "waiting_approval"
            ? status === "completed"
            : pendingApprovals[0]?.approvalId !== pending?.approvalId
        )
      }
      return { conversationId, runId, index }
    })
  )
  // What a person brings along is stored like everything else.
  const mine = await alice.start({
    message: `Is ${wellKnown.github} mine? ${World.apiKey}`,
    metadata: { note: wellKnown.openai },
    currentDocument: { id: "d", title: wellKnown.aws }
  })
  await alice.settled(mine.runId)
  await alice.call("PATCH", `/conversations/${mine.conversationId}`, { title: `about ${World.toolSecret}` })
  for (const { conversationId, runId } of [...runs, mine]) {
    const { lastSeq, status } = await alice.snapshot(runId)
    await look(`/runs/${runId}`)
    await look(`/runs/${runId}/trace`)
    await look(`/runs/${runId}/checkpoints/${lastSeq - 1}`)
    await look(`/conversations/${conversationId}`)
    if (status !== "waiting_approval") {
      const reading = await alice.events(runId)
      await reading.ended
      seen.push([`/runs/${runId}/events`, reading.raw()])
    }
  }
  for (const path of ["/", "/runs", "/conversations", "/openapi.json", "/docs", "/metrics", "/healthz"])
    await look(path)
  seen.push(["the model", world.upstream.requests.map(({ text }) => text).join("\n")])
  seen.push(["the tools", JSON.stringify(world.tools.ledger)])
  seen.push(["the logs", world.output()])
  seen.push(...(await World.serving.stored(world.data)))
  expect(seen.length).toBeGreaterThan(160)
  expect(seen.filter(([, text]) => text.includes("[redacted]")).length).toBeGreaterThan(40)
  expect(seen.flatMap(([where, text]) => leaks(text, secrets).map((name) => `${name} in ${where}`))).toEqual([])
})
