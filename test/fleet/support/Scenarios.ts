/**
 * The end-to-end suites of one server, over several servers on one database behind a proxy. Left out are `logs`, which
 * damages the database's file, and `volume`, which measures that file. The limits of `test/limits` are counted inside the
 * test's own process; those that hold for all servers together are in `test/postgres/store.test.ts`.
 */
import { afterAll } from "vitest"
import * as Server from "../../e2e/support/Server.js"
import { patience } from "../../e2e/support/Waiting.js"
import * as World from "../../e2e/support/World.js"
import * as Balancer from "./Balancer.js"
import type { Data } from "./Data.js"

const count = 3

/** Puts several servers in the place of the one of every world that is started from now on in this file. */
export const overFleet = (open: () => Promise<Data>): void => {
  const opened = new Map<string, Promise<Data>>()
  const dataOf = (path: string): Promise<Data> => {
    const found = opened.get(path) ?? open()
    opened.set(path, found)
    return found
  }
  afterAll(async () => {
    for (const data of opened.values()) await (await data).close()
  })

  // Three servers and a database have to do with the processors of one.
  patience.ms = 50_000
  World.serving.inFile = false
  World.serving.start = async (config, path, options, how) => {
    const { address } = await dataOf(path)
    const servers: Array<Server.Server> = []
    for (let i = 0; i < count; i++) servers.push(await Server.start(config, address, options, how))
    const balancer = await Balancer.start(() => servers.map(({ url }) => url))
    return {
      url: balancer.url,
      pid: servers[0]?.pid ?? -1,
      output: () => servers.map(({ output }) => output()).join("\n"),
      exited: Promise.all(servers.map(({ exited }) => exited)).then(([first]) => first ?? { code: null, signal: null }),
      signal: (signal) => {
        for (const server of servers) server.signal(signal)
      },
      stop: async () => {
        // At once: what one leaves behind the next one would take over.
        await Promise.all(servers.map(({ stop }) => stop()))
        await balancer.stop()
      }
    }
  }
  World.serving.stored = async (path) => (await dataOf(path)).contents()
}
