/**
 * What other processes announce, from a connection that does nothing but listen. One that is lost is opened again, and
 * since nobody knows what was said meanwhile, that counts as a change of everything.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Mailbox from "effect/Mailbox"
import type * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import pg from "pg"
import type { Appended, Change } from "../RunStore.js"
import { faultOf, type PgFault, settings } from "./pgClient.js"
import { decode, greeting } from "./sqlNotices.js"

const anything: Change = { work: true, left: true }

/** How often a process says that it is there, by which it also finds out whether its connection still is. */
const pulse = Duration.seconds(2)

/** For how long a process that says nothing is taken to be there. */
const presence = Duration.seconds(7)

/** How many runs, and how many of their events, nobody has looked at yet before it is no longer told which. */
const maxUnseen = 10_000

/**
 * How long the server waits for a listener that does not read (milliseconds). Meanwhile it has to keep everything that
 * anybody announces.
 */
const stalledMs = 60_000

/** The longest rest between two tries to connect. */
const rest = Duration.millis(500)

const ask = (client: pg.Client, text: string): Effect.Effect<void, PgFault> =>
  Effect.tryPromise({
    try: () => client.query(text),
    catch: (error) => faultOf(error instanceof Error ? error : new Error(String(error)))
  })

const connect = (
  { channel, url }: Pick<Options, "channel" | "url">,
  listeners: { readonly onMessage: (message: string) => void; readonly onEnd: (error: PgFault) => void }
): Effect.Effect<pg.Client, PgFault, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new pg.Client(settings(url))),
    (client) => Effect.ignore(Effect.promise(() => client.end()))
  ).pipe(
    Effect.tap((client) =>
      Effect.sync(() => {
        client.on("error", (error) => listeners.onEnd(faultOf(error)))
        client.on("end", () => listeners.onEnd(faultOf(new Error("The connection has ended"))))
        client.on("notification", ({ payload }) => {
          if (payload !== undefined) listeners.onMessage(payload)
        })
      })
    ),
    Effect.tap((client) =>
      Effect.tryPromise({
        try: () => client.connect(),
        catch: (error) => faultOf(error instanceof Error ? error : new Error(String(error)))
      })
    ),
    Effect.tap((client) => ask(client, `SET tcp_user_timeout = ${stalledMs}; LISTEN ${channel}`))
  )

/** Changes that nobody has looked at yet, as one: it does not grow with the time that nobody looks. */
class Unseen {
  private keys: Set<number> | undefined = new Set()
  private appended: Array<Appended> = []
  private events = 0
  private work = false
  private left = false
  private lost = false

  add({ appended = [], keys, left, lost = false, work }: Change): void {
    this.work ||= work
    this.left ||= left
    this.lost ||= lost
    if (keys === undefined) this.keys = undefined
    for (const key of keys ?? []) this.keys?.add(key)
    for (const one of appended) {
      this.appended.push(one)
      this.events += one.count
    }
    if ((this.keys?.size ?? 0) <= maxUnseen && this.events <= maxUnseen) return
    this.keys = undefined
    this.appended = []
    this.events = 0
    this.lost = true
  }

  take(): Change {
    const { appended, keys, left, lost, work } = this
    this.keys = new Set()
    this.appended = []
    this.events = 0
    this.work = this.left = this.lost = false
    return {
      ...(keys !== undefined && { keys: [...keys] }),
      ...(appended.length > 0 && { appended }),
      lost,
      work,
      left
    }
  }
}

/** Who else has been heard of, and when (milliseconds of the program). */
class Others {
  private readonly seen = new Map<string, number>()

  heard(sender: string, now: number): void {
    this.seen.set(sender, now)
  }

  count(now: number): number {
    for (const [sender, at] of this.seen) if (now - at > Duration.toMillis(presence)) this.seen.delete(sender)
    return this.seen.size
  }
}

const isNothing = ({ appended, keys, left, work }: Change): boolean =>
  keys?.length === 0 && appended === undefined && !work && !left

/** What is said on one connection, for as long as it lasts. */
const session = (options: Options, others: Others): Stream.Stream<Change, PgFault> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const clock = yield* Effect.clock
      const unseen = new Unseen()
      const heard = yield* Mailbox.make<void, PgFault>({ capacity: 1, strategy: "dropping" })
      const client = yield* connect(options, {
        onMessage: (message) => {
          const { change, sender } = decode(message)
          if (sender === options.sender) return
          others.heard(sender, clock.unsafeCurrentTimeMillis())
          const said = change()
          if (isNothing(said)) return
          unseen.add(said)
          heard.unsafeOffer(undefined)
        },
        onEnd: (fault) => {
          heard.unsafeDone(Exit.fail(fault))
        }
      })
      // What was committed before there was somebody to listen.
      unseen.add({ ...anything, lost: true })
      heard.unsafeOffer(undefined)
      yield* ask(client, `NOTIFY ${options.channel}, '${greeting(options.sender)}'`).pipe(
        Effect.repeat(Schedule.spaced(pulse)),
        Effect.catchAll((fault) => heard.fail(fault)),
        Effect.forkScoped
      )
      return Stream.map(Mailbox.toStream(heard), () => unseen.take())
    })
  )

/**
 * - `changes`: what others announce; every `pollMs` counts as a change too, whatever was heard
 * - `others`: how many other processes have been heard of lately
 *
 * @since 0.1.0
 * @category models
 */
export interface Listener {
  readonly changes: Stream.Stream<Change>
  readonly others: Effect.Effect<number>
}

/**
 * `channel` and `sender` are words; `pollMs` is in milliseconds.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  readonly url: Redacted.Redacted
  readonly channel: string
  readonly sender: string
  readonly pollMs: number
}

/**
 * A listener that listens while its changes are read. Others are those that are not `sender`.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Listener => {
  const others = new Others()
  return {
    changes: Stream.merge(
      Stream.retry(
        session(options, others),
        Schedule.exponential(Duration.millis(20), 2).pipe(Schedule.union(Schedule.spaced(rest)))
      ).pipe(Stream.orDie),
      Stream.as(Stream.fromSchedule(Schedule.spaced(Duration.millis(options.pollMs))), anything)
    ),
    others: Effect.map(Clock.currentTimeMillis, (now) => others.count(now))
  }
}
