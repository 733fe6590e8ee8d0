/** The replay without a page: files, recordings, lanes, filters, and how a player moves. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import type { AgentEvent } from "../../src/domain/AgentEvent.js"
import { Envelope } from "../../src/domain/Envelope.js"
import { RunId } from "../../src/domain/Ids.js"
import * as RunState from "../../src/domain/RunState.js"
import * as Events from "../../src/testing/EventArbitraries.js"
import * as Compare from "../../src/web/replay/Compare.js"
import * as Filter from "../../src/web/replay/Filter.js"
import * as Lanes from "../../src/web/replay/Lanes.js"
import * as Player from "../../src/web/replay/Player.js"
import * as Recording from "../../src/web/replay/Recording.js"
import * as Scale from "../../src/web/replay/Scale.js"
import * as Shape from "../../src/web/replay/Shape.js"
import * as Trace from "../../src/web/replay/Trace.js"
import * as Long from "./support/LongRun.js"

const runId = RunId.make("run_01890000-0000-7000-8000-000000000001")
const numbered = (events: ReadonlyArray<AgentEvent>): ReadonlyArray<Envelope> =>
  events.map((event, index) => ({ runId, seq: index + 1, event, createdAt: index * 7 }))
const anyLog = FastCheck.array(Events.event, { maxLength: 40 }).map(numbered)
const logs = FastCheck.oneof(Events.log, anyLog)
const record = (log: Iterable<Envelope>) => Recording.append(Recording.empty(runId), log)
const fold = (log: ReadonlyArray<Envelope>) => RunState.reduceAll(RunState.empty(runId), log)
const runs = (numRuns: number) => ({ fastCheck: { numRuns } })

/** The log in pieces of arbitrary lengths. */
const cut = <A>(all: ReadonlyArray<A>, lengths: ReadonlyArray<number>): ReadonlyArray<ReadonlyArray<A>> => {
  const pieces: Array<ReadonlyArray<A>> = []
  let from = 0
  for (const length of lengths) {
    pieces.push(all.slice(from, from + length))
    from += length
  }
  return [...pieces, all.slice(from)]
}
const lengths = FastCheck.array(FastCheck.nat(9), { maxLength: 12 })

describe("the shape of an envelope", () => {
  const matches = Schema.decodeUnknownEither(Envelope)

  /** Any value with one thing changed, as deep in it as need be. */
  const changed = (value: unknown, throws: ReadonlyArray<number>): unknown => {
    const [at = 0, how = 0, ...rest] = throws
    if (typeof value !== "object" || value === null || rest.length === 0) {
      return [undefined, null, "", "x", 0, 1, -1, 0.5, 2 ** 53, true, [], {}, ["a"], [1]][how % 14]
    }
    const keys = [...Object.keys(value), "extra"]
    const key = keys[at % keys.length] ?? ""
    const copy: Record<string, unknown> = Array.isArray(value) ? { ...value } : { ...value }
    copy[key] = changed(copy[key], rest)
    return JSON.parse(JSON.stringify(copy))
  }

  it.prop(
    "is the schema's",
    [Events.event, FastCheck.nat(3), FastCheck.array(FastCheck.nat(50), { minLength: 2, maxLength: 8 })],
    ([event, seq, throws]) => {
      const envelope = { runId, seq, event, createdAt: 5 }
      for (const value of [envelope, changed(envelope, throws), { ...envelope, event: changed(event, throws) }]) {
        expect([value, Shape.read(value).is === "envelope"]).toEqual([value, Either.isRight(matches(value))])
      }
    },
    runs(4000)
  )

  it("knows every type of event, and says what else it is given", () => {
    const [known] = FastCheck.sample(FastCheck.array(Events.event, { minLength: 2000, maxLength: 2000 }), 1)
    expect([...Shape.eventTypes].sort()).toEqual([...new Set(known?.map(({ type }) => type))].sort())
    expect(Shape.read({ runId, seq: 1, event: { type: "new" }, createdAt: 0 })).toEqual({
      is: "unknown-event",
      type: "new"
    })
    expect(Shape.read({ runId, seq: 1, event: { type: "text-delta", id: "a" }, createdAt: 0 })).toEqual({
      is: "wrong",
      field: "event.delta"
    })
    expect(Shape.read([1])).toEqual({ is: "wrong", field: "" })
  })
})

describe("a trace", () => {
  const written = (log: ReadonlyArray<Envelope>) => [...Trace.write(fold(log), log)].join("")
  const golden = join(import.meta.dirname, "../golden")

  it.prop("is read as it was written, however its text arrives", [logs, lengths], ([log, sizes]) => {
    FastCheck.pre(log.length > 0)
    const text = written(log)
    expect(Trace.read(text)).toEqual({ envelopes: log, problem: undefined })
    const reader = Trace.makeReader()
    const characters = [...text]
    const pieces = cut(
      characters,
      sizes.map((size) => size * 40)
    ).map((piece) => reader.push(piece.join("")))
    expect([...pieces, reader.end()].flatMap(({ envelopes }) => envelopes)).toEqual(log)
  })

  it.prop(
    "that is broken in a line says which one, and has what stands before",
    [Events.log, FastCheck.nat(), FastCheck.nat(6)],
    ([log, at, how]) => {
      const lines = written(log).split("\n")
      const index = 1 + (at % log.length)
      const line = lines[index] ?? ""
      const envelope: Envelope = JSON.parse(line)
      const broken = [
        "{",
        JSON.stringify({ ...envelope, seq: envelope.seq + 1 }),
        JSON.stringify({ ...envelope, createdAt: "now" }),
        JSON.stringify({ ...envelope, event: { type: "from-the-future" } }),
        "[]",
        JSON.stringify({ ...envelope, runId: "run_01890000-0000-7000-8000-000000000002" }),
        JSON.stringify({ ...envelope, event: { ...envelope.event, type: undefined } })
      ]
      const trace = Trace.read(lines.with(index, broken[how] ?? "").join("\n"))
      // The first line of a run says whose it is.
      const kept = how === 5 && index === 1 ? 1 : index - 1
      expect(trace.problem?.line).toBe(how === 5 && index === 1 ? (log.length > 1 ? 3 : undefined) : index + 1)
      expect(trace.envelopes.length).toBe(kept)
    }
  )

  it("needs no header, and may come with empty lines and the marks of other systems", () => {
    const log = record(FastCheck.sample(Events.log, { numRuns: 1, seed: 7 })[0] ?? [])
    const envelopes = [...Recording.envelopes(log)]
    const lines = envelopes.map((envelope) => JSON.stringify(envelope))
    expect(Trace.read(`\uFEFF${lines.join("\r\n\r\n")}`)).toEqual({ envelopes, problem: undefined })
  })

  it("that was cut short says so", () => {
    const text = written(FastCheck.sample(Events.log, { numRuns: 1, seed: 7 })[0] ?? [])
    const trace = Trace.read(text.slice(0, -20))
    expect(trace.problem).toEqual({ is: "cut-short", line: text.split("\n").length - 1 })
    expect(trace.envelopes.length).toBe(text.split("\n").length - 3)
  })

  it("of no event, or of another version, is none", () => {
    expect(Trace.read("")).toEqual({ envelopes: [], problem: { is: "empty", line: 1 } })
    expect(Trace.read('{"format":"runlet-trace","version":2}\n').problem).toEqual({
      is: "version",
      line: 1,
      version: "2"
    })
    expect(Trace.read('{"format":"runlet-trace","version":1,"run":{}}\n').problem).toEqual({ is: "empty", line: 1 })
    expect(Trace.read("hello\nthere").problem).toEqual({ is: "not-json", line: 1 })
  })

  for (const file of readdirSync(golden).filter((name) => name.endsWith(".jsonl"))) {
    it(`of ${file} is sound`, () => {
      const { envelopes, problem } = Trace.read(readFileSync(join(golden, file), "utf8"))
      expect(problem).toBeUndefined()
      expect(Recording.size(record(envelopes))).toBe(envelopes.length)
    })
  }
})

describe("a recording", () => {
  it.prop(
    "knows the fold of every beginning, looked at in any order",
    [logs, FastCheck.array(FastCheck.nat(), { maxLength: 30 })],
    ([log, places]) => {
      const recording = record(log)
      for (const place of places) {
        const seq = place % (log.length + 2)
        expect(Recording.stateAt(recording, seq)).toEqual(fold(log.slice(0, seq)))
        expect(Recording.envelopeAt(recording, seq)).toEqual(log[seq - 1])
      }
    }
  )

  it.prop("is the same however it grew", [logs, lengths], ([log, sizes]) => {
    let recording = Recording.empty(runId)
    for (const piece of cut(log, sizes)) recording = Recording.append(recording, piece)
    expect(recording).toEqual(record(log))
  })

  it.prop("passes over what it has and takes nothing behind a hole", [logs, FastCheck.nat()], ([log, at]) => {
    const place = at % (log.length + 1)
    const half = record(log.slice(0, place))
    expect(Recording.append(half, log)).toEqual(record(log))
    expect(Recording.append(half, log.slice(place + 1))).toBe(half)
    expect(Recording.append(half, log.slice(0, place))).toBe(half)
  })

  it.prop("begins where its log begins", [Events.log, FastCheck.nat()], ([log, at]) => {
    const place = at % (log.length + 1)
    const recording = Recording.append(Recording.from(fold(log.slice(0, place))), log.slice(place))
    expect(Recording.size(recording)).toBe(log.length - place)
    for (let seq = place; seq <= log.length; seq++) {
      expect(Recording.stateAt(recording, seq)).toEqual(fold(log.slice(0, seq)))
      expect(Recording.envelopeAt(recording, seq)).toEqual(seq > place ? log[seq - 1] : undefined)
    }
  })

  it.prop(
    "has times that never go back, and finds the last event at a time",
    [
      logs,
      FastCheck.array(FastCheck.integer({ min: -5000, max: 9000 }), { maxLength: 40 }),
      FastCheck.constantFrom<Recording.Clock>("real", "short")
    ],
    ([log, steps, clock]) => {
      let now = 10_000
      const timed = log.map((envelope, index) => {
        now = Math.max(0, now + (steps[index % Math.max(1, steps.length)] ?? 0))
        return { ...envelope, createdAt: now }
      })
      const recording = record(timed)
      const times = timed.map(({ seq }) => Recording.timeAt(recording, seq, clock))
      expect(times).toEqual([...times].sort((a, b) => a - b))
      for (const [index, time] of times.entries()) {
        expect(Recording.seqAt(recording, time, clock)).toBe(times.lastIndexOf(time) + 1)
        const pause = time - (times[index - 1] ?? 0)
        if (clock === "short") expect(pause).toBeLessThanOrEqual(Recording.longestPauseMs)
      }
      expect(Recording.seqAt(recording, -1, clock)).toBe(0)
    }
  )

  it("of 50,000 events folds at most a piece of them for any look at it", () => {
    const recording = record(Long.log(50_000))
    const read = new Set<number>()
    // Which events are looked at is counted.
    for (const piece of recording.pieces) {
      for (const envelope of piece.envelopes) {
        const { event } = envelope
        Object.defineProperty(envelope, "event", {
          get: () => {
            read.add(envelope.seq)
            return event
          }
        })
      }
    }
    let most = 0
    for (const seq of [1, 50_000, 49_999, 25_000, 256, 257, 12_345, 3, 38_400]) {
      read.clear()
      expect(Recording.stateAt(recording, seq).seq).toBe(seq)
      most = Math.max(most, read.size)
    }
    expect(most).toBeLessThanOrEqual(Recording.pieceLength)
    expect(most).toBeGreaterThan(0)
  })
})

describe("lanes", () => {
  it.prop("give each event one, and spans that lie in the log", [logs], ([log]) => {
    const recording = record(log)
    const { lanes, spans } = recording.lanes
    for (const { seq } of log) expect(lanes[Recording.laneAt(recording, seq) ?? -1]).toBeDefined()
    for (const { from, lane, row, to = log.length } of spans) {
      expect(from).toBeGreaterThanOrEqual(1)
      expect(to).toBeGreaterThanOrEqual(from)
      expect(to).toBeLessThanOrEqual(log.length)
      expect(row).toBeLessThan(lanes[lane]?.rows ?? 0)
    }
    expect(new Set(Lanes.arranged(recording.lanes)).size).toBe(lanes.length)
    expect(new Set(lanes.map(({ id }) => id)).size).toBe(lanes.length)
  })

  it.prop("show the text that a run kept, and mark what its attempts left behind", [Events.log], ([log]) => {
    const recording = record(log)
    for (const type of ["text", "reasoning"] as const) {
      let kept = ""
      const spans = recording.lanes.spans.filter(({ what }) => what.is === "part" && what.type === type)
      for (const { from, to = from, what } of [...spans].sort((a, b) => a.from - b.from)) {
        if (what.is !== "part" || what.dropped === true) continue
        expect(what.offset).toBe(kept.length)
        for (let seq = from; seq <= to; seq++) {
          const event = Recording.envelopeAt(recording, seq)?.event
          if (event?.type === `${type}-delta` && "delta" in event) kept += event.delta
        }
      }
      expect(kept).toBe(RunState.text(recording.end, type))
    }
  })

  it.prop("have a call for each of the run's, with its result, and none over another", [Events.log], ([log]) => {
    const { lanes } = record(log)
    const calls = lanes.spans.filter(({ what }) => what.is === "call")
    const state = fold(log)
    const kept = calls.flatMap(({ what }) => (what.is === "call" && what.dropped !== true ? [what] : []))
    expect(kept.map(({ toolCallId }) => toolCallId)).toEqual(
      RunState.turns(state).flatMap((turn) => turn.calls.map(({ id }) => id))
    )
    for (const { result, toolCallId } of kept) expect(result).toEqual(RunState.findCall(state, toolCallId)?.call.result)
    for (const [index, a] of calls.entries()) {
      for (const b of calls.slice(index + 1)) {
        if (a.lane !== b.lane || a.row !== b.row) continue
        expect(Math.min(a.to ?? log.length, b.to ?? log.length)).toBeLessThanOrEqual(Math.max(a.from, b.from))
      }
    }
  })

  it.prop("have the run's states and attempts, one after the other without a gap", [Events.log], ([log]) => {
    const { lanes } = record(log)
    const statuses = lanes.spans.filter(({ what }) => what.is === "status")
    let state = RunState.empty(runId)
    const wanted: Array<unknown> = []
    for (const envelope of log) {
      const before = state
      state = RunState.reduce(state, envelope)
      if (before.seq === 0 || before.status !== state.status) wanted.push([envelope.seq, state.status])
    }
    expect(statuses.map(({ from, what }) => [from, what.is === "status" && what.status])).toEqual(wanted)
    for (const [index, { to }] of statuses.slice(0, -1).entries()) expect(to).toBe(statuses[index + 1]?.from)
    expect(lanes.spans.flatMap(({ what }) => (what.is === "attempt" ? [what.attempt] : []))).toEqual(
      Array.from({ length: state.attempt }, (_, index) => index + 1)
    )
  })
})

describe("a filter", () => {
  const leaves = (value: unknown): ReadonlyArray<string> =>
    typeof value === "object" && value !== null
      ? Object.entries(value).flatMap(([key, field]) => (key === "runId" ? [] : leaves(field)))
      : [String(value)]
  const queries = FastCheck.constantFrom("", "a", "bc", "TEXT-delta", "語😀", "語😀a", ".", "\\", "xyz", "yzx")

  it.prop(
    "keeps what is of a lane that is shown and says what is looked for",
    [Events.log, queries, FastCheck.subarray(["text", "run", "tool write"])],
    ([log, query, hidden]) => {
      const recording = record(log)
      const found = Filter.matching(recording, { hidden: new Set(hidden), query })
      expect(found).toEqual([...found].sort((a, b) => a - b))
      const set = new Set(found)
      for (const { event, seq } of log) {
        const lane = recording.lanes.lanes[Recording.laneAt(recording, seq) ?? -1]?.id ?? ""
        if (hidden.includes(lane)) expect(set.has(seq)).toBe(false)
        else if (leaves(event).some((leaf) => leaf.toLowerCase().includes(query.toLowerCase()))) {
          expect(set.has(seq)).toBe(true)
        }
      }
    }
  )

  it.prop(
    "finds a text over the pieces that it came in",
    [
      FastCheck.array(FastCheck.constantFrom("", "a", "b", "ab", "ba "), { maxLength: 30 }),
      FastCheck.constantFrom("aba", "bb", "b a", "A")
    ],
    ([pieces, query]) => {
      const recording = record(
        numbered([
          {
            type: "run-start",
            runId,
            seq: 1,
            conversationId: "c",
            userMessageId: "u",
            assistantMessageId: "x",
            model: "m",
            mode: "chat"
          },
          ...pieces.map((delta): AgentEvent => ({ type: "text-delta", id: "1", delta }))
        ])
      )
      const text = pieces.join("")
      const wanted = new Set<number>()
      let from = 0
      while (from >= 0) {
        from = text.indexOf(query.toLowerCase(), from)
        if (from < 0) break
        let start = 0
        pieces.forEach((piece, index) => {
          const end = start + piece.length
          if (start < from + query.length && end > from && piece !== "") wanted.add(index + 2)
          start = end
        })
        from += query.length
      }
      const found = Filter.matching(recording, { hidden: new Set(["run"]), query }).filter((seq) => {
        const event = Recording.envelopeAt(recording, seq)?.event
        // An empty piece says nothing, and "text-delta" itself has an A.
        return event?.type === "text-delta" && event.delta !== "" && query !== "A"
      })
      if (query !== "A") expect(new Set(found)).toEqual(wanted)
    }
  )

  it.prop(
    "goes from one to the next and back",
    [FastCheck.uniqueArray(FastCheck.nat(50)), FastCheck.nat(60)],
    ([places, at]) => {
      const seqs = [...places].sort((a, b) => a - b)
      expect(Filter.beside(seqs, at, 1)).toBe(seqs.find((seq) => seq > at))
      expect(Filter.beside(seqs, at, -1)).toBe(seqs.findLast((seq) => seq < at))
      expect(Filter.countUpTo(seqs, at)).toBe(seqs.filter((seq) => seq <= at).length)
    }
  )

  it("is everything again after a lane was hidden and shown", () => {
    const hidden = Filter.toggle(Filter.everything, "text")
    expect(Filter.isEverything(hidden)).toBe(false)
    expect(Filter.isEverything(Filter.toggle(hidden, "text"))).toBe(true)
  })
})

describe("a player", () => {
  const action: FastCheck.Arbitrary<Player.Action> = FastCheck.oneof(
    FastCheck.integer({ min: -3, max: 60 }).map((seq): Player.Action => ({ type: "to", seq })),
    FastCheck.constantFrom<Player.Action>(
      { type: "end" },
      { type: "toggle" },
      { type: "pause" },
      { type: "grew" },
      { type: "retimed" }
    ),
    FastCheck.constantFrom(...Player.speeds).map((speed): Player.Action => ({ type: "speed", speed })),
    FastCheck.nat(300).map((elapsedMs): Player.Action => ({ type: "tick", elapsedMs }))
  )
  const trackOf = (recording: Recording.Recording, open: boolean): Player.Track => ({
    first: Recording.firstSeq(recording),
    last: recording.end.seq,
    open,
    timeAt: (seq) => Recording.timeAt(recording, seq, "short"),
    seqAt: (ms) => Recording.seqAt(recording, ms, "short")
  })

  it.prop(
    "stands at an event of the log at that event's time, and shows the fold up to it",
    [logs, FastCheck.array(action), FastCheck.boolean()],
    ([log, actions, open]) => {
      const recording = record(log)
      const track = trackOf(recording, open)
      let player = Player.initial
      for (const step of [{ type: "grew" } as const, ...actions]) {
        const before = player
        player = Player.reduce(player, step, track)
        expect(player.seq).toBeGreaterThanOrEqual(log.length > 0 ? 1 : 0)
        expect(player.seq).toBeLessThanOrEqual(log.length)
        expect(player.at).toBeGreaterThanOrEqual(track.timeAt(player.seq))
        if (step.type === "tick") expect(player.seq).toBeGreaterThanOrEqual(before.seq)
        if (step.type === "to") expect(player.following).toBe(false)
        if (player.playing && !open && step.type !== "toggle" && before.playing)
          expect(player.seq < log.length || player.at < track.timeAt(log.length)).toBe(true)
        if (player.following && step.type !== "speed") expect(player.seq).toBe(log.length)
        expect(Recording.stateAt(recording, player.seq)).toEqual(fold(log.slice(0, player.seq)))
      }
    }
  )

  it.prop(
    "plays the same in small steps as in a long one",
    [Events.log, FastCheck.array(FastCheck.nat(9), { minLength: 1 }), FastCheck.constantFrom(...Player.speeds)],
    ([log, steps, speed]) => {
      const track = trackOf(record(log), false)
      const ready = [{ type: "to", seq: 1 }, { type: "speed", speed }, { type: "toggle" }] as const
      const start = ready.reduce<Player.Player>((player, step) => Player.reduce(player, step, track), Player.initial)
      let small = start
      for (const elapsedMs of steps) small = Player.reduce(small, { type: "tick", elapsedMs }, track)
      const all = steps.reduce((sum, step) => sum + step, 0)
      expect(small).toEqual(Player.reduce(start, { type: "tick", elapsedMs: all }, track))
    }
  )

  it.prop(
    "follows a run that grows, until it is told to stay",
    [Events.log, lengths, FastCheck.boolean()],
    ([log, sizes, stay]) => {
      let recording = Recording.empty(runId)
      let player = Player.initial
      const place = 1
      for (const piece of cut(log, sizes)) {
        recording = Recording.append(recording, piece)
        const track = trackOf(recording, true)
        player = Player.reduce(player, { type: "grew" }, track)
        if (stay && recording.end.seq >= place) player = Player.reduce(player, { type: "to", seq: place }, track)
        expect(player.seq).toBe(stay ? Math.min(place, recording.end.seq) : recording.end.seq)
      }
      const track = trackOf(recording, true)
      expect(Player.reduce(player, { type: "end" }, track)).toMatchObject({ seq: log.length, following: true })
    }
  )

  it("plays to the end and stops, and then from the start", () => {
    const log = FastCheck.sample(Events.log, { numRuns: 1, seed: 3 })[0] ?? []
    const track = trackOf(record(log), false)
    const grown = Player.reduce(Player.initial, { type: "grew" }, track)
    const begun = Player.reduce(grown, { type: "toggle" }, track)
    expect(begun).toMatchObject({ seq: 1, playing: true })
    const ended = Player.reduce(begun, { type: "tick", elapsedMs: 1e9 }, track)
    expect(ended).toMatchObject({ seq: log.length, playing: false })
  })
})

describe("the scale", () => {
  const axes = FastCheck.constantFrom<Scale.Axis>("seq", "real", "short")

  it.prop("finds each event where it puts it", [Events.log, axes], ([log, axis]) => {
    const recording = record(log)
    const all = Scale.whole(recording, axis)
    for (const { seq } of log) {
      const at = Scale.unitAt(recording, axis, seq)
      const found = Scale.seqAt(recording, axis, Scale.unit(all, Scale.ratio(all, at)))
      // Of those that happened at once the last one is found.
      expect(Scale.unitAt(recording, axis, found)).toBe(at)
      if (axis === "seq") expect(found).toBe(seq)
    }
  })

  const ranges = FastCheck.record({
    from: FastCheck.double({ min: 0, max: 900, noNaN: true }),
    width: FastCheck.double({ min: 8, max: 1000, noNaN: true })
  })
  const all: Scale.Range = { from: 0, to: 1000 }

  it.prop(
    "stays in the log, wherever it is moved",
    [ranges, FastCheck.double({ min: 0.1, max: 9, noNaN: true }), FastCheck.double({ min: 0, max: 1, noNaN: true })],
    ([{ from, width }, factor, at]) => {
      const range = { from, to: Math.min(1000, from + width) }
      const place = Scale.unit(range, at)
      for (const moved of [
        Scale.zoom(range, factor, place, all),
        Scale.pan(range, factor - 4, all),
        Scale.reveal(range, at * 1000, all)
      ]) {
        expect(moved.from).toBeGreaterThanOrEqual(0)
        expect(moved.to).toBeLessThanOrEqual(1000 + 1e-9)
        expect(moved.to - moved.from).toBeGreaterThan(7.9)
      }
      const seen = Scale.reveal(range, at * 1000, all)
      expect(seen.from - 1e-9 <= at * 1000 && at * 1000 <= seen.to + 1e-9).toBe(true)
      const marks = Scale.marks(range, "real", 10)
      expect(marks.length).toBeLessThanOrEqual(11)
      expect(marks.length).toBeGreaterThan(0)
    }
  )
})

describe("a comparison", () => {
  const prose = FastCheck.array(
    FastCheck.oneof(Events.utf16, FastCheck.constantFrom("the ", "run", " ", "\n", "语", "言")),
    {
      maxLength: 30
    }
  ).map((pieces) => pieces.join(""))

  it.prop("of two texts is both of them", [prose, prose], ([left, right]) => {
    const changes = Compare.words(left, right)
    const side = (name: "left" | "right") =>
      changes.flatMap((change) => (change.in === "both" || change.in === name ? [change.text] : [])).join("")
    expect(side("left")).toBe(left)
    expect(side("right")).toBe(right)
    const likeness = Compare.likeness(left, right)
    expect(likeness).toBeGreaterThanOrEqual(0)
    expect(likeness).toBeLessThanOrEqual(1)
    expect(Compare.likeness(right, left)).toBe(likeness)
    expect(Compare.likeness(left, left)).toBe(1)
  })

  it("of long texts without a word in common comes to an end", () => {
    const left = Array.from({ length: 20_000 }, (_, index) => `a${index}`).join(" ")
    const right = Array.from({ length: 20_000 }, (_, index) => `b${index}`).join(" ")
    expect(Compare.words(left, right)).toEqual([
      { in: "left", text: left },
      { in: "right", text: right }
    ])
  })

  it("counts the words of both, in any script", () => {
    expect(Compare.likeness("a run is durable", "durable is a log")).toBe(0.75)
    expect(Compare.likeness("持久的运行", "持久的日志")).toBe(0.6)
    expect(Compare.likeness("a a", "a")).toBeCloseTo(2 / 3)
  })

  it("marks a changed word and nothing else", () => {
    expect(
      Compare.words("a run is durable", "a log is durable").map((change) => `${change.in}:${change.text}`)
    ).toEqual(["both:a ", "left:run", "right:log", "both: is durable"])
    expect(Compare.words("持久的运行", "持久的日志").filter((change) => change.in === "both")).toEqual([
      { in: "both", text: "持久的" }
    ])
  })

  it.prop("of two runs has all that either of them shows, in its order", [Events.log, Events.log], ([one, other]) => {
    const [left, right] = [fold(one), fold(other)]
    const rows = Compare.align(left, right)
    for (const [side, state] of [
      ["left", left],
      ["right", right]
    ] as const) {
      for (const type of ["text", "reasoning"] as const) {
        const shown = rows.flatMap((row) => (row.is === type ? [row[side] ?? ""] : [])).join("")
        expect(shown).toBe(RunState.text(state, type))
      }
      const calls = rows.flatMap((row) => (row.is === "call" && row[side] !== undefined ? [row[side].id] : []))
      expect(calls).toEqual(RunState.turns(state).flatMap((turn) => turn.calls.map(({ id }) => id)))
    }
    for (const row of rows) {
      expect(row.left ?? row.right).toBeDefined()
      if (row.is === "call" && row.left !== undefined && row.right !== undefined) {
        expect(row.left.name).toBe(row.right.name)
      }
    }
    for (const row of Compare.align(left, left)) expect(row.left).toEqual(row.right)
  })
})
