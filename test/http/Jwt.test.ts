import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, it, vi } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Redacted from "effect/Redacted"
import * as Jose from "jose"
import * as Auth from "../../src/http/Auth.js"
import * as JwtCredentials from "../../src/http/JwtCredentials.js"
import * as TokenCredentials from "../../src/http/TokenCredentials.js"
import { start } from "./Server.js"

const secret = "a-secret-of-more-than-32-characters"
const bytes = (text: string) => new TextEncoder().encode(text)
const seconds = () => Math.floor(Date.now() / 1000)

/** A token; `claims` stand above what is usual. */
const signed = (
  claims: Record<string, unknown>,
  key: Parameters<Jose.SignJWT["sign"]>[0] = bytes(secret),
  header: Jose.JWTHeaderParameters = { alg: "HS256" }
) =>
  Effect.promise(() =>
    new Jose.SignJWT({ sub: "alice", exp: seconds() + 600, ...claims }).setProtectedHeader(header).sign(key)
  )

const whoIs = (server: Effect.Effect.Success<ReturnType<typeof start>>, token: string) =>
  Effect.map(server.call({ path: "/runs", headers: { authorization: `Bearer ${token}` } }), ({ status }) => status)

describe("tokens that a secret signs", () => {
  const options = { secret: Redacted.make(secret), issuer: "https://issuer.example", audience: "runlet" }
  const good = { iss: options.issuer, aud: options.audience }

  it.scopedLive("name their user, if everything about them is right", () =>
    Effect.gen(function* () {
      const server = yield* start({ authentication: Auth.layerJwt(options) })
      const check = (claims: Record<string, unknown>, ...rest: [Uint8Array?, { alg: string }?]) =>
        Effect.flatMap(signed(claims, ...rest), (token) => whoIs(server, token))
      expect(yield* check(good)).toBe(200)
      expect(yield* check({ ...good, aud: ["other", "runlet"] })).toBe(200)
      expect(yield* check({ ...good, nbf: seconds() - 1, exp: seconds() - 2 })).toBe(200)
      const wrong: ReadonlyArray<Record<string, unknown>> = [
        { ...good, exp: seconds() - 60 },
        { ...good, exp: undefined },
        { ...good, nbf: seconds() + 60 },
        { ...good, iss: "https://issuer.example.evil" },
        { ...good, iss: undefined },
        { ...good, aud: "other" },
        { ...good, aud: undefined },
        { ...good, sub: "" },
        { ...good, sub: undefined },
        { ...good, sub: "x".repeat(257) }
      ]
      for (const claims of wrong) expect([claims, yield* check(claims)]).toEqual([claims, 401])
      expect(yield* check(good, bytes(`${secret}x`))).toBe(401)
      expect(yield* check(good, bytes(secret.padEnd(48)), { alg: "HS384" })).toBe(401)
    })
  )

  it.scopedLive("are not believed when they say that they need no signature, or were changed", () =>
    Effect.gen(function* () {
      const server = yield* start({ authentication: Auth.layerJwt(options) })
      const token = yield* signed({ ...good })
      const [header = "", payload = "", signature = ""] = token.split(".")
      const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url")
      const mallory = encoded({ ...good, sub: "mallory", exp: seconds() + 600 })
      for (const forged of [
        `${encoded({ alg: "none" })}.${payload}.`,
        `${encoded({ alg: "none" })}.${payload}.${signature}`,
        `${header}.${mallory}.${signature}`,
        `${header}.${payload}.${signature.slice(0, -2)}`,
        `${header}.${payload}.`,
        `${header}.${payload}`,
        `${token}.${signature}`,
        payload
      ]) {
        expect([forged, yield* whoIs(server, forged)]).toEqual([forged, 401])
      }
    })
  )

  it.scopedLive("name their user by another claim, beside listed tokens", () =>
    Effect.gen(function* () {
      const listed = TokenCredentials.make([{ token: Redacted.make("token-a"), user: "alice" }])
      const jwt = yield* JwtCredentials.make({ secret: Redacted.make(secret), userClaim: "email" })
      const server = yield* start({ authentication: Auth.layerCredentials([listed, jwt]) })
      const token = yield* signed({ email: "bob@example.com" })
      const body = { message: "hi", background: true }
      for (const one of [token, "token-a"]) {
        const headers = { authorization: `Bearer ${one}` }
        expect((yield* server.call({ path: "/chat", json: body, headers })).status).toBe(202)
        expect(JSON.parse((yield* server.call({ path: "/runs", headers })).body).items).toHaveLength(1)
      }
      expect(yield* whoIs(server, yield* signed({}))).toBe(401)
    })
  )

  it.scopedLive("sign a page in for as long as they are good", () =>
    Effect.gen(function* () {
      const server = yield* start({ authentication: Auth.layerJwt({ secret: Redacted.make(secret) }) })
      const token = yield* signed({ exp: seconds() + 100 })
      const signedIn = yield* server.call({ path: "/session", json: { token } })
      expect(signedIn.status).toBe(204)
      const [cookie = ""] = signedIn.headers["set-cookie"] ?? []
      expect(cookie).toMatch(/; HttpOnly.*; SameSite=Strict|; SameSite=Strict.*; HttpOnly/)
      const maxAge = Number(/Max-Age=(\d+)/.exec(cookie)?.[1])
      expect(maxAge).toBeGreaterThan(60)
      expect(maxAge).toBeLessThanOrEqual(100)
      const session = { cookie: cookie.split(";", 1)[0] ?? "" }
      expect((yield* server.call({ path: "/runs", headers: session })).status).toBe(200)
      const foreign = { ...session, origin: "http://evil.example" }
      expect((yield* server.call({ path: "/runs", headers: foreign })).status).toBe(403)
      // A cookie of this length would be dropped by browsers.
      const long = yield* signed({ note: "x".repeat(4000) })
      expect(yield* whoIs(server, long)).toBe(200)
      expect((yield* server.call({ path: "/session", json: { token: long } })).status).toBe(401)
    })
  )

  it.scopedLive("may be any garbage", () =>
    Effect.gen(function* () {
      const server = yield* start({ authentication: Auth.layerJwt({ secret: Redacted.make(secret) }) })
      const part = FastCheck.oneof(
        FastCheck.base64String(),
        FastCheck.jsonValue().map((value) => Buffer.from(JSON.stringify(value) ?? "").toString("base64url")),
        FastCheck.constantFrom(
          "e30",
          "eyJhbGciOiJIUzI1NiJ9",
          "eyJhbGciOiJub25lIn0",
          "eyJhbGciOiJIUzI1NiIsImNyaXQiOlsieCJdfQ",
          ""
        )
      )
      const garbage = FastCheck.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join("."))
      for (const token of FastCheck.sample(garbage, { numRuns: 100, seed: 1 })) {
        expect([token, yield* whoIs(server, token.replace(/\s/g, ""))]).toEqual([token, 401])
      }
    })
  )
})

/** A server of keys. */
const keyServer = Effect.gen(function* () {
  const state = { body: "", status: 200, headers: {} as Record<string, string>, asked: 0 }
  const server = yield* Effect.acquireRelease(
    Effect.async<Http.Server>((resume) => {
      const server = Http.createServer((_, response) => {
        state.asked += 1
        response.writeHead(state.status, { "content-type": "application/json", ...state.headers }).end(state.body)
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => void server.close())
  )
  const { port } = server.address() as AddressInfo
  return { state, url: `http://127.0.0.1:${port}/keys` }
})

const pair = (kid: string, alg: string) =>
  Effect.promise(async () => {
    const { privateKey, publicKey } = await Jose.generateKeyPair(alg, { extractable: true })
    return { privateKey, publicKey, jwk: { ...(await Jose.exportJWK(publicKey)), kid, alg }, header: { alg, kid } }
  })

const setOf = (...keys: ReadonlyArray<{ readonly jwk: Jose.JWK }>) =>
  JSON.stringify({ keys: keys.map(({ jwk }) => jwk) })

describe("tokens whose keys are published", () => {
  it.scopedLive.each(["RS256", "PS256", "ES256", "EdDSA"])("may be signed by %s", (alg) =>
    Effect.gen(function* () {
      const { state, url } = yield* keyServer
      const key = yield* pair("one", alg)
      state.body = setOf(key)
      const server = yield* start({ authentication: Auth.layerJwt({ jwksUrl: url }) })
      expect(yield* whoIs(server, yield* signed({}, key.privateKey, key.header))).toBe(200)
      expect(yield* whoIs(server, yield* signed({ exp: seconds() - 60 }, key.privateKey, key.header))).toBe(401)
      const other = yield* pair("one", alg)
      expect(yield* whoIs(server, yield* signed({}, other.privateKey, other.header))).toBe(401)
      expect(yield* whoIs(server, yield* signed({}, other.privateKey, { ...other.header, kid: "two" }))).toBe(401)
      expect(state.asked).toBe(1)
    })
  )

  it.scopedLive("can not be signed with a public key taken for a secret", () =>
    Effect.gen(function* () {
      const { state, url } = yield* keyServer
      const key = yield* pair("one", "RS256")
      state.body = JSON.stringify({
        keys: [key.jwk, { kty: "oct", k: Buffer.from(secret).toString("base64url"), kid: "two" }]
      })
      const server = yield* start({ authentication: Auth.layerJwt({ jwksUrl: url }) })
      const pem = yield* Effect.promise(() => Jose.exportSPKI(key.publicKey))
      for (const text of [pem, pem.trim(), JSON.stringify(key.jwk), secret]) {
        for (const kid of ["one", "two"]) {
          expect(yield* whoIs(server, yield* signed({}, bytes(text), { alg: "HS256", kid }))).toBe(401)
        }
      }
    })
  )

  it.scopedLive("may be signed by a new key as soon as it is published, and no more by one that is not any more", () =>
    Effect.gen(function* () {
      const { state, url } = yield* keyServer
      const [one, two] = [yield* pair("one", "ES256"), yield* pair("two", "ES256")]
      state.body = setOf(one)
      const server = yield* start({ authentication: Auth.layerJwt({ jwksUrl: url }) })
      const status = (key: typeof one) =>
        Effect.flatMap(signed({}, key.privateKey, key.header), (token) => whoIs(server, token))
      expect(yield* status(one)).toBe(200)
      state.body = setOf(two)
      // Whoever invents names of keys does not make the server ask each time.
      expect([yield* status(two), yield* status(two), state.asked]).toEqual([401, 401, 1])
      const now = Date.now()
      yield* Effect.acquireRelease(
        Effect.sync(() => vi.useFakeTimers({ toFake: ["Date"], now: now + 31_000 })),
        () => Effect.sync(() => vi.useRealTimers())
      )
      expect([yield* status(two), yield* status(one), state.asked]).toEqual([200, 401, 2])
      // While the keys are good, nobody needs their server.
      state.status = 500
      vi.setSystemTime(now + 300_000)
      expect([yield* status(two), state.asked]).toEqual([200, 2])
      vi.setSystemTime(now + 1_000_000)
      expect([yield* status(two), state.asked]).toEqual([503, 3])
    })
  )

  it.scopedLive("can not be checked without keys, which is nobody's fault who asks", () =>
    Effect.gen(function* () {
      const { state, url } = yield* keyServer
      const key = yield* pair("one", "ES256")
      const token = yield* signed({}, key.privateKey, key.header)
      const elsewhere = yield* keyServer
      elsewhere.state.body = setOf(key)
      for (const [status, body, headers] of [
        [500, "broken", {}],
        [200, "<html>", {}],
        [200, JSON.stringify({ keys: 1 }), {}],
        [200, JSON.stringify({ keys: [], more: "x".repeat(2_000_000) }), {}],
        [302, "", { location: elsewhere.url }]
      ] as const) {
        Object.assign(state, { status, body, headers })
        const server = yield* start({ authentication: Auth.layerJwt({ jwksUrl: url }) })
        const answer = yield* server.call({ path: "/runs", headers: { authorization: `Bearer ${token}` } })
        expect([status, body.slice(0, 20), answer.status]).toEqual([status, body.slice(0, 20), 503])
        expect(answer.headers["retry-after"]).toBe("5")
        expect(answer.body).not.toContain(url)
        expect((yield* server.call({ path: "/runs" })).status).toBe(401)
        Object.assign(state, { status: 200, body: setOf(key), headers: {} })
        expect(yield* whoIs(server, token)).toBe(200)
      }
      expect(elsewhere.state.asked).toBe(0)
    })
  )
})
