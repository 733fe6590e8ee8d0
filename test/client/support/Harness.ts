/** A client over a server in memory, with a clock that stands still until it is moved. */

import type { Phase } from "../../../src/client/ClientState.js"
import { type Client, type ClientOptions, makeClient } from "../../../src/client/index.js"
import { FakeServer } from "./FakeServer.js"

export class FakeClock {
  now = 0
  private readonly waiting = new Set<{ readonly at: number; readonly callback: () => void }>()

  readonly timer = (callback: () => void, milliseconds: number): (() => void) => {
    const entry = { at: this.now + milliseconds, callback }
    this.waiting.add(entry)
    return () => void this.waiting.delete(entry)
  }

  get pending(): number {
    return this.waiting.size
  }

  /** Moves the clock, and lets what comes of each timer happen before the next. */
  async advance(milliseconds: number): Promise<void> {
    await settle()
    const until = this.now + milliseconds
    for (;;) {
      const [next] = [...this.waiting].filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)
      if (next === undefined) break
      this.waiting.delete(next)
      this.now = Math.max(this.now, next.at)
      next.callback()
      await settle()
    }
    this.now = until
  }
}

/** Lets everything happen that waits for nothing but its turn. */
export const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 8; turn++) await new Promise((resolve) => setImmediate(resolve))
}

export const memoryStorage = () => {
  const values = new Map<string, string>()
  return {
    values,
    getItem: (key: string) => values.get(key) ?? null,
    setItem: (key: string, value: string) => void values.set(key, value),
    removeItem: (key: string) => void values.delete(key)
  }
}

export interface Harness {
  readonly server: FakeServer
  readonly clock: FakeClock
  readonly client: Client
  readonly storage: ReturnType<typeof memoryStorage>
  /** The phases that were shown, without repeats. */
  readonly phases: Array<Phase>
  readonly wake: () => void
  readonly make: (options?: ClientOptions) => Client
}

export const harness = (options: ClientOptions = {}): Harness => {
  const server = new FakeServer()
  const clock = new FakeClock()
  const storage = memoryStorage()
  const wakes = new Set<() => void>()
  const make = (more: ClientOptions = {}) =>
    makeClient({
      baseUrl: "http://server",
      fetch: server.fetch,
      timer: clock.timer,
      storage,
      heartbeatMs: 15_000,
      random: () => 0.5,
      wakeups: (wake) => {
        wakes.add(wake)
        return () => void wakes.delete(wake)
      },
      ...options,
      ...more
    })
  const client = make()
  const phases: Array<Phase> = [client.getSnapshot().phase]
  client.subscribe(() => {
    const { phase } = client.getSnapshot()
    if (phase !== phases.at(-1)) phases.push(phase)
  })
  return {
    server,
    clock,
    client,
    storage,
    phases,
    make,
    wake: () => {
      for (const wake of [...wakes]) wake()
    }
  }
}
