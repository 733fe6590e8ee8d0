/** What a run is to produce, and the scripted source of it that all subjects share. */

/**
 * - `perSecond`: deltas of one run; 0 = one `burst` in every turn of the event loop
 * - `burst`: how many deltas come at once when there is no pace
 * - `upstream`: read them from a chat-completions server at this address instead
 */
export interface Plan {
  readonly deltas: number
  readonly perSecond: number
  readonly burst: number
  readonly upstream?: string | undefined
}

/** How a viewer asks for a run. */
export interface View {
  readonly runId: string
  readonly path: string
  readonly method?: "GET" | "POST" | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: string | undefined
}

/** A log with many events, and how to see its end alone. */
export interface History {
  readonly all: View
  readonly tail: View
}

/** What the parent may ask of a subject. All of it runs in the subject's process. */
export interface Subject {
  readonly port: number
  readonly start: (plan: Plan, runs: number) => Promise<ReadonlyArray<View>>
  /** A finished log of so many events, and a view of its last hundred. */
  readonly history?: ((events: number) => Promise<History>) | undefined
  /** Bytes on disk, all of it written back. */
  readonly disk?: (() => number) | undefined
  /** Reads so many answers of the upstream to their end and does nothing with them. */
  readonly read?: ((plan: Plan, runs: number) => Promise<void>) | undefined
}

/** Deltas of 20 characters. The first one marks a delta for whoever counts them. */
export const mark = 0x7e
const texts = Array.from({ length: 1000 }, (_, index) => `~${String(index).padStart(18, "tide over sand ")} `)
export const deltaText = (index: number): string => texts[index % texts.length] ?? ""

/** Milliseconds of a clock that all processes of a machine share. */
export const clock = (): number => Number(process.hrtime.bigint() / 1000n) / 1000

let open: (at: number) => void
let gate = new Promise<number>((resolve) => {
  open = resolve
})
let startedAt: number | undefined

/** Lets every source begin now. */
export const go = (): number => {
  startedAt = clock()
  open(startedAt)
  return startedAt
}

/** Makes the sources that are created from now on wait again. */
export const hold = (): void => {
  startedAt = undefined
  gate = new Promise((resolve) => {
    open = resolve
  })
}

/** How many sources were asked for their first delta. */
export const asked = { count: 0 }

/** A scripted model: gives what is due, when it is asked for more. */
export class Source {
  private index = 0
  private first = true
  private at = 0

  constructor(private readonly plan: Plan) {}

  /** Calls back with the next deltas, or without any at the end. The answer stops the waiting. */
  pull(next: (deltas: ReadonlyArray<string> | undefined) => void): () => void {
    let live = true
    let timer: NodeJS.Timeout | NodeJS.Immediate | undefined
    const { burst, deltas, perSecond } = this.plan
    const take = (count: number): void => {
      if (!live) return
      const out: Array<string> = []
      for (const end = Math.min(deltas, this.index + count); this.index < end; this.index++) {
        out.push(deltaText(this.index))
      }
      next(out)
    }
    const wait = (): void => {
      if (!live) return
      if (this.index >= deltas) {
        next(undefined)
        return
      }
      if (perSecond === 0) {
        timer = setImmediate(() => take(burst))
        return
      }
      const every = 1000 / perSecond
      const due = this.at + this.index * every
      timer = setTimeout(
        () => take(Math.max(1, Math.floor((clock() - this.at) / every) + 1 - this.index)),
        due - clock()
      )
    }
    if (this.first) {
      this.first = false
      asked.count += 1
      void (startedAt === undefined ? gate : Promise.resolve(startedAt)).then((at) => {
        this.at = at
        wait()
      })
    } else {
      wait()
    }
    return () => {
      live = false
      clearTimeout(timer as NodeJS.Timeout)
      clearImmediate(timer as NodeJS.Immediate)
    }
  }
}
