/** A server and its standby, which has every commit before it is answered, and takes the server's place when it is told to. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Server from "./Server.js"

export interface Cluster {
  /** The address of the first server, and of the one that takes its place. */
  readonly primary: string
  readonly standby: string
  /** Whose word a commit waits for, as in `synchronous_standby_names`. */
  readonly waitFor: (names: string) => Promise<void>
  /** Ends the first server as a fault of its machine would, with everything that it was doing. */
  readonly kill: () => void
  readonly promote: () => void
  readonly stop: () => Promise<void>
}

const attached = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"

export const start = async (binaries: string): Promise<Cluster> => {
  const directory = mkdtempSync(join(tmpdir(), "runlet-cluster-"))
  const first = await Server.boot(binaries, directory)
  const data = join(directory, "standby")
  Server.ownDirectory(data)
  const { hostname, port } = new URL(first.url)
  Server.execute(
    binaries,
    "pg_basebackup",
    ["-h", hostname, "-p", port, "-U", "runlet", "-D", data, "-R", "-X", "stream", "-c", "fast", "--no-sync"],
    { PGPASSWORD: first.password }
  )
  const second = await Server.run(binaries, {
    data,
    log: join(directory, "standby.log"),
    password: first.password
  })
  const ask = (text: string) => Server.connected(first.url, async (client) => (await client.query(text)).rows)
  while ((await ask(attached)).length === 0) await new Promise((done) => setTimeout(done, 20))
  let killed = false
  return {
    primary: first.url,
    standby: second.url,
    waitFor: async (names) => {
      await ask(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`)
      await ask("SELECT pg_reload_conf()")
      while ((await ask("SHOW synchronous_standby_names"))[0]?.synchronous_standby_names !== names) {
        await new Promise((done) => setTimeout(done, 20))
      }
    },
    kill: () => {
      killed = true
      process.kill(first.pid, "SIGQUIT")
    },
    promote: () => Server.execute(binaries, "pg_ctl", ["promote", "-w", "-D", data]),
    stop: async () => {
      if (!killed) await Server.end(first.pid)
      await Server.end(second.pid)
      rmSync(directory, { recursive: true, force: true })
    }
  }
}
