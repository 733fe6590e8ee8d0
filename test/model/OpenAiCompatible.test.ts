import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/TestClock"
import * as OpenAiCompatible from "../../src/model/OpenAiCompatible.js"
import * as ScriptedUpstream from "../../src/testing/ScriptedUpstream.js"
import * as Script from "../../src/testing/UpstreamScript.js"
import { bytesOf, collect, cut, finishOf, limits, modelAt, piecesClient, request, textOf, undici } from "./support.js"

const { body, comment, data, done, finish, gate, raw, reply, text, usage, wait } = Script

const secret = "sk-canary-0123456789"

const ask = (script: Script.Script, options: Partial<OpenAiCompatible.Options> = {}) =>
  Effect.gen(function* () {
    const upstream = yield* ScriptedUpstream.make({ script })
    const model = yield* modelAt(upstream.url, options)
    const outcome = yield* collect(model)
    return { ...outcome, upstream }
  }).pipe(Effect.provide(undici))

const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const before = yield* Clock.currentTimeMillis
    const value = yield* effect
    return [value, (yield* Clock.currentTimeMillis) - before] as const
  })

const closedWithin = (upstream: ScriptedUpstream.ScriptedUpstream, n: number, ms: number) =>
  Effect.timeoutFail(upstream.closed(n), { duration: ms, onTimeout: () => "the socket stayed open" })

describe("a turn", () => {
  it.scopedLive("is asked for and read", () =>
    Effect.gen(function* () {
      const script = [reply([comment("hi"), text("The tide "), text("turns."), finish("stop"), usage(3, 2), done])]
      const { error, parts, upstream } = yield* ask(script, {
        model: "deep",
        apiKey: Redacted.make(`${secret}\n`),
        headers: { "X-Extra": "1", "x-secret": Redacted.make("two") }
      })
      expect(error).toBeUndefined()
      expect(textOf(parts)).toBe("The tide turns.")
      expect(finishOf(parts)).toMatchObject({ reason: "stop", usage: { inputTokens: 3, outputTokens: 2 } })
      const sent = upstream.requests[0]
      expect(sent).toMatchObject({ method: "POST", path: "/v1/chat/completions", aborted: false })
      expect(sent?.headers).toMatchObject({
        authorization: `Bearer ${secret}`,
        accept: "text/event-stream",
        "content-type": "application/json",
        "x-extra": "1",
        "x-secret": "two"
      })
      expect(sent?.headers).not.toHaveProperty("traceparent")
      expect(sent?.headers).not.toHaveProperty("b3")
      expect(sent?.body).toMatchObject({ model: "deep", stream: true, messages: [{ role: "user", content: "Hello" }] })
    })
  )

  it.scopedLive("keeps the query of a base URL and lets headers replace ours", () =>
    Effect.gen(function* () {
      const upstream = yield* ScriptedUpstream.make({ script: [Script.answer("x")] })
      const model = yield* modelAt(`${upstream.url}/?version=1#part`, {
        apiKey: Redacted.make(secret),
        headers: { Authorization: Redacted.make("Other") }
      })
      expect((yield* collect(model)).error).toBeUndefined()
      expect(upstream.requests[0]?.path).toBe("/v1/chat/completions?version=1")
      expect(upstream.requests[0]?.headers.authorization).toBe("Other")
    }).pipe(Effect.provide(undici))
  )

  it.scopedLive("uses its connection again after a proper end", () =>
    Effect.gen(function* () {
      const upstream = yield* ScriptedUpstream.make({ script: [reply([text("x"), finish("stop"), done, wait(20)])] })
      const model = yield* modelAt(upstream.url)
      for (let i = 0; i < 6; i++) expect((yield* collect(model)).error).toBeUndefined()
      // The pool may open a second one while it takes the first one back.
      expect(new Set(upstream.requests.map((sent) => sent.connection)).size).toBeLessThan(3)
    }).pipe(Effect.provide(undici))
  )

  it.scopedLive("comes through a real socket byte by byte", () =>
    Effect.gen(function* () {
      const content = "春眠不觉晓 🐼 é עברית"
      const args = JSON.stringify({ q: content })
      const { error, parts } = yield* ask([
        {
          ...reply([
            text(content),
            Script.toolCall({ index: 0, id: "A", name: "lookup", args }),
            finish("tool_calls"),
            done
          ]),
          pieceBytes: 1
        }
      ])
      expect(error).toBeUndefined()
      expect(textOf(parts)).toBe(content)
      expect(parts.flatMap((part) => (part.type === "tool-call-delta" ? [part.delta] : [])).join("")).toBe(args)
    })
  )

  it.effect("comes in whatever pieces the client hands over", () =>
    Effect.gen(function* () {
      const bytes = bytesOf(reply([text("é🐼"), text("שלום"), finish("stop"), usage(1, 2), done]).steps)
      for (const size of [1, 2, 3, 7, bytes.length]) {
        const model = yield* modelAt("http://127.0.0.1:1/v1").pipe(Effect.provide(piecesClient(cut(bytes, size))))
        const { error, parts } = yield* collect(model)
        expect(error).toBeUndefined()
        expect(textOf(parts)).toBe("é🐼שלום")
      }
    })
  )

  it.scopedLive("shows each piece when it comes, not at the end", () =>
    Effect.gen(function* () {
      const upstream = yield* ScriptedUpstream.make({
        script: [reply([text("a"), gate("b"), text("b"), gate("end"), finish("stop"), done])]
      })
      const model = yield* modelAt(upstream.url)
      const seen: Array<string> = []
      yield* model.stream(request).pipe(
        Stream.runForEach((part) => {
          if (part.type !== "text-delta") return Effect.void
          seen.push(part.delta)
          return upstream.release(part.delta === "a" ? "b" : "end")
        })
      )
      expect(seen).toEqual(["a", "b"])
    }).pipe(Effect.provide(undici))
  )
})

describe("the end", () => {
  const endings: ReadonlyArray<readonly [name: string, steps: ReadonlyArray<Script.Step>]> = [
    ["silence", []],
    ["keep-alives", Array.from({ length: 100 }, () => [comment("on"), wait(50)]).flat()],
    ["more text", [text("late"), wait(10), text("later")]]
  ]
  it.scopedLive.each(endings)("an end mark ends the turn although the server goes on with %s", ([, rest]) =>
    Effect.gen(function* () {
      const upstream = yield* ScriptedUpstream.make({
        script: [reply([text("x"), finish("stop"), usage(1, 1), done, rest], { end: "open" })]
      })
      const model = yield* modelAt(upstream.url)
      const [{ error, parts }, ms] = yield* timed(collect(model))
      expect(error).toBeUndefined()
      expect(textOf(parts)).toBe("x")
      expect(finishOf(parts)?.usage.totalTokens).toBe(2)
      expect(ms).toBeLessThan(2_500)
      expect((yield* closedWithin(upstream, 0, 5_000)).aborted).toBe(true)
    }).pipe(Effect.provide(undici))
  )

  it.scopedLive("without an end mark the finish reason is enough, after a moment for the usage", () =>
    Effect.gen(function* () {
      const late = [reply([text("x"), finish("stop"), wait(50), usage(7, 1)], { end: "open" })]
      const [withUsage, ms] = yield* timed(ask(late, { graceMs: 1_000 }))
      expect(withUsage.error).toBeUndefined()
      expect(finishOf(withUsage.parts)?.usage.inputTokens).toBe(7)
      expect(ms).toBeLessThan(3_000)
      yield* closedWithin(withUsage.upstream, 0, 5_000)
      const alive = Array.from({ length: 400 }, () => [comment("on"), wait(20)]).flat()
      const [kept, keptMs] = yield* timed(ask([reply([text("x"), finish("stop"), alive])], { graceMs: 1_000 }))
      expect(kept.error).toBeUndefined()
      expect(keptMs).toBeLessThan(3_000)
    })
  )

  const cuts: ReadonlyArray<readonly [name: string, options: Omit<Script.Reply, "steps">]> = [
    ["a proper end", {}],
    ["a connection that is closed as a way to end", { framing: "close" }],
    ["a connection that is closed too early", { end: "fin" }],
    ["a reset", { end: "reset" }]
  ]
  it.scopedLive.each(cuts)("%s without a finish reason is a truncation", ([, options]) =>
    Effect.gen(function* () {
      const texts = Array.from({ length: 10 }, (_, i) => text(`${i} `))
      const { error, parts } = yield* ask([reply([texts, wait(100)], options)])
      expect(error).toMatchObject({ code: "truncated", recoverable: true, retryable: true })
      expect(textOf(parts)).toBe("0 1 2 3 4 5 6 7 8 9 ")
      expect(finishOf(parts)).toBeUndefined()
    })
  )

  it.scopedLive.each(cuts)("%s after the finish reason is an end", ([, options]) =>
    Effect.gen(function* () {
      const { error, parts } = yield* ask([reply([text("x"), finish("stop"), wait(50)], options)])
      expect(error).toBeUndefined()
      expect(finishOf(parts)?.reason).toBe("stop")
    })
  )

  it.scopedLive("half of a call's arguments is a truncation", () =>
    Effect.gen(function* () {
      const args = JSON.stringify({ content: "x".repeat(4_096) }).slice(0, 2_048)
      const call = Script.toolCall({ index: 0, id: "A", name: "save", args })
      const { error, parts } = yield* ask([reply([call, wait(50)], { end: "fin" })])
      expect(error).toMatchObject({ code: "truncated", recoverable: true })
      expect(finishOf(parts)).toBeUndefined()
    })
  )
})

describe("silence", () => {
  it.scopedLive("before headers, before output and within it has its limits", () =>
    Effect.gen(function* () {
      const short = { firstChunkTimeoutMs: 150, chunkTimeoutMs: 100 }
      const cases: ReadonlyArray<readonly [Script.Reply, string]> = [
        [reply([], { head: "never" }), ""],
        [reply([], { end: "open" }), ""],
        [reply([Script.delta({ role: "assistant", content: "" })], { end: "open" }), ""],
        [reply([text("a"), text("b")], { end: "open" }), "ab"]
      ]
      for (const [script, kept] of cases) {
        const [{ error, parts, upstream }, ms] = yield* timed(ask([script], short))
        expect(error).toMatchObject({ code: "timeout", recoverable: true, retryable: true })
        expect(textOf(parts)).toBe(kept)
        expect(ms).toBeLessThan(3_000)
        expect((yield* closedWithin(upstream, 0, 5_000)).aborted).toBe(true)
      }
    })
  )

  it.scopedLive("within the output has its own limit, however long the first may be", () =>
    Effect.gen(function* () {
      const script = [reply([wait(300), text("a"), wait(20), text("b")], { end: "open" })]
      const [{ error, parts }, ms] = yield* timed(ask(script, { firstChunkTimeoutMs: 20_000, chunkTimeoutMs: 100 }))
      expect(error).toMatchObject({ code: "timeout" })
      expect(error?.message).toContain("100 ms")
      expect(textOf(parts)).toBe("ab")
      expect(ms).toBeLessThan(3_000)
    })
  )

  it.scopedLive("is not counted while the reader is busy", () =>
    Effect.gen(function* () {
      const upstream = yield* ScriptedUpstream.make({
        script: [reply([text("a"), gate("a"), text("b"), gate("b"), text("c"), finish("stop"), done])]
      })
      const model = yield* modelAt(upstream.url, { firstChunkTimeoutMs: 5_000, chunkTimeoutMs: 150 })
      const types: Array<string> = []
      yield* model.stream(request).pipe(
        Stream.runForEach((part) => {
          types.push(part.type)
          return part.type === "text-delta"
            ? Effect.zipRight(Effect.sleep(400), upstream.release(part.delta))
            : Effect.void
        })
      )
      expect(types).toEqual(["text-delta", "text-delta", "text-delta", "finish"])
    }).pipe(Effect.provide(undici))
  )

  it.scopedLive("ends with whatever the server sends, be it a comment or a piece of a frame", () =>
    Effect.gen(function* () {
      const slow = (step: Script.Step) => Array.from({ length: 8 }, () => [step, wait(60)]).flat()
      const script = reply([
        slow(comment("PROCESSING")),
        slow(raw("data: : keepalive\n\n")),
        slow(raw("\n")),
        slow(text("x")),
        finish("stop"),
        done
      ])
      const { error, parts } = yield* ask([script], { firstChunkTimeoutMs: 300, chunkTimeoutMs: 300 })
      expect(error).toBeUndefined()
      expect(textOf(parts)).toBe("xxxxxxxx")
    })
  )

  it.effect("is measured by the clock of the program", () =>
    Effect.gen(function* () {
      const upstream = yield* ScriptedUpstream.make({ script: [reply([], { head: "never" })] })
      const model = yield* modelAt(upstream.url, { firstChunkTimeoutMs: 180_000 })
      const fiber = yield* Effect.fork(collect(model))
      yield* upstream.received(0)
      yield* TestClock.adjust("179 seconds")
      expect(fiber.unsafePoll()).toBeNull()
      yield* TestClock.adjust("1 seconds")
      expect((yield* Fiber.join(fiber)).error).toMatchObject({ code: "timeout" })
    }).pipe(Effect.scoped, Effect.provide(undici))
  )
})

describe("interruption", () => {
  const phases: ReadonlyArray<readonly [name: string, script: Script.Reply, afterText: boolean]> = [
    ["before the headers", reply([], { head: "never" }), false],
    ["before any output", reply([], { end: "open" }), false],
    ["in a silence", reply([text("a")], { end: "open" }), true],
    ["amid output", reply(Array.from({ length: 4_000 }, () => [text("a"), wait(5)])), true]
  ]
  it.scopedLive.each(phases)("closes the socket %s", ([, script, afterText]) =>
    Effect.gen(function* () {
      const upstream = yield* ScriptedUpstream.make({ script: [script] })
      const model = yield* modelAt(upstream.url)
      const begun = yield* Deferred.make<void>()
      const fiber = yield* model.stream(request).pipe(
        Stream.runForEach(() => Deferred.succeed(begun, undefined)),
        Effect.fork
      )
      yield* upstream.received(0)
      yield* afterText ? Deferred.await(begun) : Effect.sleep(50)
      const [closed, ms] = yield* timed(Effect.zipRight(Fiber.interrupt(fiber), closedWithin(upstream, 0, 5_000)))
      expect(closed.aborted).toBe(true)
      expect(ms).toBeLessThan(5_000)
    }).pipe(Effect.provide(undici))
  )

  it.scopedLive("a reader that has enough closes the socket", () =>
    Effect.gen(function* () {
      const upstream = yield* ScriptedUpstream.make({ script: [reply([text("a"), text("b")], { end: "open" })] })
      const model = yield* modelAt(upstream.url)
      yield* model.stream(request).pipe(Stream.take(1), Stream.runDrain)
      expect((yield* closedWithin(upstream, 0, 5_000)).aborted).toBe(true)
    }).pipe(Effect.provide(undici))
  )
})

describe("refusals", () => {
  const json = (status: number, error: object, headers?: Script.Reply["headers"]) =>
    body(status, "application/json; charset=utf-8", JSON.stringify({ error }), headers)

  const statuses: ReadonlyArray<readonly [name: string, answer: Script.Reply, expected: object]> = [
    ["400", json(400, {}), { code: "bad_request", retryable: false, recoverable: false }],
    [
      "a conversation too long",
      json(400, { code: "context_length_exceeded" }),
      { code: "context_length", retryable: false }
    ],
    [
      "401",
      json(401, { type: "authentication_error" }),
      { code: "unauthorized", retryable: false, recoverable: false }
    ],
    ["402", json(402, {}), { code: "quota_exceeded", retryable: false, recoverable: true }],
    ["403", body(403, "text/plain", "no"), { code: "unauthorized", retryable: false }],
    ["404", json(404, { code: "model_not_found" }), { code: "model_not_found", retryable: false }],
    ["408", json(408, {}), { code: "timeout", retryable: true, recoverable: true }],
    ["422", json(422, {}), { code: "bad_request", retryable: false, recoverable: false }],
    ["429", json(429, {}, { "retry-after": "7" }), { code: "rate_limited", retryable: true, retryAfterMs: 7_000 }],
    ["429 in ms", json(429, {}, { "retry-after-ms": "1500", "retry-after": "2" }), { retryAfterMs: 1_500 }],
    ["429 without credit", json(429, { type: "insufficient_quota" }), { code: "quota_exceeded", retryable: false }],
    ["500", json(500, {}), { code: "server_error", retryable: true, recoverable: true }],
    ["502", body(502, "text/html", "<html>"), { code: "server_error", retryable: true, recoverable: true }],
    ["503", json(503, {}, { "retry-after": "1" }), { code: "overloaded", retryable: true, retryAfterMs: 1_000 }],
    ["504", body(504, "text/html", "<html>"), { code: "timeout", retryable: true }],
    ["529", json(529, { type: "overloaded_error" }), { code: "overloaded", retryable: true }],
    ["204", { ...body(204, "text/plain", "") }, { code: "invalid_response", recoverable: true }],
    ["a JSON error", json(200, { message: "model not loaded" }), { code: "upstream_error", recoverable: true }],
    ["a web page", body(200, "text/html", "<!doctype html><title>Sign in</title>"), { code: "invalid_response" }],
    ["nothing", reply([]), { code: "invalid_response", retryable: true, recoverable: true }]
  ]
  it.scopedLive.each(statuses)("%s has its kind and a readable message", ([, script, expected]) =>
    Effect.gen(function* () {
      const { error, parts, upstream } = yield* ask([script])
      expect(parts).toEqual([])
      expect(error).toMatchObject(expected)
      expect(error?.message).toMatch(/^The model(?:'s answer| server).{5,120}\.$/)
      yield* closedWithin(upstream, 0, 5_000)
    })
  )

  it.scopedLive("a date to come back at is a delay", () =>
    Effect.gen(function* () {
      const at = new Date((yield* Clock.currentTimeMillis) + 10_000).toUTCString()
      const { error } = yield* ask([json(429, {}, { "retry-after": at })])
      expect(error?.retryAfterMs).toBeGreaterThan(7_000)
      expect(error?.retryAfterMs).toBeLessThanOrEqual(10_000)
      expect((yield* ask([json(429, {}, { "retry-after": "soon" })])).error).not.toHaveProperty("retryAfterMs", 0)
    })
  )

  it.scopedLive("a refusal whose body never ends is still one", () =>
    Effect.gen(function* () {
      const hanging = reply([raw('{"error":')], {
        status: 400,
        headers: { "content-type": "application/json" },
        end: "open"
      })
      const [{ error, upstream }, ms] = yield* timed(ask([hanging]))
      expect(error).toMatchObject({ code: "bad_request" })
      expect(ms).toBeLessThan(4_000)
      yield* closedWithin(upstream, 0, 5_000)
    })
  )

  it.scopedLive("what we sent and what the server said never appears", () =>
    Effect.gen(function* () {
      const split = `sk-\\u0063anary${secret.slice(9)}`
      const echo = (status: number) => (asked: Script.UpstreamRequest) =>
        body(
          status,
          status % 2 === 0 ? "application/json" : "text/html",
          `{"error":{"message":"${String(asked.headers.authorization)} ${split} ?key=${secret}","type":"${secret}","code":"${secret}"}}`,
          { "x-echo": String(asked.headers["x-api-key"]), "retry-after": secret }
        )
      const options = {
        apiKey: Redacted.make(secret),
        headers: { "x-api-key": Redacted.make(`${secret}-2`) }
      }
      for (const status of [200, 400, 401, 404, 418, 429, 500, 502]) {
        const { error, upstream } = yield* ask(echo(status), options)
        expect(upstream.requests[0]?.headers.authorization).toContain(secret)
        expect(error).toBeDefined()
        for (const shown of [JSON.stringify(error), String(error), String(error?.stack), String(error?.cause)]) {
          expect(shown).not.toContain("canary")
        }
      }
      const inBand = (asked: Script.UpstreamRequest) =>
        reply([text("x"), data({ error: { message: String(asked.headers.authorization), code: secret } })])
      expect(JSON.stringify((yield* ask(inBand, options)).error)).not.toContain("canary")
    })
  )
})

describe("connections", () => {
  it.scopedLive("one that is refused or reset is a recoverable failure that names no address", () =>
    Effect.gen(function* () {
      const free = yield* Effect.scoped(Effect.map(ScriptedUpstream.make(), (upstream) => upstream.url))
      const gone = yield* collect(yield* modelAt(`${free}?key=${secret}`))
      expect(gone.error).toMatchObject({ code: "connection", retryable: true, recoverable: true })
      expect(JSON.stringify(gone.error)).not.toMatch(/canary|127\.0\.0\.1/)
      const before = yield* ask([reply([], { end: "reset" })])
      expect(before.error).toMatchObject({ retryable: true, recoverable: true })
    }).pipe(Effect.provide(undici))
  )

  it.scopedLive("a host without an address, and a base URL that is none", () =>
    Effect.gen(function* () {
      const nowhere = yield* collect(yield* modelAt("http://nowhere.invalid/v1"))
      expect(nowhere.error).toMatchObject({ code: "connection", recoverable: true })
      for (const url of ["", "nowhere", "file:///etc/passwd", `ftp://${secret}`]) {
        const { error } = yield* collect(yield* modelAt(url))
        expect(error).toMatchObject({ code: "bad_request", retryable: false, recoverable: false })
        expect(error?.message).not.toContain("canary")
      }
    }).pipe(Effect.provide(undici))
  )

  it.scopedLive("a key that is no header value is a failure that does not show it", () =>
    Effect.gen(function* () {
      const { error, upstream } = yield* ask([Script.answer("x")], { apiKey: Redacted.make(`${secret}\r\nx: y`) })
      expect(error).toMatchObject({ code: "connection" })
      expect(String(error?.stack)).not.toContain("canary")
      expect(upstream.requests).toEqual([])
    })
  )

  for (const [name, client] of [
    ["undici", undici],
    ["fetch", FetchHttpClient.layer]
  ] as const) {
    it.scopedLive(`a redirect is not followed by ${name}`, () =>
      Effect.gen(function* () {
        const other = yield* ScriptedUpstream.make({ script: [Script.answer("leak")] })
        for (const status of [301, 302, 307, 308]) {
          const upstream = yield* ScriptedUpstream.make({
            script: [body(status, "text/plain", "", { location: `${other.url}/chat/completions` })]
          })
          const model = yield* OpenAiCompatible.make({
            ...limits,
            baseUrl: upstream.url,
            apiKey: Redacted.make(secret)
          })
          const { error, parts } = yield* collect(model)
          expect(parts).toEqual([])
          expect(error).toMatchObject({ code: "invalid_response", retryable: false })
        }
        expect(other.requests).toEqual([])
      }).pipe(Effect.provide(client))
    )
  }
})

describe("what a model says of itself", () => {
  it.effect("comes from its options", () =>
    Effect.gen(function* () {
      const price = { input: 1, output: 2 }
      const model = yield* modelAt("http://127.0.0.1:1/v1", { contextWindow: 8_192, price, draft: {} })
      expect(model).toMatchObject({ contextWindow: 8_192, price, continuesDraft: true })
      expect((yield* modelAt("http://127.0.0.1:1/v1")).continuesDraft).toBe(false)
    }).pipe(Effect.provide(undici))
  )
})
