import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as OpenApi from "@effect/platform/OpenApi"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import { RunsApi } from "../../src/http/RunsApi.js"
import * as Config from "../../src/node/Config.js"
import { type Server, start } from "../e2e/support/Server.js"
import { entries, problemsOf } from "./compile.js"
import { anchorsOf, type Block, blocksOf, codeOf, rowsOf, section } from "./markdown.js"
import * as Settings from "./settings.js"

const root = join(__dirname, "../..")
const readme = readFileSync(join(root, "README.md"), "utf8")
const blocks = blocksOf(readme)
const inLanguage = (language: string) => blocks.filter((block) => block.language === language)
const named = (block: Block) => [`line ${block.line}`, block] as const

describe("the README's TypeScript", () => {
  it("compiles", { timeout: 300_000 }, () => {
    const programs = new Map(inLanguage("ts").map(({ line, text }) => [`line-${line}`, text]))
    expect(programs.size).toBeGreaterThan(5)
    expect(problemsOf(programs)).toEqual([])
  })

  it("shows the examples as they are, which are run", () => {
    const shown = inLanguage("ts").filter(({ mark }) => mark?.startsWith("example: "))
    expect(shown.map(({ mark }) => mark)).toEqual([
      "example: embed",
      "example: law.test",
      "example: own.test",
      "example: traced"
    ])
    for (const { mark, text } of shown) {
      const source = readFileSync(join(root, `test/examples/${mark?.slice("example: ".length)}.ts`), "utf8")
      expect(text).toBe(
        source
          .trimEnd()
          .replace('"../../src/index.js"', '"runlet"')
          .replace('"../../src/node/index.js"', '"runlet/node"')
      )
    }
  })

  it("imports only what the package exports", () => {
    const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
    for (const name of Object.keys(entries)) expect(exports).toHaveProperty([name.replace("runlet", ".")])
    const rows = rowsOf(section(readme, "Embedding")).flatMap(([cell]) => cell?.split(", ") ?? [])
    const names = rows.flatMap((cell) => codeOf(cell) ?? [])
    const shown = names.filter((name) => /^runlet(\/|$)/.test(name))
    for (const name of shown) expect(exports).toHaveProperty([name.replace("runlet", ".")])
    expect(shown).toContain("runlet/testing")
  })
})

describe("the README's configuration", () => {
  it.each(inLanguage("json").map(named))("in %s is one", async (_, { text }) => {
    const variables = [...text.matchAll(/"env": "(\w+)"/g)].map(([, name]) => [name ?? "", "secret"] as const)
    await Effect.runPromise(
      Effect.withConfigProvider(Config.decode(JSON.parse(text)), ConfigProvider.fromMap(new Map(variables)))
    )
  })

  const rows = rowsOf(section(readme, "Configuration"))

  it("lists every key, and no other", () => {
    expect(rows.map(([key]) => codeOf(key)).toSorted()).toEqual([...Settings.keys.keys()].toSorted())
    expect(Settings.keys.size).toBeGreaterThan(60)
  })

  it.each(rows.map(([key, value]) => [codeOf(key) ?? "", value ?? ""] as const))(
    "tells the default of %s",
    (key, said) => {
      const value = Settings.defaultOf(key)
      expect(said).toBe(
        value !== undefined ? `\`${JSON.stringify(value)}\`` : Settings.keys.get(key) === true ? "required" : "–"
      )
    }
  )
})

describe("the README's endpoints", () => {
  it("are those of the contract, and the pages", () => {
    const { paths } = OpenApi.fromApi(RunsApi)
    const contract = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods ?? {}).map((method) => `${method.toUpperCase()} ${path}`)
    )
    const pages = ["GET /", "GET /docs", "GET /openapi.json", "GET /replay", "GET /runs/{runId}/replay"]
    const listed = rowsOf(section(readme, "Endpoints")).map(([call]) => codeOf(call))
    expect(listed.toSorted()).toEqual([...contract, ...pages].toSorted())
  })
})

const bin = process.env.RUNLET_BIN ?? join(root, "dist/bin.js")

/** What a shell prints, with the server's address in place of the one that the README names, and its program. */
const shell = (
  script: string,
  server: Server,
  directory: string
): Promise<{ readonly code: number | null; readonly output: string }> =>
  new Promise((resolve) => {
    const address = server.url.replace("http://", "")
    const program = `runlet() { ${process.execPath} ${bin} "$@"; }`
    const child = spawn("bash", ["-e", "-u", "-c", `${program}\n${script.replaceAll("localhost:4747", address)}`], {
      cwd: directory,
      env: { ...process.env, RUNLET_URL: server.url },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let output = ""
    const add = (piece: Buffer) => {
      output += piece.toString("utf8")
    }
    child.stdout.on("data", add)
    child.stderr.on("data", add)
    child.once("close", (code) => resolve({ code, output }))
  })

const typesIn = (text: string) => [...text.matchAll(/"type":"([a-z-]+)"/g)].map(([, type]) => type ?? "")

/** Whether all of these are found in that order. */
const missing = (wanted: ReadonlyArray<string>, found: ReadonlyArray<string>): ReadonlyArray<string> => {
  let at = 0
  return wanted.filter((one) => {
    const index = found.indexOf(one, at)
    if (index !== -1) at = index + 1
    return index === -1
  })
}

describe("the README's commands", () => {
  const calls = inLanguage("bash").filter(({ text }) => /\bcurl\b|^runlet (chat|runs|trace) /m.test(text))

  it("do what they show, one after the other", { timeout: 300_000 }, async () => {
    const data = mkdtempSync(join(tmpdir(), "runlet-readme-"))
    const config = join(data, "runlet.config.json")
    writeFileSync(config, "{}")
    const server = await start(config, join(data, "runlet.db"))
    try {
      expect(calls.length).toBeGreaterThan(5)
      // Later blocks use what earlier ones have found out.
      let found = ""
      for (const call of calls) {
        const { code, output } = await shell(`RUN=; ${found}\n${call.text}\necho "RUN=$RUN" >&2`, server, data)
        const place = `line ${call.line}`
        expect({ place, code, output }).toMatchObject({ code: 0 })
        expect({ place, output }).not.toMatchObject({ output: expect.stringContaining('"_tag"') })
        found = /RUN=(run_[0-9a-f-]+)/.exec(output)?.[0] ?? ""
        const shown = blocks[blocks.indexOf(call) + 1]
        if (shown?.language !== "text") continue
        expect({ place, missing: missing(typesIn(shown.text), typesIn(output)) }).toEqual({ place, missing: [] })
        for (const field of ["status", "decision", "state"]) {
          const pattern = new RegExp(`"${field}":"(\\w+)"`, "g")
          for (const [text] of shown.text.matchAll(pattern))
            expect({ place, output }).toMatchObject({ output: expect.stringContaining(text) })
        }
      }
    } finally {
      await server.stop()
      rmSync(data, { recursive: true, force: true })
    }
  })

  it("name scripts and files that are there", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
    const used = [...readme.matchAll(/npm (?:run )?(start|test|build|check|format)\b/g)].map(([, name]) => name ?? "")
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining([...new Set(used)]))
    expect(existsSync(join(root, ".ci/run"))).toBe(true)
  })
})

describe("the README's links", () => {
  const links = [...readme.matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link ?? "")

  it.each([...new Set(links.filter((link) => !/^https?:/.test(link)))])("%s leads somewhere", (link) => {
    if (link.startsWith("#")) expect(anchorsOf(readme)).toContain(link.slice(1))
    else expect(existsSync(join(root, link))).toBe(true)
  })

  it("has a list of all sections", () => {
    const sections = anchorsOf(readme.replace(/^# .*$/m, "")).map((anchor) => `#${anchor}`)
    expect(links.filter((link) => link.startsWith("#")).slice(0, sections.length)).toEqual(sections)
  })
})
