/**
 * What other processes announce, from a connection that does nothing but listen. One that is lost is opened again, and
 * since nobody knows what was said meanwhile, that counts as a change of everything.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Mailbox from "effect/Mailbox"
import type * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import pg from "pg"
import type { Change } from "../RunStore.js"
import { faultOf, type PgFault, settings } from "./pgClient.js"
import { channel, decode } from "./sqlNotices.js"

const anything: Change = { work: true, left: true }

/** How often a silent connection is asked whether it is there still. */
const pulse = Duration.seconds(5)

const maxUnseen = 10_000

/** The longest rest between two tries to connect. */
const rest = Duration.millis(500)

const ask = (client: pg.Client, text: string): Effect.Effect<void, PgFault> =>
  Effect.tryPromise({
    try: () => client.query(text),
    catch: (error) => faultOf(error instanceof Error ? error : new Error(String(error)))
  })

const connect = (
  url: Redacted.Redacted,
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
    Effect.tap((client) => ask(client, `LISTEN ${channel}`))
  )

/** Changes that nobody has looked at yet, as one: it does not grow with the time that nobody looks. */
class Unseen {
  private keys: Set<number> | undefined = new Set()
  private work = false
  private left = false

  add({ keys, left, work }: Change): void {
    this.work ||= work
    this.left ||= left
    if (keys === undefined) this.keys = undefined
    for (const key of keys ?? []) this.keys?.add(key)
    if ((this.keys?.size ?? 0) > maxUnseen) this.keys = undefined
  }

  take(): Change {
    const { keys, left, work } = this
    this.keys = new Set()
    this.work = this.left = false
    return { ...(keys !== undefined && { keys: [...keys] }), work, left }
  }
}

/** What is said on one connection, for as long as it lasts. */
const session = (url: Redacted.Redacted, sender: string): Stream.Stream<Change, PgFault> =>
  Stream.unwrapScoped(
    Effect.gen(function* () {
      const unseen = new Unseen()
      const heard = yield* Mailbox.make<void, PgFault>({ capacity: 1, strategy: "dropping" })
      const client = yield* connect(url, {
        onMessage: (message) => {
          const said = decode(message)
          if (said.sender === sender) return
          unseen.add(said.change)
          heard.unsafeOffer(undefined)
        },
        onEnd: (fault) => {
          heard.unsafeDone(Exit.fail(fault))
        }
      })
      // What was committed before there was somebody to listen.
      unseen.add(anything)
      heard.unsafeOffer(undefined)
      yield* ask(client, "SELECT 1").pipe(
        Effect.schedule(Schedule.spaced(pulse)),
        Effect.catchAll((fault) => heard.fail(fault)),
        Effect.forkScoped
      )
      return Stream.map(Mailbox.toStream(heard), () => unseen.take())
    })
  )

/**
 * The changes that others than `sender` announce. Every `pollMs` that counts as one too, whatever was heard.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: {
  readonly url: Redacted.Redacted
  readonly sender: string
  readonly pollMs: number
}): Stream.Stream<Change> =>
  Stream.merge(
    Stream.retry(
      session(options.url, options.sender),
      Schedule.exponential(Duration.millis(20), 2).pipe(Schedule.union(Schedule.spaced(rest)))
    ).pipe(Stream.orDie),
    Stream.as(Stream.fromSchedule(Schedule.spaced(Duration.millis(options.pollMs))), anything)
  )
