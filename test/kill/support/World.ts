/**
 * Everything around a server that is killed again and again: its model, its tools, the people who watch and decide.
 * All of it lives in the test's process and outlives the server.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { EventOf } from "../../../src/domain/AgentEvent.js"
import type { Envelope } from "../../../src/domain/Envelope.js"
import * as RunStatus from "../../../src/domain/RunStatus.js"
import * as ScriptedUpstream from "../../../src/testing/ScriptedUpstream.js"
import * as Api from "./Api.js"
import { type Behaviour, Ledger } from "./Ledger.js"
import { messageOf, model, type Plan, type PlanName, planOf, wholeText } from "./Plans.js"
import * as Rules from "./Rules.js"
import { launch, type ServerProcess } from "./ServerProcess.js"
import { Viewer } from "./Viewer.js"

const quick = { beforeMs: 15, afterMs: 15 }
const effect = { beforeMs: 50, afterMs: 50 }

export const behaviours: Record<string, Behaviour> = {
  lookup: { keyed: false, delays: quick },
  slow_lookup: { keyed: false, delays: { beforeMs: 120, afterMs: 20 } },
  save_note: { keyed: true, delays: effect },
  post_blind: { keyed: false, delays: effect },
  send_keyed: { keyed: true, delays: effect },
  ring: { keyed: true, delays: effect },
  fire_blind: { keyed: false, delays: effect }
}

/** Tools whose acts can not be asked for and not be repeated without harm. */
export const blind: ReadonlySet<string> = new Set(["post_blind", "fire_blind"])

const parameters = { type: "object" }

export const toolsAt = (url: string) => {
  const tool = (name: string, kind: string, more: object = {}) => ({
    name,
    description: `Does ${name}`,
    kind,
    parameters,
    url: `${url}/${name}`,
    ...more
  })
  return [
    tool("lookup", "readonly"),
    tool("slow_lookup", "readonly"),
    tool("save_note", "write", { statusUrl: `${url}/status` }),
    tool("post_blind", "write"),
    tool("send_keyed", "effectful", { idempotent: true }),
    tool("ring", "effectful", { idempotent: true, unattended: true }),
    tool("fire_blind", "effectful", { unattended: true })
  ]
}

export interface Watched {
  readonly name: PlanName
  readonly plan: Plan
  readonly label: string
  readonly viewer: Viewer
  readonly conversationId: string
  readonly assistantMessageId: string
  cancelAnswer?: { readonly status: string; readonly lastSeq: number }
}

export interface Options {
  readonly seed: number
  readonly config?: object
  readonly limits?: object
  readonly resume?: object
  /** The database (a file of its own unless said). */
  readonly data?: string
  /** Options of Node for every server. */
  readonly node?: ReadonlyArray<string>
  /** Whether requests for a decision are answered and failures resumed by themselves (so unless said). */
  readonly people?: boolean
}

/** A small generator of numbers in [0, 1), the same for the same seed. */
export const dice = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

export const sleep = (ms: number) => new Promise<void>((done) => setTimeout(done, ms))

export class World {
  readonly runs: Array<Watched> = []
  readonly faults: Array<string> = []
  readonly tally = new Map<string, number>()
  readonly random: () => number
  /** Told of every event that any viewer sees, before anything else happens. */
  watch: (envelope: Envelope, run: Watched) => void = () => undefined
  server: ServerProcess | undefined
  private readonly waiting: Array<() => void> = []
  private readonly errands = new Set<Promise<void>>()
  private labels = 0

  private constructor(
    readonly dir: string,
    readonly ledger: Ledger,
    readonly upstream: Awaited<ReturnType<typeof ScriptedUpstream.start>>,
    private readonly script: ReturnType<typeof model>,
    readonly options: Options
  ) {
    this.random = dice(options.seed)
  }

  private readonly launched: Array<Promise<ServerProcess>> = []

  static async open(options: Options): Promise<World> {
    const script = model()
    const ledger = await Ledger.start(behaviours)
    const upstream = await ScriptedUpstream.start({ strict: true, script: script.respond })
    return new World(mkdtempSync(join(tmpdir(), "runlet-kill-")), ledger, upstream, script, options)
  }

  async close(): Promise<void> {
    for (const { viewer } of this.runs) viewer.close()
    await this.server?.kill()
    // One that was still starting when it should have been killed got ready after that.
    for (const started of await Promise.allSettled(this.launched)) {
      if (started.status === "fulfilled") await started.value.kill()
    }
    await this.upstream.stop()
    await this.ledger.stop()
    rmSync(this.dir, { recursive: true, force: true })
  }

  count(what: string): void {
    this.tally.set(what, (this.tally.get(what) ?? 0) + 1)
  }

  config(): object {
    return {
      models: { scripted: { provider: "openai-compatible", baseUrl: this.upstream.url } },
      defaultModel: "scripted",
      documents: false,
      tools: toolsAt(this.ledger.url),
      limits: { heartbeatMs: 5000, ...this.options.limits },
      resume: { leaseTtlMs: 10_000, maxAttempts: 1000, ...this.options.resume },
      ...this.options.config
    }
  }

  /** One more process on the same data, or on what is said to be. The caller ends it. */
  launch(name: string, more: object = {}, data = this.options.data): Promise<ServerProcess> {
    const { node } = this.options
    const started = launch({ dir: this.dir, config: { ...this.config(), ...more }, name, data, node })
    this.launched.push(started)
    return started
  }

  async start(): Promise<void> {
    const server = await this.launch("server")
    this.server = server
    for (const run of this.active()) void this.follow(run)
    for (const go of this.waiting.splice(0)) go()
  }

  /** Kills the server between two instructions, whatever it is doing, and waits until it is gone. */
  async kill(): Promise<void> {
    const server = this.server
    this.server = undefined
    await server?.kill()
  }

  active(): ReadonlyArray<Watched> {
    return this.runs.filter(({ viewer }) => !viewer.final)
  }

  /** Tries until an answer came, over as many servers as it takes. */
  async insist<A>(attempt: (url: string) => Promise<A>): Promise<A> {
    while (true) {
      const server = this.server
      if (server === undefined) {
        await new Promise<void>((go) => this.waiting.push(go))
        continue
      }
      try {
        return await attempt(server.url)
      } catch (error) {
        if (error instanceof Api.Refused) throw error
        if (server.alive() && this.server === server) await sleep(20)
        else await server.exited
      }
    }
  }

  /** Something that a person does meanwhile. A failure is a fault of the server. */
  private errand(what: string, work: () => Promise<void>): void {
    const done: Promise<void> = work().then(
      () => void this.errands.delete(done),
      (error: unknown) => {
        this.errands.delete(done)
        this.faults.push(`${what}: ${String(error)}`)
      }
    )
    this.errands.add(done)
  }

  /** Begins a run of a plan; the answer to the request may be lost and asked for again. */
  begin(name: PlanName, conversationId?: string): void {
    const label = this.label()
    this.errand(`start of ${name}`, async () => {
      const accepted = await this.insist((url) =>
        Api.start(url, messageOf(name, label), { key: label, conversationId })
      )
      void this.follow(this.adopt(name, label, accepted))
    })
  }

  private readonly followed = new Map<Watched, Promise<void>>()

  /** A label that no other run has. */
  label(): string {
    return `${this.options.seed}x${this.labels++}`
  }

  /** Begins to care for a run that was started. */
  adopt(name: PlanName, label: string, accepted: Api.Accepted): Watched {
    const run: Watched = {
      name,
      plan: planOf(name),
      label,
      viewer: new Viewer(accepted.runId, (envelope) => this.saw(envelope, run)),
      conversationId: accepted.conversationId,
      assistantMessageId: accepted.assistantMessageId
    }
    this.runs.push(run)
    return run
  }

  /** Starts a run at a server of one's own choice. */
  async startAt(server: ServerProcess, name: PlanName): Promise<Watched> {
    const label = this.label()
    return this.adopt(name, label, await Api.start(server.url, messageOf(name, label)))
  }

  /** One connection a viewer: one that is still open when a run is resumed goes on with what follows. */
  private async follow(run: Watched): Promise<void> {
    const before = this.followed.get(run)
    const next = (before ?? Promise.resolve()).then(() => this.read(run))
    this.followed.set(run, next)
    await next
  }

  private async read(run: Watched): Promise<void> {
    const server = this.server
    while (server !== undefined && this.server === server && server.alive() && !run.viewer.final) {
      const closed = await run.viewer.connect(server.url)
      if (closed === "refused" || closed === "ended") return
      if (closed === "clean") this.faults.push(`${run.name}: the server ended a stream in the middle of a run`)
    }
  }

  private saw(envelope: Envelope, run: Watched): void {
    this.watch(envelope, run)
    if (this.options.people === false) return
    const { event } = envelope
    if (event.type === "approval-request") {
      this.count(`asked ${event.reason}`)
      this.errand(`decision about ${run.name}`, () => this.decide(run, event))
    }
    if (event.type === "error" && event.recoverable) {
      this.errand(`resume of ${run.name}`, () => this.resume(run))
    }
    if (run.plan.cancelAt === envelope.seq) this.errand(`cancel of ${run.name}`, () => this.cancel(run))
  }

  private async cancel(run: Watched): Promise<void> {
    const answer = await this.insist((url) => Api.call("POST", `${url}/runs/${run.viewer.runId}/cancel`, {}))
    if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`)
    run.cancelAnswer = answer.json as { status: string; lastSeq: number }
  }

  private async resume(run: Watched): Promise<void> {
    this.count("resumed")
    const { runId } = run.viewer
    const answer = await this.insist((url) =>
      Api.call("POST", `${url}/runs/${runId}/resume`, {
        lastAppliedSeq: run.viewer.cursor,
        assistantMessageId: run.assistantMessageId,
        background: true
      })
    )
    if (answer.status !== 202) throw new Error(`${answer.status} ${answer.text}`)
    void this.follow(run)
  }

  private async decide(run: Watched, request: EventOf<"approval-request">): Promise<void> {
    const { approvalId, previewHash, reason, toolCallId } = request
    const { runId } = run.viewer
    await sleep(this.random() * 60)
    let body: { decision: string; previewHash: string; input?: unknown }
    if (reason === "in_doubt") {
      // The person goes and looks.
      await this.ledger.quiet(runId, toolCallId)
      const happened = this.ledger.effects(runId, toolCallId).length > 0
      const careless = this.random() < 0.25
      const decision = careless ? "abandon" : happened ? "applied" : request.cause === "conflict" ? "abandon" : "retry"
      body = { decision, previewHash }
    } else {
      const first = request.supersedes === undefined
      const person = first ? (run.plan.person ?? "approve") : "approve"
      body =
        person === "edit"
          ? { decision: "edit", previewHash, input: { text: `corrected ${run.label}` } }
          : { decision: person, previewHash }
    }
    const answer = await this.insist((url) => Api.call("POST", `${url}/runs/${runId}/approvals/${approvalId}`, body))
    if (answer.status === 200) this.count(`said ${body.decision}`)
    else if (!(answer.status === 409 && run.plan.cancelAt !== undefined)) {
      throw new Error(`${body.decision} of ${reason}: ${answer.status} ${answer.text}`)
    }
  }

  /** Everything that a viewer has seen is in the log, byte for byte. */
  async compareLogs(runs: ReadonlyArray<Watched>): Promise<void> {
    await Promise.all(
      runs.map(async ({ name, viewer }) => {
        const seen = [...viewer.lines]
        const log = await this.insist((url) => Api.trace(url, viewer.runId))
        for (const [i, line] of seen.entries()) {
          if (log[i] !== line) {
            this.faults.push(`${name}: seq ${i + 1} was seen as ${line} and is ${log[i] ?? "gone"}`)
            return
          }
        }
      })
    )
  }

  /** Compares while the server goes on. */
  recall(runs: ReadonlyArray<Watched>): void {
    this.errand("reading of the logs", () => this.compareLogs(runs))
  }

  /** Waits until every run has ended for good. */
  async finish(ms: number): Promise<void> {
    const until = Date.now() + ms
    while (Date.now() < until && (this.errands.size > 0 || this.active().length > 0)) await sleep(20)
    for (const run of this.active()) {
      const { state } = run.viewer
      this.faults.push(`${run.name} (${run.viewer.runId}) stands still as ${state.status} at seq ${state.seq}`)
    }
    if (this.errands.size > 0) this.faults.push(`${this.errands.size} requests have no answer`)
  }

  /** All rules, over all runs. */
  async check(): Promise<ReadonlyArray<string>> {
    const { faults } = this
    await this.compareLogs(this.runs)
    for (const run of this.runs) {
      const { label, name, plan, viewer } = run
      const log = viewer.envelopes
      const entries = this.ledger.of(viewer.runId)
      const found = [
        ...viewer.faults,
        ...Rules.legs(log),
        ...Rules.calls(log),
        ...Rules.effects(log, entries),
        ...Rules.neverBlindly(log, blind)
      ]
      const server = Rules.shown(await this.insist((url) => Api.snapshot(url, viewer.runId)))
      const reader = Rules.folded(viewer.state)
      if (JSON.stringify(sorted(server)) !== JSON.stringify(sorted(reader))) {
        found.push(`the snapshot ${JSON.stringify(server)} is not the fold ${JSON.stringify(reader)}`)
      }
      const { text } = server as { readonly text: string }
      const whole = wholeText(plan)
      switch (viewer.state.status) {
        case "completed":
          if (text !== whole) found.push(`the text is ${JSON.stringify(text)}, not ${JSON.stringify(whole)}`)
          break
        case "cancelled":
          if (!whole.startsWith(text)) found.push(`the text ${JSON.stringify(text)} is no beginning of the answer`)
          if (plan.cancelAt === undefined) found.push("it was cancelled, and nobody asked for it")
          break
        default:
          found.push(`it ended as ${viewer.state.status}: ${JSON.stringify(viewer.state.end)}`)
      }
      if (run.cancelAnswer !== undefined) {
        const { lastSeq, status } = run.cancelAnswer
        if (status !== viewer.state.status || lastSeq !== viewer.state.seq) {
          found.push(
            `cancel answered ${status} at ${lastSeq}, the log says ${viewer.state.status} at ${viewer.state.seq}`
          )
        }
      }
      faults.push(...found.map((fault) => `${name} ${label} ${viewer.runId}: ${fault}`))
    }
    faults.push(...this.script.faults)
    for (const { refused } of this.upstream.requests) {
      if (refused !== undefined) faults.push(`the model refused a history: ${refused}`)
    }
    return faults
  }

  /** A further message in each conversation that is at rest. */
  followUp(limit: number): number {
    const done = new Set<string>()
    for (const run of this.runs.slice(-limit)) {
      if (!RunStatus.isEnded(run.viewer.state.status) || done.has(run.conversationId)) continue
      done.add(run.conversationId)
      this.begin("short", run.conversationId)
    }
    return done.size
  }
}

/** The same value with the keys of every object in order. */
const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)])
  )
}
