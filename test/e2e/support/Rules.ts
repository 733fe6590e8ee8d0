/** What holds for every run, whatever happened to it. */
import { expect } from "vitest"
import * as Envelope from "../../../src/domain/Envelope.js"
import * as RunState from "../../../src/domain/RunState.js"
import * as RunStatus from "../../../src/domain/RunStatus.js"
import * as Snapshot from "../../../src/domain/Snapshot.js"
import * as Script from "../../../src/testing/UpstreamScript.js"
import type { Client } from "./Client.js"
import { apiKey, toolSecret, type World } from "./World.js"

/**
 * - `client`: the owner's; the world's own by default
 * - `followUp`: whether the conversation is asked to go on afterwards (default: yes)
 */
export interface Options {
  readonly client?: Client
  readonly followUp?: boolean
}

const isTerminal = (type: string): boolean => type === "finish" || type === "cancelled" || type === "error"

/** A leg ends with one terminal event, or where the next attempt begins. Nothing follows a final one. */
const checkLegs = (envelopes: ReadonlyArray<Envelope.Envelope>): void => {
  for (const [index, { event }] of envelopes.entries()) {
    if (!isTerminal(event.type)) continue
    const next = envelopes[index + 1]?.event
    if (event.type === "error" && event.recoverable) {
      expect([undefined, "run-resumed", "cancelled"], "after a recoverable failure").toContain(next?.type)
    } else {
      expect(next, `after ${event.type}`).toBeUndefined()
    }
  }
}

/** Every call that was not left behind has one result, and its events stand in order. */
const checkCalls = (envelopes: ReadonlyArray<Envelope.Envelope>, state: RunState.RunState): void => {
  const results = envelopes.flatMap(({ event }) => (event.type === "tool-call-result" ? [event.toolCallId] : []))
  expect(new Set(results).size, "a call has one result").toBe(results.length)
  const order = ["tool-call-start", "tool-call-delta", "tool-call-ready", "tool-start", "tool-call-result"]
  const reached = new Map<string, number>()
  for (const { event } of envelopes) {
    const rank = order.indexOf(event.type)
    if (rank === -1 || !("toolCallId" in event)) continue
    const before = reached.get(event.toolCallId) ?? -1
    expect(rank, `${event.type} of ${event.toolCallId}`).toBeGreaterThanOrEqual(before)
    reached.set(event.toolCallId, rank)
  }
  if (!RunStatus.isEnded(state.status)) return
  for (const turn of RunState.turns(state)) {
    for (const call of turn.calls) expect(call.result, `result of ${call.id}`).toBeDefined()
  }
}

/** What was committed was approved before, once. */
const checkCommits = (world: World, runId: string, envelopes: ReadonlyArray<Envelope.Envelope>): void => {
  const approved = new Set(
    envelopes.flatMap(({ event }) =>
      event.type === "approval-decision" && event.decision === "approved" ? [event.approvalId] : []
    )
  )
  const done = world.tools.of(runId, "commit").map(({ key }) => key)
  for (const key of done) expect([...approved], "a commit without an approval").toContain(key)
  expect(new Set(done).size, "an approval was committed twice").toBe(done.length)
}

const withoutStoreFacts = (snapshot: Snapshot.Snapshot) => {
  const { expiresAt: _1, queuePosition: _2, ...rest } = snapshot
  return rest
}

/** The next message in the conversation reaches a strict model, which is told the text as it was shown. */
const checkFollowUp = async (world: World, client: Client, shown: Snapshot.Snapshot): Promise<void> => {
  const message = `And then? ${shown.runId}`
  const run = await client.start({ message, conversationId: shown.conversationId })
  const end = await client.settled(run.runId)
  expect(end.status, JSON.stringify(end.error)).toBe("completed")
  expect(world.upstream.requests.filter(({ refused }) => refused !== undefined)).toEqual([])
  const asked = world.upstream.asked(message)
  expect(asked).toHaveLength(1)
  const told = asked.flatMap(Script.messagesOf).flatMap(({ content, role }) => (role === "assistant" ? [content] : []))
  const latest = (await client.call("GET", `/conversations/${shown.conversationId}`)).body.messages
  const kept = latest.some(({ messageId }: { messageId: string }) => messageId === shown.assistantMessageId)
  if (kept) expect(told.filter((content) => typeof content === "string").join("")).toContain(shown.text)
}

export const check = async (world: World, runId: string, options: Options = {}): Promise<void> => {
  const client = options.client ?? world.client
  const shown = await client.snapshot(runId)
  const envelopes = (await client.log(runId)).map((value) => Envelope.decodeSync(value))
  const upto = envelopes.filter(({ seq }) => seq <= shown.lastSeq)
  expect(envelopes.map(({ seq }) => seq)).toEqual(envelopes.map((_, index) => index + 1))
  expect(envelopes.every((envelope) => envelope.runId === runId)).toBe(true)
  const state = RunState.reduceAll(RunState.empty(runId), upto)
  expect(JSON.parse(JSON.stringify(withoutStoreFacts(Snapshot.of(state))))).toEqual(withoutStoreFacts(shown))
  checkLegs(envelopes)
  checkCalls(envelopes, state)
  checkCommits(world, runId, envelopes)
  if (RunStatus.isEnded(shown.status)) {
    expect(isTerminal(envelopes.at(-1)?.event.type ?? ""), "an ended run ends with a terminal event").toBe(true)
    const page = await client.call("GET", `/conversations/${shown.conversationId}`)
    const message = page.body.messages.find(
      ({ messageId }: { messageId: string }) => messageId === shown.assistantMessageId
    )
    if (message !== undefined) expect(message.content).toBe(shown.text)
  }
  for (const secret of [apiKey, toolSecret]) {
    expect(JSON.stringify(envelopes), "a secret in the log").not.toContain(secret)
    expect(world.output(), "a secret in the output").not.toContain(secret)
  }
  if (options.followUp !== false && RunStatus.isEnded(shown.status)) await checkFollowUp(world, client, shown)
}
