import { request as httpRequest } from "node:http"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import type { Accepted, Client } from "./support/Client.js"
import { send } from "./support/ToolServer.js"
import * as World from "./support/World.js"

const aliceToken = "alice-token-5d0e7f21"
const bobToken = "bob-token-93ab64c8"
const unknownRun = "run_01890000-0000-7000-8000-000000000001"
const unknownApproval = "apr_01890000-0000-7000-8000-000000000001"
const unknownConversation = "conv_01890000-0000-7000-8000-000000000001"

let world: World.World
let alice: Client
let bob: Client
let nobody: Client
let wrong: Client
beforeAll(async () => {
  world = await World.start({ users: { alice: aliceToken, bob: bobToken } })
  alice = world.as(aliceToken)
  bob = world.as(bobToken)
  nobody = world.client
  wrong = world.as("alice-token-5d0e7f22")
})
afterAll(() => world.stop())

/** A run of Alice that waits for her. */
const waiting = async (message: string) => {
  world.upstream.script(message, [
    Script.calls({ id: "call_w", name: "save_note", args: '{"doc":"d","text":"private"}' }),
    Script.answer("Saved.")
  ])
  const run = await alice.start(message)
  return { ...run, pending: await alice.waiting(run.runId) }
}

/** Everything that can be asked about a run, as method, path and body. */
const requests = (
  runId: string,
  approvalId: string,
  conversationId: string
): ReadonlyArray<readonly [string, string, unknown?]> => [
  ["GET", `/runs/${runId}`],
  ["GET", `/runs/${runId}/events`],
  ["GET", `/runs/${runId}/events?after=999999`],
  ["GET", `/runs/${runId}/trace`],
  ["GET", `/runs/${runId}/checkpoints`],
  ["GET", `/runs/${runId}/checkpoints/1`],
  ["POST", `/runs/${runId}/cancel`, {}],
  ["POST", `/runs/${runId}/approvals/${approvalId}`, { decision: "approve" }],
  ["POST", `/runs/${runId}/regenerate`, {}],
  ["POST", `/runs/${runId}/resume`, {}],
  ["POST", "/chat", { resume: { runId, lastAppliedSeq: 0 } }],
  ["POST", "/api/agent/stream", { resume: { runId, lastAppliedSeq: 999_999 } }],
  ["POST", "/chat", { message: "hello", conversationId }],
  ["GET", `/conversations/${conversationId}`],
  ["DELETE", `/conversations/${conversationId}`],
  ["DELETE", `/runs/${runId}`],
  ["HEAD", `/runs/${runId}`],
  ["PUT", `/runs/${runId}`, {}],
  ["PATCH", `/runs/${runId}/cancel`, {}]
]

const shapeOf = async (client: Client, [method, path, body]: readonly [string, string, unknown?]) => {
  const { headers, status, text } = await client.call(method, path, body)
  return { method, path, status, text, type: headers.get("content-type"), location: headers.get("location") }
}

/** Ids of the question may stand in an answer; what is left must not depend on whose they are. */
const anonymous = (shape: object, ...ids: ReadonlyArray<string>) =>
  ids.reduce((text, id) => text.replaceAll(id, "ID"), JSON.stringify(shape))

test("what belongs to another looks the same as what does not exist, and is not touched", async () => {
  const { conversationId, pending, runId } = await waiting("Alice's own")
  const before = await alice.log(runId)
  const asked = world.upstream.requests.length
  for (const client of [bob, nobody, wrong]) {
    const theirs = requests(runId, pending.approvalId, conversationId)
    const none = requests(unknownRun, unknownApproval, unknownConversation)
    for (const [index, request] of theirs.entries()) {
      const other = none[index]
      if (other === undefined) throw new Error("the lists differ")
      const found = await shapeOf(client, request)
      expect(anonymous(found, runId, pending.approvalId, conversationId)).toBe(
        anonymous(await shapeOf(client, other), unknownRun, unknownApproval, unknownConversation)
      )
      const expected = client === bob ? [404, 405] : [401, 405, 404]
      expect(expected, `${request[0]} ${request[1]} gave ${found.status} ${found.text}`).toContain(found.status)
      expect(found.text).not.toContain("private")
    }
  }
  expect(world.upstream.requests).toHaveLength(asked)
  expect(await alice.log(runId)).toEqual(before)
  for (const path of ["/runs", "/conversations", `/runs?conversationId=${conversationId}`]) {
    const list = await bob.call("GET", path)
    expect([list.status, list.body.items]).toEqual([200, []])
    expect((await nobody.call("GET", path)).status).toBe(401)
  }
  expect((await alice.decide(runId, pending.approvalId, "approve")).status).toBe(200)
  expect((await alice.settled(runId)).toolCalls[0]?.approval?.decision?.by).toBe("alice")
  expect(world.tools.of(runId, "commit")).toHaveLength(1)
  await world.check(runId, { client: alice })
})

test("a decision needs the run that asked for it", async () => {
  const first = await waiting("First of two")
  const second = await waiting("Second of two")
  const mixed = await alice.decide(first.runId, second.pending.approvalId, "approve")
  expect([mixed.status, mixed.body._tag]).toEqual([404, "NotFound"])
  for (const { pending, runId } of [first, second]) {
    expect((await alice.waiting(runId)).approvalId).toBe(pending.approvalId)
    expect(world.tools.of(runId, "commit")).toEqual([])
    await alice.decide(runId, pending.approvalId, "reject")
    await alice.settled(runId)
    await world.check(runId, { client: alice })
  }
})

describe("ids that do not belong together", () => {
  let first: Accepted
  let second: Accepted
  beforeAll(async () => {
    for (const message of ["Cut one", "Cut two"]) {
      world.upstream.script(message, [Script.reply([Script.text("half"), Script.wait(30)], { framing: "close" })])
    }
    first = await alice.start("Cut one")
    second = await alice.start("Cut two")
    await alice.settled(first.runId)
    await alice.settled(second.runId)
  })

  test("resume nothing", async () => {
    const asked = world.upstream.requests.length
    for (const wrongIds of [
      { assistantMessageId: second.assistantMessageId },
      { conversationId: second.conversationId },
      { assistantMessageId: first.assistantMessageId, conversationId: second.conversationId },
      { assistantMessageId: "" }
    ]) {
      const before = await alice.log(first.runId)
      const reading = await alice.resume(first, 0, wrongIds)
      expect(await reading.ended).toEqual([])
      expect(reading.controls).toMatchObject([
        { type: "resume-start" },
        { type: "resume-unavailable", runId: first.runId }
      ])
      expect(await alice.log(first.runId)).toEqual(before)
    }
    expect(world.upstream.requests).toHaveLength(asked)
  })

  test("start nothing in a conversation of somebody else, and regenerate only the last answer", async () => {
    const runs = await alice.call("GET", `/runs?conversationId=${first.conversationId}`)
    expect(runs.body.items.map(({ runId }: Accepted) => runId)).toEqual([first.runId])
    const next = await alice.start({ message: "Goes on", conversationId: first.conversationId })
    await alice.settled(next.runId)
    const late = await alice.call("POST", `/runs/${first.runId}/regenerate`, {})
    expect([late.status, late.body._tag]).toEqual([409, "Conflict"])
    await world.check(next.runId, { client: alice })
    await world.check(second.runId, { client: alice })
  })
})

test("a result that was read for one user is never given to another", async () => {
  world.tools.on("read_doc", "secret-7", ({ runId }, response) => send(response, { content: `for ${runId}` }))
  const message = "Read the secret document"
  world.upstream.script(message, (_, n) =>
    n % 2 === 0 ? Script.calls({ id: "call_7", name: "read_doc", args: '{"id":"secret-7"}' }) : Script.answer("Read.")
  )
  for (const client of [alice, bob, alice]) {
    const run = await client.start(message)
    const end = await client.settled(run.runId)
    expect(end.toolCalls[0]).toMatchObject({ source: "executed", result: { content: `for ${run.runId}` } })
    await world.check(run, { client, followUp: false })
  }
  expect(world.tools.ledger.filter(({ tool }) => tool === "read_doc")).toHaveLength(3)
})

/** A request as a browser or a script could send it, with any `Host`. */
const statusOf = (headers: Record<string, string>) =>
  new Promise<number>((resolve, reject) => {
    const { hostname, port } = new URL(world.url())
    httpRequest({ hostname, port, path: "/runs", headers }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
      .on("error", reject)
      .end()
  })

test("only a whole credential counts, and none is looked for in the address", async () => {
  expect(await statusOf({ authorization: `Bearer ${aliceToken}` })).toBe(200)
  for (const authorization of ["", "Bearer", "Bearer ", aliceToken, `Basic ${aliceToken}`, `Bearer ${aliceToken}x`]) {
    expect([authorization, await statusOf({ authorization })]).toEqual([authorization, 401])
  }
  for (const name of ["token", "access_token", "authorization", "key"]) {
    expect((await nobody.call("GET", `/runs?${name}=${aliceToken}`)).status).toBe(401)
  }
  expect(world.output()).not.toContain(aliceToken)
})

test("the page signs in once, and its cookie is for this site alone", async () => {
  const refused = await nobody.call("POST", "/session", { token: "guess" })
  expect(refused.status).toBe(401)
  const answer = await nobody.call("POST", "/session", { token: bobToken })
  expect(answer.status).toBe(204)
  const cookie = answer.headers.get("set-cookie") ?? ""
  expect(cookie).toMatch(/HttpOnly/i)
  expect(cookie).toMatch(/SameSite=Strict/i)
  const session = { cookie: cookie.split(";")[0] ?? "" }
  expect((await nobody.call("GET", "/runs", undefined, session)).status).toBe(200)
  const foreign = { ...session, origin: "http://evil.example" }
  expect((await nobody.call("POST", "/chat", { message: "hi", background: true }, foreign)).status).toBe(403)
})
