import * as FileSystem from "@effect/platform/FileSystem"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { describe, expect, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Limits from "../../src/domain/Limits.js"
import * as Config from "../../src/node/Config.js"

const environment = (variables: Record<string, string>) =>
  Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(variables))))

const decode = (value: unknown, variables: Record<string, string> = {}) => environment(variables)(Config.decode(value))

const file = (content: string) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* fs.makeTempFileScoped()
    yield* fs.writeFileString(path, content)
    return path
  })

describe("configuration", () => {
  it.effect("has a default for everything", () =>
    Effect.gen(function* () {
      expect(yield* decode({})).toEqual({
        host: "127.0.0.1",
        port: 4747,
        data: "./.runlet/runlet.db",
        models: { demo: { provider: "demo" } },
        defaultModel: "demo",
        instructions: "",
        tools: [],
        documents: true,
        auth: { tokens: [], jwt: null },
        limits: Limits.defaults,
        resume: Limits.resumeDefaults,
        mcpServers: {},
        outgoing: { allowHosts: null },
        telemetry: { traceUrl: null, propagateTo: [] },
        retention: { eventsMs: 86_400_000, runsMs: 2_592_000_000 },
        secrets: []
      })
    })
  )

  it.effect("takes everything that the documentation names", () =>
    Effect.gen(function* () {
      const config = yield* decode(
        {
          models: {
            big: {
              provider: "openai-compatible",
              baseUrl: "http://127.0.0.1:9000/v1",
              apiKey: { env: "BIG_KEY" },
              headers: { "x-team": { env: "TEAM" } },
              contextWindow: 128_000,
              price: { input: 1, output: 2.5, cachedInput: 0.1 },
              fallback: "demo"
            },
            demo: { provider: "demo" }
          },
          defaultModel: "big",
          documents: false,
          instructions: { env: "PROMPT" },
          tools: [
            {
              name: "save_note",
              description: "Saves a note",
              title: "Saving…",
              kind: "write",
              parameters: { type: "object", properties: { env: { env: "not a variable" } } },
              url: "http://127.0.0.1:9100/save",
              statusUrl: "http://127.0.0.1:9100/status",
              timeoutMs: 30_000,
              cacheable: false,
              unattended: false,
              idempotent: true
            }
          ],
          auth: {
            tokens: [{ token: { env: "ALICE" }, user: "alice" }],
            jwt: { jwksUrl: "http://127.0.0.1:9200/keys", issuer: "me" }
          },
          limits: { maxTokens: null, maxCostUsd: 1.5, heartbeatMs: 5000 },
          resume: { policy: "continue-draft", leaseTtlMs: 1000 },
          mcpServers: { files: { command: "node", args: ["server.js"], env: { KEY: { env: "ALICE" } } } },
          outgoing: { allowHosts: ["127.0.0.1"] },
          retention: { eventsMs: 1000 }
        },
        { BIG_KEY: "sk-1", TEAM: "crimson", PROMPT: "Be brief.", ALICE: "token-a" }
      )
      const { big } = config.models
      expect(big?.provider === "openai-compatible" && big.apiKey && Redacted.value(big.apiKey)).toBe("sk-1")
      expect(config.instructions).toBe("Be brief.")
      expect(config.documents).toBe(false)
      expect(config.tools[0]?.parameters).toEqual({ type: "object", properties: { env: { env: "not a variable" } } })
      expect(config.auth.tokens.map(({ token }) => Redacted.value(token))).toEqual(["token-a"])
      expect(config.auth.jwt).toEqual({ jwksUrl: "http://127.0.0.1:9200/keys", issuer: "me", userClaim: "sub" })
      expect(config.limits).toEqual({ ...Limits.defaults, maxCostUsd: 1.5, heartbeatMs: 5000 })
      expect(config.resume).toEqual({ ...Limits.resumeDefaults, policy: "continue-draft", leaseTtlMs: 1000 })
      expect(config.retention).toEqual({ eventsMs: 1000, runsMs: 2_592_000_000 })
      expect(JSON.stringify(config)).not.toMatch(/sk-1|token-a|crimson/)
    })
  )

  const tool = { name: "a", description: "", kind: "readonly", url: "http://a.example/" }
  const wrong: ReadonlyArray<readonly [unknown, string]> = [
    [{ limit: {} }, "limit: is not known here"],
    [{ limits: { maxIterationz: 1 } }, "limits.maxIterationz: is not known here"],
    [{ limits: { maxIterations: 0 } }, "limits.maxIterations: "],
    [
      { telemetry: { traceUrl: "https://a.example/" } },
      "telemetry.traceUrl: must be an http or https address with {traceId}"
    ],
    [{ telemetry: { traceUrl: "javascript:{traceId}" } }, "telemetry.traceUrl: must be an http or https address"],
    [{ limits: { maxIterations: "8" } }, "limits.maxIterations: "],
    [{ port: 70_000 }, "port: "],
    [{ auth: { jwt: {} } }, "auth.jwt"],
    [{ auth: { jwt: { secret: "too short" } } }, "auth.jwt.secret: must have 32 characters or more"],
    [{ auth: { jwt: { jwksUrl: "ftp://a.example" } } }, "auth.jwt.jwksUrl: must be an http or https address"],
    [{ auth: { jwt: { secret: "x".repeat(32), algorithms: ["none"] } } }, "auth.jwt.algorithms: is not known here"],
    [
      { auth: { jwt: { jwksUrl: "https://a.example/keys" } }, outgoing: { allowHosts: ["b.example"] } },
      "auth.jwt.jwksUrl: its host is not in outgoing.allowHosts"
    ],
    [{ models: {} }, "models: must have at least one model"],
    [{ models: { a: { provider: "magic" } } }, "models.a.provider: "],
    [{ models: { a: { provider: "openai-compatible" } } }, "models.a.baseUrl: is missing"],
    [{ models: { a: { provider: "openai-compatible", baseUrl: "ftp://x" } } }, "models.a.baseUrl: must be an http"],
    [{ models: { a: { provider: "demo", key: 1 } } }, "models.a.key: is not known here"],
    [{ models: { a: { provider: "demo", fallback: "b" } } }, "models.a.fallback: must be another key of models"],
    [{ models: { a: { provider: "demo", fallback: "a" } } }, "models.a.fallback: must be another key of models"],
    [{ defaultModel: "b" }, "defaultModel: must be one of the keys of models"],
    [{ tools: [{ ...tool, name: "a b" }] }, "tools[0].name: "],
    [{ tools: [{ ...tool, kind: "magic" }] }, "tools[0].kind: "],
    [{ tools: [tool, { ...tool, confirm: true }] }, "tools[1].confirm: is not known here"],
    [{ tools: [tool, tool] }, "tools[1].name: is the name of an earlier tool"],
    [{ auth: { tokens: [{ token: "", user: "a" }] } }, "auth.tokens[0].token: "],
    [
      { auth: { tokens: [{ token: { env: "MISSING" }, user: "a" }] } },
      "auth.tokens[0].token: the environment variable MISSING is not set"
    ],
    [{ resume: { policy: "hope" } }, "resume.policy: "],
    [{ mcpServers: { a: { cmd: "x" } } }, "mcpServers.a"],
    [
      { outgoing: { allowHosts: ["b.example"] }, tools: [tool] },
      "tools[0].url: its host is not in outgoing.allowHosts"
    ],
    [[], "Expected"]
  ]
  for (const [value, message] of wrong) {
    it.effect(`says what is wrong: ${message}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(decode(value))
        expect(error.message.slice(0, message.length)).toBe(message)
        expect(error.message).not.toMatch(/\n/)
      })
    )
  }

  it.effect("a secret that is wrong is not shown", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(decode({ auth: { tokens: [{ token: ["sk-secret"], user: "a" }] } }))
      expect(error.message).toMatch(/^auth\.tokens\[0\]\.token: /)
      expect(error.message).not.toContain("sk-secret")
    })
  )

  it.scoped("flags win over the environment, the environment over the file", () =>
    Effect.gen(function* () {
      const path = yield* file('\ufeff{ "host": "127.0.0.2", "port": 1, "data": "file.db", "instructions": "x" }')
      const variables = { RUNLET_CONFIG: path, RUNLET_HOST: "127.0.0.3", RUNLET_PORT: "2", RUNLET_DATA: "" }
      const { data, host, instructions, port } = yield* environment(variables)(Config.load({ port: 3 }))
      expect({ data, host, instructions, port }).toEqual({
        data: "file.db",
        host: "127.0.0.3",
        instructions: "x",
        port: 3
      })
      const other = yield* file('{ "port": 9 }')
      expect((yield* environment({ RUNLET_CONFIG: path })(Config.load({ config: other }))).port).toBe(9)
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.scoped("a named file must exist and be JSON", () =>
    Effect.gen(function* () {
      const message = (flags: Config.Flags, variables: Record<string, string> = {}) =>
        Effect.map(Effect.flip(environment(variables)(Config.load(flags))), (error) => error.message)
      expect(yield* message({ config: "./missing.json" })).toBe("./missing.json: the file can not be read")
      expect(yield* message({}, { RUNLET_CONFIG: "./missing.json" })).toBe("./missing.json: the file can not be read")
      const broken = yield* file('{ "port": 1, }')
      expect(yield* message({ config: broken })).toBe(`${broken}: is not valid JSON`)
      expect(yield* message({ config: yield* file("[]") })).toBe("The configuration must be a JSON object")
      expect(yield* message({}, { RUNLET_PORT: "80a" })).toMatch(/^RUNLET_PORT: /)
      expect((yield* environment({})(Config.load({}))).port).toBe(4747)
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it.effect("knows what of it nobody may read", () =>
    Effect.gen(function* () {
      const { secrets } = yield* decode(
        {
          models: {
            a: {
              provider: "openai-compatible",
              baseUrl: "https://me:url-password@a.example/v1?key=url-parameter",
              apiKey: { env: "KEY" },
              model: { env: "MODEL" },
              headers: { "X-Api-Key": "header-value", "User-Agent": "my-program/1", cookie: "a=cookie-value; b=2" },
              extraBody: { safety: { env: "SAFETY" } }
            }
          },
          tools: [
            {
              name: "a",
              description: "A tool",
              kind: "readonly",
              url: { env: "HOOK" },
              headers: { authorization: "Bearer tool-token", "proxy-authorization": "Basic dXNlcjpiYXNpYy1wYXNz" }
            }
          ],
          auth: {
            tokens: [{ token: "user-token", user: { env: "USER_NAME" } }],
            jwt: { secret: "jwt-secret-of-more-than-32-letters", issuer: { env: "USER_NAME" } }
          }
        },
        {
          KEY: " model-key ",
          MODEL: "a-model-name",
          SAFETY: "safety-value",
          HOOK: "https://hooks.example/services/T00/a1b2c3d4e5f6a7b8c9d0e1f2",
          USER_NAME: "alice-the-user"
        }
      )
      expect(new Set(secrets.map(Redacted.value).filter((text) => text.length >= 8))).toEqual(
        new Set([
          "model-key",
          " model-key ",
          "url-password",
          "me:url-password",
          "bWU6dXJsLXBhc3N3b3Jk",
          "url-parameter",
          "header-value",
          "a=cookie-value; b=2",
          "cookie-value",
          "safety-value",
          "a1b2c3d4e5f6a7b8c9d0e1f2",
          "tool-token",
          "dXNlcjpiYXNpYy1wYXNz",
          "user:basic-pass",
          "basic-pass",
          "user-token",
          "jwt-secret-of-more-than-32-letters"
        ])
      )
    })
  )
})
