/**
 * The tools of Model Context Protocol servers. Each server is kept connected: one that ends is started again, or called
 * again, after a pause that grows; one that tells of other tools is asked for them.
 *
 * Needs `@modelcontextprotocol/sdk`.
 *
 * @since 0.1.0
 */
import type { Tool as ListedTool } from "@modelcontextprotocol/sdk/types.js"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Mailbox from "effect/Mailbox"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import * as Secrets from "../../domain/Secrets.js"
import { ofHeader, ofUrl, ofVariable } from "../../domain/SecretValues.js"
import * as JsonSchema from "../JsonSchema.js"
import { type Tool, type ToolContext, ToolFailure, ToolInDoubt } from "../Tool.js"
import * as McpLink from "./McpLink.js"
import * as McpTool from "./McpTool.js"

/**
 * - `servers`: by the name that their tools' names begin with
 * - `taken`: names that other tools have
 * - `startMs`: how long to wait for a server at first, before going on without it; 10 s unless said
 *
 * @since 0.1.0
 * @category models
 */
export interface Options extends McpLink.Bounds {
  readonly servers: { readonly [name: string]: McpLink.ServerConfig }
  readonly taken?: ReadonlyArray<string> | undefined
  readonly startMs?: number | undefined
}

/**
 * `tools`: those that there are at the moment, also of a server that is being started again.
 *
 * @since 0.1.0
 * @category models
 */
export interface McpServers {
  readonly tools: () => ReadonlyArray<Tool>
}

/** How long a connection may take to be made, and a list of tools. Programs are installed at times before they run. */
const connectMs = 120_000

/** How long a call waits for a server that is being started again. */
const patienceMs = 5_000

const firstPauseMs = 500
const maxPauseMs = 30_000

/** A connection that held so long was a good one. */
const steadyMs = 10_000

/** How long the tools of a server stand before they are asked for again. */
const relistMs = 1_000

/** How much may be told to a model of the tools of one server, as JSON. */
const maxListedChars = 2 * 1024 * 1024

/** So many schemas are compiled before others have their turn, or one that takes long. */
const compiledAtOnce = 10
const longMs = 20

/** So many schemas of a server may take so long. */
const maxSlow = 3
const slowMs = 900

type Check = Tool["check"]

/** A tool and what checks its input. */
interface Listed {
  readonly tool: ListedTool
  readonly check: Check
}

interface Server {
  readonly name: string
  readonly config: McpLink.ServerConfig
  readonly link: SubscriptionRef.SubscriptionRef<Option.Option<McpLink.Link>>
  readonly clean: Secrets.Cleaner
  listed: ReadonlyArray<Listed>
  /** By the text of a schema, what checks by it, if anything does. */
  checks: ReadonlyMap<string, Check | undefined>
}

const secretsOf = (config: McpLink.ServerConfig): ReadonlyArray<string> =>
  "command" in config
    ? Object.entries(config.env).flatMap(([name, value]) => ofVariable(name, Redacted.value(value)))
    : [
        ...ofUrl(config.url),
        ...Object.entries(config.headers).flatMap(([name, value]) => ofHeader(name, Redacted.value(value)))
      ]

/**
 * Servers that are connected as long as the scope is open. One that can not be reached is told of in the log, and tried
 * again and again.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (options: Options): Effect.Effect<McpServers, never, Scope.Scope> =>
  Effect.gen(function* () {
    const servers = yield* Effect.forEach(Record.toEntries(options.servers), ([name, config]) =>
      Effect.map(
        SubscriptionRef.make(Option.none<McpLink.Link>()),
        (link): Server => ({
          name,
          config,
          link,
          clean: Secrets.make(secretsOf(config)).said,
          listed: [],
          checks: new Map()
        })
      )
    )
    let tools: ReadonlyArray<Tool> = []
    const refreshed = Effect.sync(() => {
      tools = toolsOf(servers, new Set(options.taken))
    })
    yield* Effect.forEach(
      servers,
      (server) =>
        Effect.gen(function* () {
          const tried = yield* Deferred.make<void>()
          yield* Effect.forkScoped(keep(server, options, refreshed, tried))
          yield* Effect.timeoutOption(Deferred.await(tried), options.startMs ?? 10_000)
        }),
      { concurrency: "unbounded", discard: true }
    )
    return { tools: () => tools }
  })

const late = new McpLink.LinkError({ reason: "lost", message: "it did not answer in time" })

/** Connects, and again when the connection ends, for ever. */
const keep = (
  server: Server,
  bounds: McpLink.Bounds,
  refreshed: Effect.Effect<void>,
  tried: Deferred.Deferred<void>
): Effect.Effect<never> => {
  const told = tell(server)

  const session: Effect.Effect<string, McpLink.LinkError> = Effect.scoped(
    Effect.gen(function* () {
      const link = yield* Effect.timeoutFail(McpLink.connect(server.config, bounds), {
        duration: connectMs,
        onTimeout: () => late
      })
      const listing = Effect.timeoutFail(link.tools, { duration: connectMs, onTimeout: () => late })
      const list = Effect.gen(function* () {
        yield* prepare(server, yield* listing)
        yield* refreshed
      })
      yield* list
      yield* Effect.acquireRelease(SubscriptionRef.set(server.link, Option.some(link)), () =>
        SubscriptionRef.set(server.link, Option.none())
      )
      yield* Deferred.succeed(tried, undefined)
      // However often it tells of a change.
      const relist = Effect.zipRight(
        link.changed,
        Effect.catchAll(list, ({ message }) => told(`its tools could not be listed: ${message}`))
      ).pipe(Effect.zipLeft(Effect.sleep(relistMs)))
      return yield* Effect.raceFirst(link.gone, Effect.forever(relist))
    })
  )

  const from = (failures: number): Effect.Effect<never> =>
    Effect.gen(function* () {
      const before = yield* Clock.currentTimeMillis
      const exit = yield* Effect.exit(session)
      yield* Deferred.succeed(tried, undefined)
      const held = Exit.isSuccess(exit) && (yield* Clock.currentTimeMillis) - before >= steadyMs
      const count = held ? 0 : failures
      const spread = yield* Random.nextRange(0.5, 1)
      const pauseMs = Math.round(Math.min(maxPauseMs, firstPauseMs * 2 ** count) * spread)
      const why = Exit.match(exit, { onSuccess: (said) => said, onFailure: messageOf })
      yield* told(`${why}. It is tried again in ${pauseMs} ms.`)
      yield* Effect.sleep(Duration.millis(pauseMs))
      return yield* from(count + 1)
    })
  return from(0)
}

const messageOf = (cause: Cause.Cause<McpLink.LinkError>): string =>
  Option.match(Cause.failureOption(cause), {
    onNone: () => "it failed in an unexpected way",
    onSome: ({ message }) => message
  })

const tell = (server: Server) => (message: string) =>
  Effect.logWarning(`MCP server ${server.name}: ${server.clean.text(message)}`)

/**
 * Makes ready what a server has listed, a few at a time, however much it is. What can not be checked, or would be too
 * much for a model, is left out and told of; a schema that was compiled before is not compiled again.
 */
const prepare = (server: Server, { left, more, tools }: McpLink.Listing): Effect.Effect<void> =>
  Effect.gen(function* () {
    const told = tell(server)
    const checks = new Map<string, Check | undefined>()
    const listed: Array<Listed> = []
    let chars = 0
    let slow = 0
    let compiled = 0
    for (const [index, tool] of tools.entries()) {
      const text = JSON.stringify(tool.inputSchema)
      chars += text.length + McpTool.described(tool).description.length
      if (chars > maxListedChars || slow >= maxSlow) {
        const why = slow >= maxSlow ? "its schemas take too long to be read" : "it tells too much of its tools"
        yield* told(`${why}: the last ${tools.length - index} of them are not offered`)
        break
      }
      const isKnown = checks.has(text) || server.checks.has(text)
      const [took, found] = isKnown
        ? [Duration.zero, Option.fromNullable(checks.get(text) ?? server.checks.get(text))]
        : yield* Effect.timed(checkOf(server, tool))
      if (Duration.toMillis(took) >= slowMs) slow++
      if (!isKnown && (++compiled % compiledAtOnce === 0 || Duration.toMillis(took) >= longMs)) yield* Effect.sleep(0)
      checks.set(text, Option.getOrUndefined(found))
      if (Option.isSome(found)) listed.push({ tool, check: found.value })
    }
    if (left > 0 || more) {
      const count = more ? `more than ${tools.length + left}` : `${tools.length + left}`
      yield* told(`of its ${count} tools ${tools.length} can be used; offer fewer at a time`)
    }
    server.listed = listed
    server.checks = checks
  })

const checkOf = (server: Server, tool: ListedTool): Effect.Effect<Option.Option<Check>> =>
  Effect.matchEffect(JsonSchema.compile(McpTool.nameOf(server.name, tool.name, new Set()), tool.inputSchema), {
    onFailure: ({ message }) => Effect.as(tell(server)(`${message}. It is not offered.`), Option.none()),
    onSuccess: (check) => Effect.succeed(Option.some(check))
  })

/** The tools of all servers under names that differ. */
const toolsOf = (servers: ReadonlyArray<Server>, others: ReadonlySet<string>): ReadonlyArray<Tool> => {
  const taken = new Set(others)
  return servers.flatMap((server) =>
    server.listed.flatMap((listed) => {
      const name = McpTool.nameOf(server.name, listed.tool.name, taken)
      if (taken.has(name)) return []
      taken.add(name)
      return [toolOf(server, name, listed)]
    })
  )
}

const toolOf = (server: Server, name: string, { check, tool: listed }: Listed): Tool => {
  const kind = McpTool.kindOf(listed)
  const call = (input: unknown, context: ToolContext) =>
    called(server, listed.name, input, context, kind !== "readonly")
  return {
    name,
    ...McpTool.described(listed),
    parameters: listed.inputSchema,
    kind,
    check,
    // Nothing is known of how a server would take a second try, so nothing is said of keys.
    ...(kind === "write"
      ? {
          commit: (input: unknown, context: ToolContext) => Effect.map(call(input, context), (result) => ({ result }))
        }
      : { execute: call })
  }
}

const called = (
  server: Server,
  tool: string,
  input: unknown,
  context: ToolContext,
  hasEffect: boolean
): Effect.Effect<unknown, ToolFailure | ToolInDoubt> =>
  Effect.scoped(
    Effect.gen(function* () {
      const lines = yield* Mailbox.make<string>({ capacity: 64, strategy: "sliding" })
      const shown = yield* Effect.forkScoped(
        Stream.runForEach(Mailbox.toStream(lines), (line) => context.progress(server.clean.text(line)))
      )
      const fields = typeof input === "object" && input !== null ? { ...input } : {}
      const on = (link: McpLink.Link) =>
        link.call(tool, fields, context.idempotencyKey, (line) => lines.unsafeOffer(line))
      const first = yield* present(server)
      // What was not sent may be sent again, when the server is there again.
      const result = yield* Effect.catchIf(
        on(first),
        ({ reason }) => reason === "not_sent",
        () => Effect.flatMap(present(server, first), on)
      )
      yield* lines.end
      yield* shown.await
      return result
    })
  ).pipe(
    Effect.mapError(({ message, reason }) => {
      const said = server.clean.text(`The MCP server ${server.name} did not run the tool: ${message}.`)
      const lost = server.clean.text(`The MCP server ${server.name} may have run the tool: ${message}.`)
      return reason === "lost" && hasEffect ? new ToolInDoubt({ message: lost }) : new ToolFailure({ message: said })
    }),
    Effect.flatMap((result) =>
      result.isError === true
        ? Effect.fail(new ToolFailure({ message: server.clean.text(McpTool.failureOf(result)) }))
        : Effect.succeed(server.clean.json(McpTool.resultOf(result)))
    )
  )

/** The connection, which may be about to be there, but not this one that is of no use. */
const present = (server: Server, useless?: McpLink.Link): Effect.Effect<McpLink.Link, McpLink.LinkError> => {
  const absent = new McpLink.LinkError({
    reason: "not_sent",
    message: "it is not running, and is being started again"
  })
  return server.link.changes.pipe(
    Stream.filterMap((link) => Option.filter(link, (one) => one !== useless)),
    Stream.runHead,
    Effect.timeoutFail({ duration: patienceMs, onTimeout: () => absent }),
    Effect.flatMap(
      Option.match({
        onNone: () => Effect.fail(absent),
        onSome: (link) => Effect.succeed(link)
      })
    )
  )
}
