/**
 * What the replay page knows: a run, perhaps another one beside it, and where in them a person looks. Signals over the
 * pure parts; drawing reads them, and what a person does goes through here.
 *
 * @since 0.1.0
 */
import { batch, computed, effect, type ReadonlySignal, type Signal, signal, untracked } from "@preact/signals"
import type { RunSummary } from "../../client/Answers.js"
import type { Envelope } from "../../domain/Envelope.js"
import type { RunState } from "../../domain/RunState.js"
import * as Filter from "./Filter.js"
import * as Matches from "./Matches.js"
import * as Player from "./Player.js"
import * as Recording from "./Recording.js"
import * as Scale from "./Scale.js"
import * as Source from "./Source.js"
import * as Tape from "./Tape.js"

/**
 * The page's state. `player` is where a person wants to be at once, `shown` what is drawn: it follows once a frame,
 * so that a hasty hand costs no more than what can be seen. `settled` follows when the hand rests.
 *
 * @since 0.1.0
 * @category models
 */
export interface Replay {
  readonly api: Source.Reads
  readonly main: ReadonlySignal<Tape.Tape | undefined>
  readonly beside: ReadonlySignal<Tape.Tape | undefined>
  readonly versions: ReadonlySignal<ReadonlyArray<RunSummary>>
  readonly recording: ReadonlySignal<Recording.Recording>
  readonly player: ReadonlySignal<Player.Player>
  readonly open: ReadonlySignal<boolean>
  readonly shown: ReadonlySignal<number>
  readonly settled: ReadonlySignal<number>
  readonly state: ReadonlySignal<RunState>
  readonly envelope: ReadonlySignal<Envelope | undefined>
  readonly besideSeq: ReadonlySignal<number>
  readonly besideState: ReadonlySignal<RunState | undefined>
  readonly axis: Signal<Scale.Axis>
  readonly clock: ReadonlySignal<Recording.Clock>
  readonly range: ReadonlySignal<Scale.Range>
  readonly zoomed: ReadonlySignal<boolean>
  readonly filter: Signal<Filter.Filter>
  readonly matches: ReadonlySignal<Matches.Matches>
  readonly dispatch: (action: Player.Action) => void
  readonly step: (direction: 1 | -1, count?: number) => void
  readonly toCheckpoint: (direction: 1 | -1) => void
  readonly zoom: (factor: number, anchor?: number) => void
  readonly pan: (part: number) => void
  readonly zoomAll: () => void
  readonly openFile: (file: File) => void
  readonly closeFile: () => void
  readonly compareWith: (other: string | File | undefined) => void
  readonly revive: () => void
}

/**
 * Calls back before the next frame is drawn, and after some time.
 *
 * @since 0.1.0
 * @category options
 */
export interface Ticker {
  readonly frame: (callback: (now: number) => void) => void
  readonly later: (callback: () => void, ms: number) => () => void
}

const browserTicker: Ticker = {
  frame: (callback) => void requestAnimationFrame(callback),
  later: (callback, ms) => {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  }
}

const nothing = Recording.empty("")

/** How long a hand must rest, in milliseconds. */
const restMs = 250

/**
 * - `runId`: the run to begin with; without one, a file must be opened
 * - `seq`: where to begin; without one at the end, following it
 * - `beside`: the run to compare with
 *
 * @since 0.1.0
 * @category options
 */
export interface Options {
  readonly runId?: string | undefined
  readonly seq?: number | undefined
  readonly beside?: string | undefined
  readonly ticker?: Ticker | undefined
}

/**
 * A replay that begins to load at once.
 *
 * @since 0.1.0
 * @category constructors
 */
export const makeReplay = (api: Source.Reads, options: Options = {}): Replay => {
  const { runId, ticker = browserTicker } = options
  const main = signal(runId === undefined ? undefined : Tape.ofRun(api, runId))
  const beside = signal(options.beside === undefined ? undefined : Tape.ofRun(api, options.beside))
  const versions = signal<ReadonlyArray<RunSummary>>([])
  const axis = signal<Scale.Axis>("seq")
  const window = signal<Scale.Range>()
  const filter = signal(Filter.everything)
  const player = signal(Player.initial)
  const shown = signal(0)
  const settled = signal(0)
  /** A place to go to as soon as it is there. */
  let wanted = options.seq

  const recording = computed(() => main.value?.recording.value ?? nothing)
  const open = computed(() => main.value !== undefined && Tape.isOpen(main.value))
  const clock = computed<Recording.Clock>(() => (axis.value === "real" ? "real" : "short"))
  const track = computed<Player.Track>(() => {
    const now = recording.value
    const by = clock.value
    return {
      first: Recording.firstSeq(now),
      last: now.end.seq,
      open: open.value,
      timeAt: (seq) => Recording.timeAt(now, seq, by),
      seqAt: (ms) => Recording.seqAt(now, ms, by)
    }
  })
  const all = computed(() => Scale.whole(recording.value, axis.value))
  const range = computed(() => window.value ?? all.value)

  const dispatch = (action: Player.Action) => {
    if (action.type !== "grew" && action.type !== "retimed") wanted = undefined
    player.value = Player.reduce(
      player.peek(),
      action,
      untracked(() => track.value)
    )
    const zoomed = window.peek()
    if (zoomed === undefined) return
    const at = untracked(() => Scale.unitAt(recording.value, axis.value, player.value.seq))
    window.value = Scale.reveal(
      zoomed,
      at,
      untracked(() => all.value)
    )
  }

  effect(() => {
    const { first, last } = track.value
    untracked(() => {
      if (wanted !== undefined && last >= wanted && last >= first) dispatch({ type: "to", seq: wanted })
      else if (wanted === undefined) dispatch({ type: "grew" })
      else if (!open.value) dispatch({ type: "end" })
    })
  })

  effect(() => {
    if (clock.value) untracked(() => dispatch({ type: "retimed" }))
  })

  let drawing = false
  effect(() => {
    const { seq } = player.value
    if (drawing || seq === shown.peek()) return
    drawing = true
    ticker.frame(() => {
      drawing = false
      shown.value = player.peek().seq
    })
  })

  let rest = () => {}
  effect(() => {
    const seq = shown.value
    rest()
    rest = ticker.later(() => {
      settled.value = seq
    }, restMs)
  })

  const playing = computed(() => player.value.playing)
  effect(() => {
    if (!playing.value) return
    let before: number | undefined
    let stopped = false
    const tick = (now: number) => {
      if (stopped) return
      // After a sleep of the browser it goes on where it was.
      const elapsedMs = Math.min(500, now - (before ?? now))
      before = now
      dispatch({ type: "tick", elapsedMs })
      ticker.frame(tick)
    }
    ticker.frame(tick)
    return () => {
      stopped = true
    }
  })

  const state = computed(() => Recording.stateAt(recording.value, shown.value))
  const besideSeq = computed(() => {
    const other = beside.value?.recording.value ?? nothing
    const { at } = player.value
    const { last } = track.value
    return shown.value >= last ? other.end.seq : Recording.seqAt(other, at, clock.value)
  })
  const besideState = computed(() =>
    beside.value === undefined ? undefined : Recording.stateAt(beside.value.recording.value, besideSeq.value)
  )
  const matches = computed(() => Matches.of(recording.value, filter.value))

  const snapshot = computed(() => main.value?.snapshot.value)
  let asked = ""
  effect(() => {
    const run = snapshot.value
    if (run === undefined || run.runId === asked) return
    asked = run.runId
    Source.versions(api, run)
      .then((found) => {
        versions.value = found
      })
      // Without them there is a run less to compare with.
      .catch(() => {})
  })

  const show = (tape: Tape.Tape | undefined) =>
    batch(() => {
      main.peek()?.close()
      main.value = tape
      player.value = { ...Player.initial, speed: player.peek().speed }
      shown.value = 0
      settled.value = 0
      window.value = undefined
      filter.value = Filter.everything
      wanted = undefined
    })

  const laneOf = (kind: string) => recording.peek().lanes.lanes.findIndex((lane) => lane.kind === kind)

  return {
    api,
    main,
    beside,
    versions,
    recording,
    player,
    open,
    shown,
    settled,
    state,
    envelope: computed(() => Recording.envelopeAt(recording.value, shown.value)),
    besideSeq,
    besideState,
    axis,
    clock,
    range,
    zoomed: computed(() => window.value !== undefined),
    filter,
    matches,
    dispatch,
    step: (direction, count = 1) => {
      let seq: number | undefined = player.peek().seq
      for (let left = count; left > 0; left--) seq = matches.peek().beside(seq, direction) ?? seq
      if (seq !== player.peek().seq || player.peek().playing) dispatch({ type: "to", seq })
      dispatch({ type: "pause" })
    },
    toCheckpoint: (direction) => {
      const log = recording.peek()
      const lane = laneOf("checkpoints")
      let seq = player.peek().seq + direction
      while (Recording.laneAt(log, seq) !== lane && Recording.envelopeAt(log, seq) !== undefined) seq += direction
      if (Recording.envelopeAt(log, seq) !== undefined) dispatch({ type: "to", seq })
    },
    zoom: (factor, anchor) => {
      const whole = all.peek()
      const at = anchor ?? Scale.unitAt(recording.peek(), axis.peek(), player.peek().seq)
      const next = Scale.zoom(range.peek(), factor, Math.min(Math.max(at, range.peek().from), range.peek().to), whole)
      window.value = next.to - next.from >= whole.to - whole.from ? undefined : next
    },
    pan: (part) => {
      if (window.peek() !== undefined) window.value = Scale.pan(range.peek(), part, all.peek())
    },
    zoomAll: () => {
      window.value = undefined
    },
    openFile: (file) => show(Tape.ofFile(file)),
    closeFile: () => show(runId === undefined ? undefined : Tape.ofRun(api, runId)),
    compareWith: (other) => {
      beside.peek()?.close()
      beside.value =
        other === undefined ? undefined : typeof other === "string" ? Tape.ofRun(api, other) : Tape.ofFile(other)
    },
    revive: () => {
      main.peek()?.revive()
      beside.peek()?.revive()
    }
  }
}
