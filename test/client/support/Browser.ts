/** What the tabs of one browser have in common: locks and broadcast channels, in memory, by the rules of the platform. */

interface Holder {
  readonly taken: (error: unknown) => void
}

interface Waiting {
  readonly start: () => void
}

const stolen = () => new DOMException("The lock was stolen", "AbortError")

/** As much of a `LockManager` as exclusive locks need: a queue, giving up, and stealing. */
export class Locks {
  private readonly held = new Map<string, Holder>()
  private readonly queues = new Map<string, Array<Waiting>>()

  request(
    name: string,
    options: { readonly steal?: boolean; readonly signal?: AbortSignal },
    task: () => Promise<unknown>
  ): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const queue = this.queues.get(name) ?? []
      this.queues.set(name, queue)
      const waiting: Waiting = {
        start: () => {
          const holder: Holder = { taken: reject }
          this.held.set(name, holder)
          const release = () => {
            if (this.held.get(name) !== holder) return
            this.held.delete(name)
            queue.shift()?.start()
          }
          queueMicrotask(() => task().then(resolve, reject).finally(release))
        }
      }
      if (options.steal === true) {
        this.held.get(name)?.taken(stolen())
        waiting.start()
      } else if (this.held.has(name)) {
        queue.push(waiting)
        options.signal?.addEventListener("abort", () => {
          const place = queue.indexOf(waiting)
          if (place === -1) return
          queue.splice(place, 1)
          reject(options.signal?.reason)
        })
      } else waiting.start()
    })
  }
}

/** A `BroadcastChannel` class of its own: its channels hear only each other. */
export const channels = () => {
  const open = new Set<Channel>()
  class Channel {
    onmessage: ((event: { readonly data: unknown }) => void) | null = null
    constructor(readonly name: string) {
      open.add(this)
    }
    postMessage(value: unknown): void {
      if (!open.has(this)) throw new DOMException("The channel is closed", "InvalidStateError")
      const data: unknown = structuredClone(value)
      for (const other of open) {
        if (other !== this && other.name === this.name) {
          setImmediate(() => {
            if (open.has(other)) other.onmessage?.({ data })
          })
        }
      }
    }
    close(): void {
      open.delete(this)
    }
  }
  return { Channel, open }
}
