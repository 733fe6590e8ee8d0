/** Several servers on one database, a proxy in front of them, and the model, the tools and the people around them. */
import { fileURLToPath } from "node:url"
import type { ServerProcess } from "../../kill/support/ServerProcess.js"
import { type Options, World } from "../../kill/support/World.js"
import * as Balancer from "./Balancer.js"
import type { Data } from "./Data.js"

export interface Fleet {
  readonly world: World
  readonly data: Data
  /** Those that run, in the order of their start. */
  readonly servers: ReadonlyArray<ServerProcess>
  readonly balancer: Balancer.Balancer
  /** The proxy, as if it were a server. */
  readonly front: ServerProcess
  /** Starts one more server; `address` is another way to the same database. */
  readonly launch: (address?: string) => Promise<ServerProcess>
  readonly kill: (server: ServerProcess) => Promise<void>
  readonly close: () => Promise<void>
}

/**
 * - `count`: how many servers
 * - `apart`: each believes that it is on a machine of its own
 */
export interface FleetOptions extends Omit<Options, "data" | "node" | "seed"> {
  readonly count?: number
  readonly seed?: number
  readonly apart?: boolean
}

const machine = fileURLToPath(new URL("machine.cjs", import.meta.url))

export const start = async (
  data: Data,
  { apart = false, count = 3, seed = 7, ...options }: FleetOptions = {}
): Promise<Fleet> => {
  const node = apart ? ["--require", machine] : []
  const world = await World.open({ seed, people: false, data: data.address, node, ...options })
  const servers: Array<ServerProcess> = []
  const balancer = await Balancer.start(() => servers.map(({ url }) => url))
  let started = 0
  const launch = async (address = data.address) => {
    const server = await world.launch(`server-${started++}`, {}, address)
    servers.push(server)
    return server
  }
  const kill = async (server: ServerProcess) => {
    servers.splice(servers.indexOf(server), 1)
    await server.kill()
  }
  const front: ServerProcess = {
    url: balancer.url,
    pid: -1,
    exited: new Promise(() => undefined),
    alive: () => true,
    output: () => servers.map(({ output }) => output()).join("\n"),
    signal: (name) => {
      for (const { signal } of servers) signal(name)
    },
    // The world ends its server when it closes; the servers themselves end with the fleet.
    kill: async () => ({ code: null, signal: null })
  }
  world.server = front
  for (let i = 0; i < count; i++) await launch()
  return {
    world,
    data,
    servers,
    balancer,
    front,
    launch,
    kill,
    close: async () => {
      for (const server of [...servers]) await kill(server)
      await world.close()
      await balancer.stop()
      await data.close()
    }
  }
}
