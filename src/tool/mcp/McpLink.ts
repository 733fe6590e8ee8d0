/**
 * One connection to a Model Context Protocol server.
 *
 * @since 0.1.0
 */
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport, StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import {
  type CallToolResult,
  CallToolResultSchema,
  McpError,
  type Tool as McpTool,
  type ProgressNotification,
  ProgressNotificationSchema,
  ResultSchema,
  ToolListChangedNotificationSchema,
  ToolSchema
} from "@modelcontextprotocol/sdk/types.js"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberId from "effect/FiberId"
import * as Mailbox from "effect/Mailbox"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { isNeverSent } from "../NeverSent.js"
import * as McpFetch from "./McpFetch.js"
import * as StdioTransport from "./StdioTransport.js"

/**
 * A program to start, or an address.
 *
 * @since 0.1.0
 * @category models
 */
export type ServerConfig =
  | {
      readonly command: string
      readonly args: ReadonlyArray<string>
      readonly env: { readonly [name: string]: Redacted.Redacted }
      readonly cwd?: string | undefined
    }
  | { readonly url: string; readonly headers: { readonly [name: string]: Redacted.Redacted } }

/**
 * - `isAllowed`: whether an address may be called; any may unless said
 * - `maxMessageBytes`: bound of one message, 16 MiB unless said
 *
 * @since 0.1.0
 * @category models
 */
export interface Bounds {
  readonly isAllowed?: ((url: string) => boolean) | undefined
  readonly maxMessageBytes?: number | undefined
}

/**
 * What went wrong with a request.
 *
 * - `not_sent`: it did not reach the server
 * - `lost`: it may have, and there is no answer
 * - `refused`: the server answered with an error
 *
 * @since 0.1.0
 * @category errors
 */
export class LinkError extends Schema.TaggedError<LinkError>()("LinkError", {
  reason: Schema.Literal("not_sent", "lost", "refused"),
  message: Schema.String
}) {}

/**
 * The tools of a server, over all pages, and how many of what it has told of are not among them: those that are none by
 * the protocol's rules, and those behind the first thousand. `more`: whether it has more than was asked for.
 *
 * @since 0.1.0
 * @category models
 */
export interface Listing {
  readonly tools: ReadonlyArray<McpTool>
  readonly left: number
  readonly more: boolean
}

/**
 * - `tools`: what the server has
 * - `call`: calls one; `progress` is given a line now and then. Interruption tells the server
 * - `changed`: waits until the server has other tools
 * - `gone`: waits until the connection is of no use any more, and says why
 *
 * @since 0.1.0
 * @category models
 */
export interface Link {
  readonly tools: Effect.Effect<Listing, LinkError>
  readonly call: (
    name: string,
    input: { readonly [field: string]: unknown },
    key: string,
    progress: (line: string) => void
  ) => Effect.Effect<CallToolResult, LinkError>
  readonly changed: Effect.Effect<void>
  readonly gone: Effect.Effect<string>
}

/** Time limits are ours: the library's own must not come first. It takes no longer ones. */
const noTimeout = 2_147_483_647

const maxPages = 100
const maxTools = 1_000

/** How long an answer may take that is on its way already, or that comes in another stream. */
const settleMs = 250
const resumeMs = 20_000

/** How long a server may take to hear that nobody will come again. */
const byeMs = 1_000

const errorOf = (error: unknown, isOpen: boolean): LinkError => {
  if (error instanceof StreamableHTTPError) {
    const { code = 0 } = error
    // A server that was started anew does not know the session; that is how it says so.
    if (code === 404 || code === 400) return new LinkError({ reason: "not_sent", message: "its session is over" })
    return code === 502 || code === 504
      ? new LinkError({ reason: "lost", message: `it answered with status ${code}` })
      : new LinkError({ reason: "refused", message: `it answered with status ${code}` })
  }
  if (error instanceof McpError && isOpen) return new LinkError({ reason: "refused", message: error.message })
  return isNeverSent(error)
    ? new LinkError({ reason: "not_sent", message: "it can not be reached" })
    : new LinkError({ reason: "lost", message: "the connection was lost before it answered" })
}

/** A program that is not there, or is none. */
const notStarted = (error: unknown): LinkError | undefined =>
  error instanceof Error && "syscall" in error && String(error.syscall).startsWith("spawn")
    ? new LinkError({ reason: "not_sent", message: "its program can not be started" })
    : undefined

const passed = (ms: number): Promise<void> =>
  new Promise((resolve) => AbortSignal.timeout(ms).addEventListener("abort", () => resolve()))

const keyed = (key: string) => ({ [McpFetch.keyField]: key })

const progressLine = ({ message, progress, total }: ProgressNotification["params"]) =>
  message ?? (total === undefined ? `${progress}` : `${progress}/${total}`)

interface Wire {
  readonly transport: Transport
  /** Completes when the call with this key can not be answered any more. */
  readonly unanswerable: (key: string) => Effect.Effect<void>
  readonly why: () => string
  /** What was said before is not why what comes now fails. */
  readonly afresh: () => void
  /** Says that nobody will come again. */
  readonly bye: () => Promise<void>
}

const wire = (config: ServerConfig, { isAllowed = () => true, maxMessageBytes = 16 * 1024 * 1024 }: Bounds) =>
  Effect.gen(function* () {
    if ("command" in config) {
      const transport = yield* StdioTransport.make({
        ...config,
        env: Record.map(config.env, Redacted.value),
        maxMessageBytes
      })
      const stdio: Wire = {
        transport,
        unanswerable: () => Effect.never,
        why: transport.lastWords,
        afresh: () => undefined,
        bye: async () => undefined
      }
      return stdio
    }
    const ends = new Map<string, Deferred.Deferred<number>>()
    const endOf = (key: string) => {
      const known = ends.get(key) ?? Deferred.unsafeMake<number>(FiberId.none)
      ends.set(key, known)
      return known
    }
    let words = ""
    const fetch = yield* McpFetch.make({
      isAllowed,
      maxMessageBytes,
      onTooLong: () => {
        words = `A message is longer than ${maxMessageBytes} bytes`
      },
      onEnd: (key, resumable) => {
        const end = ends.get(key)
        if (end !== undefined) Deferred.unsafeDone(end, Effect.succeed(resumable ? resumeMs : settleMs))
      }
    })
    const transport = new StreamableHTTPClientTransport(new URL(config.url), {
      fetch,
      requestInit: { headers: Record.map(config.headers, Redacted.value) }
    })
    const http: Wire = {
      transport,
      unanswerable: (key) =>
        Effect.suspend(() => Deferred.await(endOf(key))).pipe(
          Effect.flatMap((ms) => Effect.sleep(ms)),
          Effect.ensuring(Effect.sync(() => ends.delete(key)))
        ),
      why: () => words,
      afresh: () => {
        words = ""
      },
      bye: () => Promise.race([transport.terminateSession(), passed(byeMs)])
    }
    return http
  })

/**
 * A connection that lives as long as the scope: the handshake is done when it is there.
 *
 * @since 0.1.0
 * @category constructors
 */
export const connect = (config: ServerConfig, bounds: Bounds = {}): Effect.Effect<Link, LinkError, Scope.Scope> =>
  Effect.gen(function* () {
    const { afresh, bye, transport, unanswerable, why } = yield* wire(config, bounds)
    const client = new Client({ name: "runlet", version: "0.1.0" }, { capabilities: {} })
    const gone = yield* Deferred.make<string>()
    const changes = yield* Mailbox.make<void>({ capacity: 1, strategy: "sliding" })
    let isOpen = true
    const end = (reason: string) => {
      isOpen = false
      Deferred.unsafeDone(gone, Effect.succeed(reason))
    }
    client.onclose = () => end(why() === "" ? "the connection ended" : `it ended: ${why()}`)
    client.onerror = (error) => {
      if (error instanceof StreamableHTTPError && error.code === 404) end("its session is over")
    }
    // The library looks at progress later than at the answer behind it, and drops it then.
    const listeners = new Map<string | number, (line: string) => void>()
    transport.onmessage = (message) => {
      const progress = ProgressNotificationSchema.safeParse(message)
      if (progress.success) listeners.get(progress.data.params.progressToken)?.(progressLine(progress.data.params))
    }
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      changes.unsafeOffer(undefined)
    })
    const explained = ({ message, reason }: LinkError): LinkError => {
      const words = why()
      return new LinkError({ reason, message: words === "" ? message : `${message}: ${words}` })
    }
    const noAnswer = new LinkError({ reason: "lost", message: "the connection was lost before it answered" })
    yield* Effect.acquireRelease(
      Effect.tryPromise({
        try: (signal) => client.connect(transport, { signal, timeout: noTimeout }),
        catch: (error) => explained(notStarted(error) ?? errorOf(error, isOpen))
      }),
      () =>
        Effect.ignore(
          Effect.tryPromise(async () => {
            if (isOpen) await bye()
            await client.close()
          })
        )
    )

    let asked = 0
    const page = (cursor: string | undefined) =>
      Effect.suspend(() => {
        afresh()
        const key = `list-${asked++}`
        return Effect.tryPromise({
          try: (signal) =>
            client.request(
              { method: "tools/list", params: { ...(cursor !== undefined && { cursor }), _meta: keyed(key) } },
              // What is in it is looked at one by one, and only as far as it is used.
              ResultSchema,
              { signal, timeout: noTimeout }
            ),
          catch: (error) => errorOf(error, isOpen)
        }).pipe(Effect.raceFirst(Effect.zipRight(unanswerable(key), noAnswer)), Effect.mapError(explained))
      })
    const pages = (
      cursor: string | undefined,
      read: number,
      before: Pick<Listing, "left" | "tools">
    ): Effect.Effect<Listing, LinkError> =>
      Effect.flatMap(page(cursor), ({ nextCursor, tools: said }) => {
        const all: ReadonlyArray<unknown> = Array.isArray(said) ? said : []
        const looked = all.slice(0, maxTools - before.tools.length)
        const found = looked.flatMap((tool) => {
          const parsed = ToolSchema.safeParse(tool)
          return parsed.success ? [parsed.data] : []
        })
        const tools = [...before.tools, ...found]
        const left = before.left + all.length - found.length
        if (typeof nextCursor !== "string" || nextCursor === cursor) return Effect.succeed({ tools, left, more: false })
        return read + 1 >= maxPages || tools.length >= maxTools
          ? Effect.succeed({ tools, left, more: true })
          : pages(nextCursor, read + 1, { tools, left })
      })

    return {
      tools: Effect.suspend(() =>
        client.getServerCapabilities()?.tools === undefined
          ? Effect.succeed({ tools: [], left: 0, more: false })
          : pages(undefined, 0, { tools: [], left: 0 })
      ),
      call: (name, input, key, progress) =>
        Effect.tryPromise({
          try: (signal) => {
            listeners.set(key, progress)
            const meta = { progressToken: key, ...keyed(key) }
            return client.request(
              { method: "tools/call", params: { name, arguments: { ...input }, _meta: meta } },
              CallToolResultSchema,
              { signal, timeout: noTimeout }
            )
          },
          catch: (error) => errorOf(error, isOpen)
        }).pipe(
          Effect.ensuring(Effect.sync(() => listeners.delete(key))),
          Effect.tapError(({ message, reason }) => Effect.sync(() => reason === "not_sent" && end(message))),
          Effect.raceFirst(Effect.zipRight(unanswerable(key), noAnswer))
        ),
      changed: Effect.orDie(changes.take),
      gone: Deferred.await(gone)
    }
  })
