/**
 * A client as a page is one: it attaches to a run, loses its connection, comes back with the cursor it has, and folds
 * what it sees.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { TestStack, VirtualClient } from "runlet/testing"
 *
 * // Sees three events, is away for a second, comes back, and stays to the end.
 * const watched = (runId: string) =>
 *   Effect.flatMap(TestStack.TestStack, ({ processes }) => {
 *     const client = VirtualClient.make({
 *       runId,
 *       visits: [{ take: 3, pauseMs: 1_000 }],
 *       connect: () => processes[0]?.running(),
 *       stored: Effect.succeed(Number.POSITIVE_INFINITY)
 *     })
 *     return Effect.as(client.run, client.observed())
 *   })
 * ```
 *
 * @since 0.1.0
 */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Envelope } from "../domain/Envelope.js"
import * as RunState from "../domain/RunState.js"
import type { View } from "../engine/RunEngine.js"
import type { ObservedClient, ObservedFrame } from "./Observed.js"
import type { Running } from "./TestStack.js"

/**
 * One connection: how many events it gets before it breaks, and how long the client is away afterwards. `back`: by how
 * many events the cursor lags behind what was seen, as it does when a page crashes before it has stored its cursor.
 *
 * @since 0.1.0
 * @category models
 */
export interface Visit {
  readonly take: number
  readonly pauseMs: number
  readonly back?: number | undefined
}

/**
 * - `connect`: a process to ask, or `undefined` when none is there
 * - `stored`: how much of the run's log is stored at this moment
 * - `polls`: whether it is driven by callbacks, as a response over HTTP is, instead of pulling
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly runId: string
  readonly visits: ReadonlyArray<Visit>
  readonly connect: () => Running | undefined
  readonly stored: Effect.Effect<number>
  readonly polls?: boolean | undefined
}

/**
 * A client while it lives. `state` is the fold of all it has seen.
 *
 * @since 0.1.0
 * @category models
 */
export interface VirtualClient {
  readonly observed: () => ObservedClient
  readonly state: () => RunState.RunState
  /** Comes and goes by plan, then stays until the server says that nothing more will come. */
  readonly run: Effect.Effect<void>
}

const decode = Schema.decodeUnknownSync(Schema.parseJson(Envelope))

interface Session {
  readonly after: number
  readonly frames: Array<ObservedFrame>
  ended: boolean
}

/** What comes behind the cursor, by way of `poll` as long as that can tell. */
const polled = (view: View, cursor: number): ReturnType<View["pull"]> =>
  Effect.suspend(() => {
    const bell = Deferred.unsafeMake<void>(FiberId.none)
    const found = view.poll(cursor, () => Deferred.unsafeDone(bell, Effect.void))
    if (found === "waiting") return Effect.zipRight(Deferred.await(bell), polled(view, cursor))
    return found === undefined ? view.pull(cursor) : Effect.succeed({ _tag: "frames", frames: found })
  })

/**
 * A client that has not connected yet.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): VirtualClient => {
  const sessions: Array<Session> = []
  let state = RunState.empty(options.runId)

  const watch = (session: Session, view: View, take: number): Effect.Effect<void> =>
    Effect.gen(function* () {
      let cursor = session.after
      while (session.frames.length < take) {
        const pulled = yield* options.polls === true ? polled(view, cursor) : view.pull(cursor)
        if (pulled._tag === "end") {
          session.ended = true
          return
        }
        if (pulled._tag === "idle") continue
        const stored = yield* options.stored
        for (const frame of pulled.frames) {
          if (session.frames.length >= take) return
          const envelope = decode(frame.json)
          session.frames.push({ envelope, stored })
          // A hole, or an event again: whatever this server says now is of no use.
          if (envelope.seq !== cursor + 1) return
          state = RunState.reduce(state, envelope)
          cursor = frame.seq
        }
      }
    }).pipe(Effect.ignore)

  const visit = ({ back, pauseMs, take }: Visit): Effect.Effect<void> =>
    Effect.gen(function* () {
      const server = options.connect()
      if (server !== undefined) {
        const session: Session = { after: Math.max(0, state.seq - (back ?? 0)), frames: [], ended: false }
        const view = yield* Effect.option(
          Effect.raceFirst(server.engine.view(options.runId, session.after), lost(server))
        )
        if (Option.isSome(view)) {
          sessions.push(session)
          yield* Effect.raceFirst(watch(session, view.value, take), Effect.ignore(lost(server)))
        }
      }
      yield* Effect.sleep(Duration.millis(pauseMs))
    })

  const stay: Effect.Effect<void> = Effect.suspend(() =>
    sessions.at(-1)?.ended === true
      ? Effect.void
      : Effect.zipRight(visit({ take: Number.POSITIVE_INFINITY, pauseMs: 100 }), stay)
  )

  return {
    observed: () => ({ runId: options.runId, sessions }),
    state: () => state,
    run: Effect.zipRight(Effect.forEach(options.visits, visit, { discard: true }), stay)
  }
}

const lost = (server: Running): Effect.Effect<never, "lost"> =>
  Effect.zipRight(Deferred.await(server.dead), Effect.fail("lost" as const))
