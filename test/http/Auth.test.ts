import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Auth from "../../src/http/Auth.js"
import { start } from "./Server.js"

describe("without authentication", () => {
  it.scopedLive("only this machine's own names and pages are served", () =>
    Effect.gen(function* () {
      const { call, port } = yield* start()
      const status = (headers: Record<string, string>) =>
        Effect.map(call({ path: "/runs", headers }), (answer) => answer.status)
      for (const host of [
        "localhost",
        `localhost:${port}`,
        "127.0.0.1",
        "127.1.2.3:80",
        "[::1]:4747",
        "app.localhost"
      ]) {
        expect([host, yield* status({ host })]).toEqual([host, 200])
      }
      for (const host of [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "a b",
        "[::2]"
      ]) {
        expect([host, yield* status({ host })]).toEqual([host, 403])
      }
      const host = `localhost:${port}`
      expect(yield* status({ host, origin: `http://${host}` })).toBe(200)
      for (const origin of ["http://evil.example", "null", `http://localhost:${port + 1}`, "http://127.0.0.1", ""]) {
        expect([origin, yield* status({ host, origin })]).toEqual([origin, 403])
      }
      const refused = yield* call({ path: "/chat", json: { message: "a" }, headers: { origin: "http://evil.example" } })
      expect(JSON.parse(refused.body)._tag).toBe("Forbidden")
    })
  )

  it("knows the names of this machine", () => {
    for (const name of ["localhost", "127.0.0.1", "::1", "[::1]", "a.localhost"])
      expect(Auth.isLoopback(name)).toBe(true)
    for (const name of ["", "0.0.0.0", "::", "1127.0.0.1", "127.0.0.1.example"])
      expect(Auth.isLoopback(name)).toBe(false)
  })
})

describe("with tokens", () => {
  const tokens = { "token-a": "alice", "token-b": "bob" }
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

  it.scopedLive("nothing of a user is served without one", () =>
    Effect.gen(function* () {
      const { call } = yield* start({ tokens })
      for (const authorization of [
        undefined,
        "",
        "token-a",
        "Basic token-a",
        "Bearer",
        "Bearer token-c",
        "Bearer token-a x"
      ]) {
        for (const path of ["/runs", "/models", "/conversations", "/runs/run_1/events"]) {
          const answer = yield* call({ path, headers: authorization === undefined ? {} : { authorization } })
          expect([authorization, answer.status]).toEqual([authorization, 401])
          expect(answer.headers["www-authenticate"]).toBe('Bearer realm="runlet"')
          expect(JSON.parse(answer.body)._tag).toBe("Unauthorized")
        }
      }
      expect((yield* call({ path: "/runs", headers: bearer("token-a") })).status).toBe(200)
      expect((yield* call({ path: "/runs", headers: { authorization: "bearer  token-b" } })).status).toBe(200)
      expect((yield* call({ path: "/healthz" })).status).toBe(200)
      expect((yield* call({ path: "/runs", headers: { ...bearer("token-a"), host: "any.example" } })).status).toBe(200)
    })
  )

  it.scopedLive("what belongs to somebody else looks like what does not exist", () =>
    Effect.gen(function* () {
      const { call, fake } = yield* start({ tokens })
      const body = { message: "hi", background: true }
      yield* call({ path: "/chat", json: body, headers: bearer("token-a") })
      const [runId = ""] = fake.runs()
      const unknown = runId.replace(/.$/, "f")
      for (const [method, suffix, json] of [
        ["GET", "", undefined],
        ["DELETE", "", undefined],
        ["GET", "/events", undefined],
        ["GET", "/trace", undefined],
        ["GET", "/checkpoints", undefined],
        ["POST", "/cancel", undefined],
        ["POST", "/resume", {}],
        ["POST", "/regenerate", {}],
        ["POST", "/approvals/apr_1", { decision: "approve" }]
      ] as const) {
        const [foreign, missing] = yield* Effect.all(
          [runId, unknown].map((id) => call({ method, path: `/runs/${id}${suffix}`, json, headers: bearer("token-b") }))
        )
        expect([method, suffix, foreign?.status]).toEqual([method, suffix, 404])
        expect(foreign?.body).toBe(missing?.body)
        const { date: _1, ...a } = foreign?.headers ?? {}
        const { date: _2, ...b } = missing?.headers ?? {}
        expect(a).toEqual(b)
      }
      expect(JSON.parse((yield* call({ path: "/runs", headers: bearer("token-b") })).body).items).toEqual([])
      expect(JSON.parse((yield* call({ path: `/runs/${runId}`, headers: bearer("token-a") })).body).status).toBe(
        "running"
      )
    })
  )

  it.scopedLive("a page signs in once and holds a cookie that is no token", () =>
    Effect.gen(function* () {
      const { call, port } = yield* start({ tokens })
      const host = `127.0.0.1:${port}`
      expect((yield* call({ path: "/session", json: { token: "token-c" } })).status).toBe(401)
      const signedIn = yield* call({ path: "/session", json: { token: "token-a" } })
      expect(signedIn.status).toBe(204)
      const [setCookie = ""] = signedIn.headers["set-cookie"] ?? []
      expect(setCookie).toMatch(/; HttpOnly/)
      expect(setCookie).toMatch(/; SameSite=Strict/)
      expect(setCookie).not.toContain("token-a")
      const cookie = setCookie.split(";", 1)[0] ?? ""
      const status = (headers: Record<string, string>) =>
        Effect.map(call({ path: "/runs", headers: { cookie, ...headers } }), (answer) => answer.status)
      expect(yield* status({})).toBe(200)
      expect(yield* status({ origin: `http://${host}` })).toBe(200)
      expect(yield* status({ origin: "http://evil.example" })).toBe(403)
      expect(yield* status({ "sec-fetch-site": "cross-site" })).toBe(403)
      expect(yield* status({ origin: "https://app.example", "sec-fetch-site": "same-origin" })).toBe(200)
      expect(yield* status(bearer("token-c"))).toBe(401)
      expect(yield* status({ cookie: `${cookie}x` })).toBe(401)
      const out = yield* call({ path: "/session", method: "DELETE", headers: { cookie } })
      expect(out.headers["set-cookie"]?.[0]).toMatch(/^runlet_session=;.*(Max-Age=0|Expires=Thu, 01 Jan 1970)/)
    })
  )
})
