/**
 * A PostgreSQL server for tests: the one that `DATABASE_URL` names, or one that is started from the installed binaries
 * in a directory of its own, on a free loopback port, by a user who is not root.
 */
import { spawn, spawnSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import {
  appendFileSync,
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync
} from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { delimiter, dirname, join } from "node:path"
import pg from "pg"

/** Where the workers of one run of tests find what they share. */
export interface Place {
  /** A directory that goes when the run ends. */
  readonly directory: string
  /** Of a server that is there already. */
  readonly url: string | undefined
  /** Of the installed binaries. */
  readonly binaries: string | undefined
  /** The program of PgBouncer. */
  readonly pooler: string | undefined
}

const directories = (): ReadonlyArray<string> => {
  const named = process.env.RUNLET_POSTGRES_BINARIES
  if (named !== undefined && named !== "") return [named]
  const debian = "/usr/lib/postgresql"
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  return [...(process.env.PATH ?? "").split(delimiter), ...versions.map((version) => join(debian, version, "bin"))]
}

/** Some of the programs may be elsewhere under names of their own; where one really is, all are. */
const find = (): string | undefined => {
  const found = directories().find((directory) =>
    ["initdb", "postgres"].every((name) => existsSync(join(directory, name)))
  )
  return found === undefined ? undefined : dirname(realpathSync(join(found, "initdb")))
}

/** Where the programs of PostgreSQL are; nowhere with `RUNLET_POSTGRES=off`. */
export const binaries = (): string | undefined => (process.env.RUNLET_POSTGRES === "off" ? undefined : find())

/** Debian has it where only root looks. */
const findPooler = (): string | undefined =>
  [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin"]
    .map((directory) => join(directory, "pgbouncer"))
    .find((path) => existsSync(path))

/** What there is; nothing with `RUNLET_POSTGRES=off`, and no pooler with `RUNLET_PGBOUNCER=off`. */
export const place = (): Place => {
  const { DATABASE_URL: url, RUNLET_POSTGRES: wanted } = process.env
  return {
    directory: mkdtempSync(join(tmpdir(), "runlet-postgres-")),
    url: url === "" || wanted === "off" ? undefined : url,
    binaries: binaries(),
    pooler: process.env.RUNLET_PGBOUNCER === "off" ? undefined : findPooler()
  }
}

export const isThere = ({ binaries, url }: Place): boolean => binaries !== undefined || url !== undefined

/** PostgreSQL refuses to be run by root. */
const unprivileged = (): { readonly uid: number; readonly gid: number } | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const users = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"))
  for (const name of ["postgres", "nobody"]) {
    const [, , uid, gid] = users.find(([user]) => user === name) ?? []
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) }
  }
  throw new Error("PostgreSQL may not be run by root, and there is neither a user postgres nor a user nobody")
}

export const freePort = () =>
  new Promise<number>((done, failed) => {
    const server = createServer()
    server.on("error", failed)
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      server.close(() => (typeof address === "object" && address !== null ? done(address.port) : failed(new Error())))
    })
  })

const sleep = (ms: number) => new Promise<void>((done) => setTimeout(done, ms))

interface Running {
  readonly url: string
  readonly pid: number
}

/** One connection, for one statement after the other. */
export const connected = async <A>(url: string, use: (client: pg.Client) => Promise<A>): Promise<A> => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 20_000 })
  client.on("error", () => undefined)
  try {
    await client.connect()
    return await use(client)
  } finally {
    await client.end().catch(() => undefined)
  }
}

/** Waits until a server, whose process is given, takes connections. */
export const answers = async (url: string, pid: number): Promise<void> => {
  for (let left = 400; ; left--) {
    try {
      return await connected(url, async () => undefined)
    } catch (error) {
      if (left === 0 || !lives(pid)) throw error
      await sleep(50)
    }
  }
}

const lives = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** What a program of PostgreSQL is started with. */
export const surroundings = () => ({
  ...unprivileged(),
  env: { PATH: process.env.PATH ?? "", LC_ALL: "C", TZ: "UTC" },
  cwd: "/"
})

/** Has a file belong to who runs PostgreSQL. */
export const readable = (path: string): void => {
  const user = unprivileged()
  if (user === undefined) return
  chmodSync(dirname(path), 0o711)
  chownSync(path, user.uid, user.gid)
}

/** Runs a program of PostgreSQL to its end. */
export const execute = (
  binaries: string,
  name: string,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {}
): void => {
  const how = surroundings()
  const done = spawnSync(join(binaries, name), args, { ...how, env: { ...how.env, ...env }, encoding: "utf8" })
  if (done.status !== 0) throw new Error(`${name} failed: ${done.error?.message ?? ""}${done.stdout}${done.stderr}`)
}

/** A directory that PostgreSQL may write to, below one of the test's own in the system's for such. */
export const ownDirectory = (path: string): void => {
  const user = unprivileged()
  mkdirSync(path, { mode: 0o700 })
  if (user === undefined) return
  // Those above have to let it through. What everybody has their files in is left as it is.
  for (let above = dirname(path); above.startsWith(join(tmpdir(), "/")); above = dirname(above)) chmodSync(above, 0o711)
  chownSync(path, user.uid, user.gid)
}

/** Starts a server on the data in a directory. */
export const run = async (
  binaries: string,
  options: {
    readonly data: string
    readonly log: string
    readonly password: string
    readonly settings?: Readonly<Record<string, string>>
  }
): Promise<Running> => {
  const port = await freePort()
  const log = openSync(options.log, "a")
  const settings = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    max_connections: "200",
    // Nobody pulls the plug in a test; whoever measures says `DATABASE_URL`.
    fsync: "off",
    full_page_writes: "off",
    ...options.settings
  }
  const server = spawn(
    join(binaries, "postgres"),
    [
      "-D",
      options.data,
      "-p",
      String(port),
      ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])
    ],
    // It serves all workers, so it must not end with the one that started it.
    { ...surroundings(), detached: true, stdio: ["ignore", log, log] }
  )
  closeSync(log)
  server.unref()
  const { pid } = server
  if (pid === undefined) throw new Error("PostgreSQL could not be started")
  const url = `postgres://runlet:${options.password}@127.0.0.1:${port}/postgres`
  try {
    await answers(url, pid)
  } catch (error) {
    throw new Error(`PostgreSQL does not answer: ${readFileSync(options.log, "utf8")}`, { cause: error })
  }
  return { url, pid }
}

/** An empty server in a directory that is there. */
export const boot = async (
  binaries: string,
  directory: string
): Promise<Running & { readonly data: string; readonly password: string }> => {
  const data = join(directory, "data")
  const password = randomBytes(16).toString("hex")
  const passwordFile = join(directory, "password")
  ownDirectory(data)
  writeFileSync(passwordFile, password, { mode: 0o600 })
  readable(passwordFile)
  execute(binaries, "initdb", [
    ...["-D", data, "-U", "runlet", "-A", "scram-sha-256", "--pwfile", passwordFile],
    ...["-E", "UTF8", "--locale", "C", "--no-sync", "--no-instructions"]
  ])
  return { ...(await run(binaries, { data, log: join(directory, "log"), password })), data, password }
}

/** Ends a server: a fast shutdown, then an immediate one. */
export const end = async (pid: number): Promise<void> => {
  if (!lives(pid)) return
  process.kill(pid, "SIGINT")
  for (let left = 200; left > 0 && lives(pid); left--) {
    if (left === 100) process.kill(pid, "SIGQUIT")
    await sleep(50)
  }
}

const stateOf = (directory: string) => join(directory, "server.json")

/** The address of the server, which the first worker that asks starts. */
export const serverUrl = async ({ binaries, directory, url }: Place): Promise<string> => {
  if (url !== undefined) return url
  if (binaries === undefined) throw new Error("There is no PostgreSQL")
  const state = stateOf(directory)
  const started = (): string | undefined => {
    if (!existsSync(state)) return undefined
    const found: { readonly url?: string; readonly failure?: string } = JSON.parse(readFileSync(state, "utf8"))
    if (found.url === undefined) throw new Error(found.failure)
    return found.url
  }
  const write = (what: unknown) => {
    writeFileSync(`${state}.new`, JSON.stringify(what), { mode: 0o600 })
    renameSync(`${state}.new`, state)
  }
  const server = join(directory, "server")
  try {
    mkdirSync(server, { mode: 0o711 })
  } catch {
    for (let left = 1200; left > 0; left--) {
      const found = started()
      if (found !== undefined) return found
      await sleep(50)
    }
    throw new Error("PostgreSQL was not started in time")
  }
  try {
    const running = await boot(binaries, server)
    write(running)
    return running.url
  } catch (error) {
    write({ failure: error instanceof Error ? error.message : String(error) })
    throw error
  }
}

const skippedFile = ({ directory }: Place) => join(directory, "skipped")

/** What a suite may need that is not installed. */
export type Missing = "PostgreSQL" | "PgBouncer"

/** Notes that a suite was not run because something is missing. */
export const skipped = (where: Place, missing: Missing, suite: string): void =>
  appendFileSync(skippedFile(where), `${missing} ${suite}\n`)

/** The suites that were not run for want of this. */
export const allSkipped = (where: Place, missing: Missing): ReadonlyArray<string> => {
  const file = skippedFile(where)
  if (!existsSync(file)) return []
  const lines = readFileSync(file, "utf8").trimEnd().split("\n")
  const suites = lines.flatMap((line) => (line.startsWith(`${missing} `) ? [line.slice(missing.length + 1)] : []))
  return [...new Set(suites)].sort()
}

/** Ends the server, if one was started, and removes everything. */
export const stop = async ({ directory }: Place): Promise<void> => {
  const state = stateOf(directory)
  const { pid }: Partial<Running> = existsSync(state) ? JSON.parse(readFileSync(state, "utf8")) : {}
  if (pid !== undefined) await end(pid)
  rmSync(directory, { recursive: true, force: true })
}
