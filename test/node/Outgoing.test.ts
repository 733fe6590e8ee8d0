import { readdirSync, readFileSync } from "node:fs"
import * as Http from "node:http"
import * as Https from "node:https"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { describe, expect, it } from "@effect/vitest"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as OpenAiCompatible from "../../src/model/OpenAiCompatible.js"
import * as Config from "../../src/node/Config.js"
import * as Outgoing from "../../src/node/Outgoing.js"
import * as HttpTool from "../../src/tool/HttpTool.js"
import * as ToolRunner from "../../src/tool/ToolRunner.js"
import { collect, limits } from "../model/support.js"

/** Signed by itself, for localhost; it guards nothing. */
const certificate = `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUAN7CrBK7gkYAj+9EKV7DYA5vCx4wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEzMDIwMDExMVoYDzIxMjYxMTA2
MjAwMTExWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAARLetNtsligqoPJOD3BGuHXvmZRhwlL797gqXE2ZFZRmR5agAoMwXRV
4dpQ4gpKCe1PgeKliMbyyOhy+1Kpy4WZo28wbTAdBgNVHQ4EFgQU0J5eJbcY0cvh
lzgxgP2XGAuNLN4wHwYDVR0jBBgwFoAU0J5eJbcY0cvhlzgxgP2XGAuNLN4wDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIgMBVTzV6aez/3DlS9SDEZmxKjA85iumEJ1v54PfN6YowCIQC4
fyskwbgasrZI+zb5nc3PkXgCEwEoA2JCs96gVMt38g==
-----END CERTIFICATE-----`
const key = [
  "-----BEGIN PRIVATE" + " KEY-----",
  "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgbw+xCUOPqfdDkeBQ",
  "ffm+maegbKlN7HmfRDS2yh5jHo2hRANCAARLetNtsligqoPJOD3BGuHXvmZRhwlL",
  "797gqXE2ZFZRmR5agAoMwXRV4dpQ4gpKCe1PgeKliMbyyOhy+1Kpy4WZ",
  "-----END PRIVATE" + " KEY-----"
].join("\n")

interface Served {
  readonly port: number
  readonly asked: () => number
}

const serving = (
  make: (listener: Http.RequestListener) => Http.Server,
  answer: (response: Http.ServerResponse) => void
) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.async<{ readonly server: Http.Server; readonly asked: () => number }>((resume) => {
        let asked = 0
        const server = make((_, response) => {
          asked += 1
          answer(response)
        })
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed({ server, asked: () => asked })))
      }),
      ({ server }) =>
        Effect.sync(() => {
          server.close()
          server.closeAllConnections()
        })
    ),
    ({ asked, server }): Served => ({ port: (server.address() as AddressInfo).port, asked })
  )

const plain = (answer: (response: Http.ServerResponse) => void) => serving(Http.createServer, answer)
const ok = (response: Http.ServerResponse) => void response.end('"found"')

const called = (url: string, hosts: ReadonlyArray<string> | null) =>
  Effect.gen(function* () {
    const tool = yield* HttpTool.make({
      name: "a",
      description: "",
      kind: "effectful",
      parameters: { type: "object" },
      url
    })
    return yield* ToolRunner.run({
      tool,
      phase: "execute",
      input: {},
      context: {
        user: "alice",
        runId: "run_1",
        conversationId: "conv_1",
        toolCallId: "call_1",
        phase: "execute",
        idempotencyKey: "key-1",
        currentDocument: null,
        progress: () => Effect.void
      },
      timeoutMs: 5_000,
      maxResultBytes: 10_000
    })
  }).pipe(Effect.provide(Outgoing.layer(hosts)))

const asked = (baseUrl: string, hosts: ReadonlyArray<string> | null) =>
  Effect.flatMap(OpenAiCompatible.make({ ...limits, baseUrl }), (model) => collect(model)).pipe(
    Effect.provide(Outgoing.layer(hosts))
  )

describe("outgoing calls", () => {
  it.scopedLive("go to the allowed hosts alone, by name or by name and port", () =>
    Effect.gen(function* () {
      const { asked: count, port } = yield* plain(ok)
      const url = `http://127.0.0.1:${port}/a`
      for (const hosts of [null, ["127.0.0.1"], ["b.example", `127.0.0.1:${port}`]]) {
        expect(yield* called(url, hosts)).toMatchObject({ _tag: "Settled", ok: true, result: "found" })
      }
      expect(count()).toBe(3)
      for (const hosts of [[], ["localhost"], ["127.0.0.1:1"], ["127.0.0.1.example"], ["*"]]) {
        // Nothing was sent, so nobody has to be asked what became of it.
        expect(yield* called(url, hosts)).toMatchObject({ _tag: "Settled", ok: false })
        expect((yield* asked(`http://127.0.0.1:${port}/v1`, hosts)).error?.code).toBe("connection")
      }
      expect(count()).toBe(3)
    })
  )

  it.scopedLive("follow no redirect to another host, allowed or not", () =>
    Effect.gen(function* () {
      const target = yield* plain(ok)
      for (const status of [301, 302, 303, 307, 308]) {
        for (const location of [
          `http://127.0.0.1:${target.port}/b`,
          `http://localhost:${target.port}/b`,
          `//127.0.0.1:${target.port}/b`,
          `http://user:pass@127.0.0.1:${target.port}/b`
        ]) {
          const { port } = yield* plain((response) => void response.writeHead(status, { location }).end())
          for (const hosts of [null, ["127.0.0.1", "localhost"], [`127.0.0.1:${port}`]]) {
            expect(yield* called(`http://127.0.0.1:${port}/a`, hosts)).not.toMatchObject({ ok: true })
            expect((yield* asked(`http://127.0.0.1:${port}/v1`, hosts)).error?.code).toBe("invalid_response")
          }
        }
      }
      expect(target.asked()).toBe(0)
    })
  )

  it.scopedLive("verify certificates", () =>
    Effect.gen(function* () {
      const { asked: count, port } = yield* serving(
        (listener) => Https.createServer({ cert: certificate, key }, listener),
        ok
      )
      expect(yield* called(`https://localhost:${port}/a`, null)).toMatchObject({ _tag: "Settled", ok: false })
      const { error } = yield* asked(`https://localhost:${port}/v1`, null)
      expect(error).toMatchObject({
        code: "connection",
        message: "The model server's TLS certificate could not be verified."
      })
      expect(count()).toBe(0)
    })
  )

  it.effect("can not be told not to", () =>
    Effect.gen(function* () {
      const load = (value: string) =>
        Effect.either(Config.load({})).pipe(
          Effect.withConfigProvider(ConfigProvider.fromMap(new Map([["NODE_TLS_REJECT_UNAUTHORIZED", value]])))
        )
      const refused = yield* load("0")
      expect(refused._tag === "Left" && refused.left.message).toMatch(/^NODE_TLS_REJECT_UNAUTHORIZED: /)
      expect((yield* load("1"))._tag).toBe("Right")
    }).pipe(Effect.provide(NodeFileSystem.layer))
  )

  it("are nowhere made without verification", () => {
    const root = join(__dirname, "../../src")
    const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => /\.tsx?$/.test(name))
    expect(files.length).toBeGreaterThan(150)
    for (const file of files) {
      const text = readFileSync(join(root, file), "utf8")
      expect([
        file,
        /rejectUnauthorized|checkServerIdentity|setGlobalDispatcher|insecureHTTPParser|secureOptions/.test(text)
      ]).toEqual([file, false])
      // The one place where the variable stands is the one that refuses it.
      expect([file, text.includes("TLS_REJECT")]).toEqual([file, file === join("node", "Config.ts")])
    }
  })
})
