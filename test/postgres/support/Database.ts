/**
 * Databases for suites over PostgreSQL, each empty and alone, and the suites themselves.
 */
import { randomBytes } from "node:crypto"
import { relative } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { afterAll, describe, expect, inject } from "vitest"
import * as Server from "./Server.js"

const place = inject("postgres")

const noteSkipped = (missing: Server.Missing): void => {
  const file = expect.getState().testPath
  if (file !== undefined) Server.skipped(place, missing, relative(process.cwd(), file))
}

/** `describe` where there is PostgreSQL. Where there is none the suite is skipped, and the end of the run says so. */
export const describePostgres = (name: string, suite: () => void): void => {
  const isThere = Server.isThere(place)
  describe.skipIf(!isThere)(name, suite)
  if (!isThere) noteSkipped("PostgreSQL")
  afterAll(async () => {
    const left = common
    common = undefined
    if (left !== undefined) await dropped(await left)
  })
}

/** The same where there is PgBouncer too, whose program the suite gets. */
export const describePooled = (name: string, suite: (pooler: string) => void): void => {
  const { pooler } = place
  if (pooler === undefined && Server.isThere(place)) {
    describe.skip(name, () => suite(""))
    noteSkipped("PgBouncer")
  } else {
    describePostgres(name, () => suite(pooler ?? ""))
  }
}

const inDatabase = (url: string, name: string): string => {
  const address = new URL(url)
  address.pathname = `/${name}`
  return address.href
}

const newName = () => `runlet_test_${randomBytes(8).toString("hex")}`

const created = async (): Promise<string> => {
  const url = await Server.serverUrl(place)
  const name = newName()
  await Server.connected(url, (client) => client.query(`CREATE DATABASE ${name}`))
  return inDatabase(url, name)
}

const dropped = async (url: string): Promise<void> => {
  const name = new URL(url).pathname.slice(1)
  const server = await Server.serverUrl(place)
  await Server.connected(server, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`))
}

/** The address, with its password, of an empty database that goes with the scope. */
export const database: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(created),
  (url) => Effect.promise(() => dropped(url))
)

let common: Promise<string> | undefined

/** The same for a part of the file's own database, which is there much sooner. What is announced in one part is heard in all. */
export const schema: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(async () => {
    common ??= created()
    const url = await common
    const name = newName()
    await Server.connected(url, (client) => client.query(`CREATE SCHEMA ${name}`))
    return { url, name }
  }),
  ({ name, url }) =>
    Effect.promise(() => Server.connected(url, (client) => client.query(`DROP SCHEMA ${name} CASCADE`)))
).pipe(
  Effect.map(({ name, url }) => {
    const address = new URL(url)
    address.searchParams.set("options", `-c search_path=${name}`)
    return address.href
  })
)

/** The rows that a statement answers, asked for by a connection of its own. */
export const query = <Row extends Record<string, unknown>>(
  url: string,
  text: string,
  values: ReadonlyArray<unknown> = []
): Effect.Effect<ReadonlyArray<Row>> =>
  Effect.promise(() => Server.connected(url, async (client) => (await client.query<Row>(text, [...values])).rows))
