/** A server, the model and the tools that it uses, and clients of it: what every test file begins with. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import * as Client from "./Client.js"
import * as Rules from "./Rules.js"
import * as Server from "./Server.js"
import * as ToolServer from "./ToolServer.js"
import * as Upstream from "./Upstream.js"

/** The key that the server presents to the model. Nobody else may ever see it. */
export const apiKey = "sk-canary-3f9c1e7a5b"
/** What the server sends to its tools. */
export const toolSecret = "tool-canary-8d27c4b1"

export interface World {
  readonly upstream: Upstream.Upstream
  readonly tools: ToolServer.ToolServer
  readonly client: Client.Client
  readonly as: (token: string) => Client.Client
  readonly server: () => Server.Server
  readonly url: () => string
  /** The database file. */
  readonly data: string
  /** What all processes of the server have written so far. */
  readonly output: () => string
  /** Ends the process, if it still runs, and starts another one on the same data. */
  readonly restart: (how?: Server.How) => Promise<void>
  /** What holds for every run, checked from outside, by the run's owner. */
  readonly check: (run: string | { readonly runId: string }, options?: Rules.Options) => Promise<void>
  readonly stop: () => Promise<void>
}

export interface Options {
  readonly limits?: Record<string, unknown>
  readonly resume?: Record<string, unknown>
  readonly tools?: ReadonlyArray<Record<string, unknown>>
  readonly users?: Record<string, string>
  readonly models?: Record<string, Record<string, unknown>>
  /** Further keys of the configuration. */
  readonly config?: Record<string, unknown>
  /** Options of the program, before its command. */
  readonly flags?: ReadonlyArray<string>
  /** Where the database is put; somebody else clears it away. */
  readonly directory?: string
  readonly how?: Server.How
}

const text = { type: "object", properties: { q: { type: "string" } }, required: ["q"], additionalProperties: false }
const note = {
  type: "object",
  properties: { doc: { type: "string" }, text: { type: "string" } },
  required: ["doc", "text"],
  additionalProperties: false
}

const offered = (url: string) => [
  { name: "lookup", title: "Looking up", description: "Looks a word up", kind: "readonly", parameters: text },
  { name: "read_doc", description: "Reads a document", kind: "readonly" },
  { name: "now", description: "Tells the time", kind: "readonly", parameters: { type: "object", properties: {} } },
  { name: "nap", description: "May take its time", kind: "readonly", timeoutMs: 700 },
  { name: "save_note", description: "Saves a note", kind: "write", parameters: note, statusUrl: `${url}/status` },
  { name: "send_mail", description: "Sends a letter", kind: "effectful" }
]

/** The files of the store, its write-ahead log included. */
const filesIn = (dir: string): ReadonlyArray<readonly [name: string, text: string]> =>
  readdirSync(dir).map((name) => [name, readFileSync(join(dir, name), "latin1")])

/** How a world gets its server, and all that is stored of it, by where; suites over several servers do it otherwise. */
export const serving = {
  /** Whether the database is a file that a test may lock. */
  inFile: true,
  start: Server.start,
  stored: async (data: string): Promise<ReadonlyArray<readonly [name: string, text: string]>> => filesIn(dirname(data))
}

export const start = async (options: Options = {}): Promise<World> => {
  const [upstream, tools] = await Promise.all([Upstream.start(), ToolServer.start()])
  const dir = mkdtempSync(join(tmpdir(), "runlet-e2e-"))
  const file = join(dir, "config.json")
  const data = join(options.directory ?? join(dir, "data"), "runlet.db")
  const model = { provider: "openai-compatible", baseUrl: upstream.url, apiKey }
  writeFileSync(
    file,
    JSON.stringify({
      models: { scripted: model, ...options.models },
      defaultModel: "scripted",
      instructions: "You are a test.",
      tools: [...offered(tools.url), ...(options.tools ?? [])].map((tool) => ({
        url: `${tools.url}/${"name" in tool ? tool.name : ""}`,
        headers: { authorization: `Bearer ${toolSecret}` },
        ...tool
      })),
      limits: { firstChunkTimeoutMs: 30_000, chunkTimeoutMs: 30_000, toolTimeoutMs: 30_000, ...options.limits },
      ...(options.resume !== undefined && { resume: options.resume }),
      ...(options.users !== undefined && {
        auth: { tokens: Object.entries(options.users).map(([user, token]) => ({ user, token })) }
      }),
      ...options.config
    })
  )
  let server = await serving.start(file, data, options.flags, options.how)
  let past = ""
  const url = () => server.url
  const client = Client.make(url)
  const output = () => past + server.output()
  const world: World = {
    upstream,
    tools,
    client,
    as: (token) => Client.make(url, token),
    server: () => server,
    url,
    data,
    output,
    restart: async (how = options.how) => {
      await server.stop()
      past += server.output()
      server = await serving.start(file, data, options.flags, how)
    },
    check: (run, rules) => Rules.check(world, typeof run === "string" ? run : run.runId, rules),
    stop: async () => {
      await server.stop()
      await Promise.all([upstream.stop(), tools.stop()])
      const stored = await serving.stored(data)
      const leaks = stored.filter(([, text]) => [apiKey, toolSecret].some((secret) => text.includes(secret)))
      if (leaks.length > 0) throw new Error(`Secrets were stored: ${leaks.map(([name]) => name).join(", ")}`)
      rmSync(dir, { recursive: true, force: true })
    }
  }
  return world
}
