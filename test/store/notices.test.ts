import { expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import * as Notices from "../../src/store/internal/sqlNotices.js"

const text = FastCheck.oneof(
  FastCheck.string({ unit: "grapheme", maxLength: 400 }),
  FastCheck.constantFrom("ж".repeat(2600), "漢".repeat(1800), "🙂".repeat(1300), "\n\u2028 : , |", "x".repeat(20_000))
)

const told = FastCheck.record({
  key: FastCheck.integer({ min: 1, max: 2 ** 40 }),
  after: FastCheck.nat(1_000_000),
  events: FastCheck.array(
    FastCheck.record({
      type: FastCheck.constantFrom("text-delta" as const, "finish" as const, "tool-call-result" as const),
      json: text.map((delta) => JSON.stringify({ delta })),
      createdAt: FastCheck.nat(Number.MAX_SAFE_INTEGER)
    }),
    { maxLength: 8 }
  )
})

const notice = FastCheck.record({
  appended: FastCheck.uniqueArray(told, { maxLength: 20, selector: ({ key }) => key }),
  keys: FastCheck.uniqueArray(FastCheck.integer({ min: 1, max: 2 ** 40 }), { maxLength: 1500 }),
  work: FastCheck.boolean(),
  left: FastCheck.boolean()
})

it.prop(
  "what is announced is heard: each run's events as they are stored, or at least that it has changed",
  [notice],
  ([said]) => {
    const messages = Notices.encode("me", said)
    for (const message of messages) expect(Buffer.byteLength(message)).toBeLessThanOrEqual(5000)
    const heard = messages.map((message) => {
      const { change, sender } = Notices.decode(message)
      expect(sender).toBe("me")
      return change()
    })
    const keys = heard.flatMap((change) => change.keys ?? [])
    const appended = heard.flatMap((change) => change.appended ?? [])
    expect(heard.some(({ work }) => work)).toBe(said.work)
    expect(heard.some(({ left }) => left)).toBe(said.left)
    expect(new Set([...keys, ...appended.map(({ key }) => key)])).toEqual(
      new Set([...said.keys, ...said.appended.map(({ key }) => key)])
    )
    for (const { count, events, first, key } of appended) {
      const stored = said.appended.find((one) => one.key === key)
      expect(events()).toEqual(stored?.events.map((event, index) => ({ ...event, seq: first + index })))
      expect([first, count]).toEqual([(stored?.after ?? 0) + 1, stored?.events.length])
      expect(keys).not.toContain(key)
    }
  },
  { fastCheck: { numRuns: 200 } }
)

it("the events of an ordinary commit are told, in few messages", () => {
  const events = [
    { type: "text-delta" as const, json: JSON.stringify({ delta: "naïve 漢字 ".repeat(3) }), createdAt: 1 }
  ]
  const appended = Array.from({ length: 60 }, (_, index) => ({ key: index + 1, after: 10, events }))
  const messages = Notices.encode("me", { appended, work: false, left: false })
  const heard = messages.flatMap((message) => Notices.decode(message).change().appended ?? [])
  expect(heard.map(({ key }) => key)).toEqual(appended.map(({ key }) => key))
  expect(messages.length).toBeLessThan(4)
})

it("a greeting says nothing, and what is no message says that anything may have changed", () => {
  const greeting = Notices.decode(Notices.greeting("me"))
  expect([greeting.sender, greeting.change()]).toEqual(["me", { keys: [], work: false, left: false }])
  expect(Notices.decode("?").change()).toEqual({ work: true, left: true })
})
