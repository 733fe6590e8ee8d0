/**
 * What runs cost with one, two and three servers on one PostgreSQL database: processor time of the servers and of the
 * database for an event, and the database's work for it. `DATABASE_URL` names the server; its processes must be on this
 * machine to be measured. `BENCH_RUNS` (default 60) runs at 10 deltas a second each, with one viewer each behind a proxy
 * that chooses servers in turn, are watched for `BENCH_SECONDS` (default 15). `BENCH_SERVERS` (default `1,2,3`) says how
 * many servers there are.
 */
import { readdirSync, readFileSync } from "node:fs"
import pg from "pg"
import * as Balancer from "../fleet/support/Balancer.js"
import * as Api from "../kill/support/Api.js"
import type { ServerProcess } from "../kill/support/ServerProcess.js"
import { Viewer } from "../kill/support/Viewer.js"
import { sleep, World } from "../kill/support/World.js"
import { cpuSeconds } from "./Child.js"

const server = process.env.DATABASE_URL
if (server === undefined) throw new Error("Name a PostgreSQL server in DATABASE_URL")
const count = Number(process.env.BENCH_RUNS ?? 60)
const seconds = Number(process.env.BENCH_SECONDS ?? 15)

const connected = async <A>(url: string, use: (client: pg.Client) => Promise<A>): Promise<A> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

const fieldsOf = (pid: number): ReadonlyArray<string> => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8")
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")
}

/** Of a process, of its children, and of those of them that have ended. */
const familySeconds = (parent: number): number => {
  const [, , , , , , , , , , , , , ended = "0", inKernel = "0"] = fieldsOf(parent)
  let total = cpuSeconds(parent) + (Number(ended) + Number(inKernel)) / 100
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue
    try {
      if (Number(fieldsOf(Number(name))[1]) === parent) total += cpuSeconds(Number(name))
    } catch {
      // It has ended since.
    }
  }
  return total
}

interface Sample {
  readonly at: number
  readonly servers: number
  readonly database: number
  readonly events: number
  readonly commits: number
  readonly walBytes: number
  readonly walRecords: number
  readonly walSyncs: number
}

const number = async (client: pg.Client, text: string): Promise<number> =>
  Number((await client.query({ text, rowMode: "array" })).rows[0]?.[0] ?? 0)

const sample = async (client: pg.Client, pids: ReadonlyArray<number>, postmaster: number): Promise<Sample> => {
  await client.query("SELECT pg_stat_clear_snapshot()")
  return {
    at: performance.now(),
    servers: pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0),
    database: familySeconds(postmaster),
    events: await number(client, "SELECT COALESCE(SUM(last_seq), 0) FROM runs"),
    commits: await number(client, "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"),
    walBytes: await number(client, "SELECT wal_bytes FROM pg_stat_wal"),
    walRecords: await number(client, "SELECT wal_records FROM pg_stat_wal"),
    walSyncs: await number(client, "SELECT wal_sync FROM pg_stat_wal")
  }
}

const quantile = (values: ReadonlyArray<number>, q: number): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length * q)] ?? Number.NaN

const measure = async (replicas: number): Promise<ReadonlyArray<string | number>> => {
  const name = `runlet_bench_${process.pid}_${replicas}`
  await connected(server, (client) => client.query(`CREATE DATABASE ${name}`))
  const address = new URL(server)
  address.pathname = `/${name}`
  const world = await World.open({ seed: replicas, people: false, data: address.href })
  const servers: Array<ServerProcess> = []
  for (let i = 0; i < replicas; i++) servers.push(await world.launch(`server-${i}`))
  const balancer = await Balancer.start(() => servers.map(({ url }) => url))
  try {
    return await connected(address.href, async (client) => {
      const backend = await number(client, "SELECT pg_backend_pid()")
      const postmaster = Number(fieldsOf(backend)[1])
      const delays: Array<number> = []
      let measuring = false
      for (let i = 0; i < count; i++) {
        const { runId } = await Api.start(balancer.url, `plan steady ${i}`)
        const viewer = new Viewer(runId, ({ createdAt }) => {
          if (measuring) delays.push(Date.now() - createdAt)
        })
        void viewer.connect(balancer.url)
      }
      await sleep(3000)
      measuring = true
      const pids = servers.map(({ pid }) => pid)
      const before = await sample(client, pids, postmaster)
      await sleep(seconds * 1000)
      const after = await sample(client, pids, postmaster)
      measuring = false
      const events = after.events - before.events
      const per = (what: keyof Sample, digits = 2) => ((after[what] - before[what]) / events).toFixed(digits)
      const took = (after.at - before.at) / 1000
      return [
        replicas,
        (events / took).toFixed(0),
        (((after.servers - before.servers) / events) * 1e6).toFixed(0),
        (((after.database - before.database) / events) * 1e6).toFixed(0),
        per("commits"),
        per("walBytes", 0),
        per("walRecords"),
        per("walSyncs"),
        (((after.walSyncs - before.walSyncs) / took / count) * 1000).toFixed(0),
        quantile(delays, 0.5),
        quantile(delays, 0.99)
      ]
    })
  } finally {
    for (const one of servers) await one.kill()
    await balancer.stop()
    await world.close()
    await connected(server, (client) => client.query(`DROP DATABASE ${name} WITH (FORCE)`))
  }
}

const heads = [
  "servers",
  "events/s",
  "CPU of servers, µs/event",
  "CPU of PostgreSQL, µs/event",
  "transactions/event",
  "WAL bytes/event",
  "WAL records/event",
  "WAL syncs/event",
  "WAL syncs/s for 1,000 runs",
  "at a viewer, p50 ms",
  "p99 ms"
]
const lines = [heads, heads.map(() => "---")]
for (const replicas of (process.env.BENCH_SERVERS ?? "1,2,3").split(",").map(Number))
  lines.push((await measure(replicas)).map(String))
console.log(lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n"))
