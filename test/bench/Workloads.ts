/** The workloads. Each measures one subject once, in a fresh process. */
import { mkdtempSync, rmSync } from "node:fs"
import * as Http from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Child } from "./Child.js"
import { clock, type Plan, type View } from "./Plan.js"
import * as Viewer from "./Viewer.js"

export type Name = "a" | "a-get" | "b" | "c" | "d" | "d-burst" | "e" | "f" | "g" | "h" | "i"
export type Metrics = Readonly<Record<string, number>>

export interface Workload {
  readonly title: string
  /** Metrics whose ratio to the baseline is told; `more`: the greater the better. */
  readonly compared: ReadonlyArray<{ readonly metric: string; readonly target?: number; readonly more?: boolean }>
  readonly subjects: ReadonlyArray<string>
  readonly measure: (subject: string, short: boolean) => Promise<Metrics>
}

export const quantile = (values: ReadonlyArray<number>, q: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN
}

const within = <A>(ms: number, what: string, promise: Promise<A>): Promise<A> => {
  const controller = new AbortController()
  const late = sleep(ms, undefined, { signal: controller.signal }).then(
    () => Promise.reject(new Error(`${what} took longer than ${ms} ms`)),
    () => new Promise<never>(() => undefined)
  )
  return Promise.race([promise, late]).finally(() => controller.abort())
}

const using = async <A>(child: Promise<Child>, use: (child: Child) => Promise<A>, ms = 120_000): Promise<A> => {
  const started = await child
  try {
    return await within(ms, "The workload", use(started))
  } finally {
    await started.stop(process.env.BENCH_PROFILE === undefined ? "SIGKILL" : "SIGTERM")
  }
}

/** Starts a subject whose files go away with it. */
const subject = (name: string, env?: NodeJS.ProcessEnv): Promise<Child> => {
  const dir = mkdtempSync(join(tmpdir(), "bench-"))
  const child = Child.start("subject", [name], { TMPDIR: dir, ...env })
  child.then(({ gone }) => gone).finally(() => rmSync(dir, { recursive: true, force: true }))
  return child
}

/** Opens the viewers and waits until they are served, so that nothing is measured but deliveries. */
const attachAll = async (viewers: ReadonlyArray<Viewer.Viewer>): Promise<void> => {
  // A transport that sends no header before its first event can not be waited for.
  await Promise.race([Promise.all(viewers.map((viewer) => viewer.attached)), sleep(10_000)])
  await sleep(200)
}

interface Delivery {
  readonly seconds: number
  readonly cpu: number
  readonly latencies: ReadonlyArray<number>
}

/** Lets a subject's code be compiled before anything is measured, by something of the kind that is measured. */
const warmUp = async (child: Child, plan: Plan = { deltas: 200, perSecond: 0, burst: 1 }, runs = 20): Promise<void> => {
  const views = await child.start(plan, runs)
  const viewers = views.map((view) => Viewer.open(child.port, view, plan.deltas))
  await child.go()
  await Promise.all(viewers.map((viewer) => viewer.done))
  for (const viewer of viewers) viewer.close()
  await child.hold()
}

/** A plan on some runs with some viewers each: from the first delta to the last delivery. */
const deliver = async (
  child: Child,
  plan: Plan,
  runs: number,
  viewersPerRun: number,
  onGo: () => void = () => undefined
): Promise<Delivery> => {
  const views = await child.start(plan, runs)
  const latencies: Array<number> = []
  const every = plan.perSecond === 0 ? undefined : 1000 / plan.perSecond
  let began = 0
  const viewers: Array<Viewer.Viewer> = []
  for (const view of views) {
    for (let i = 0; i < viewersPerRun; i++) {
      const onDelta =
        every === undefined ? undefined : (index: number, at: number) => latencies.push(at - began - index * every)
      viewers.push(Viewer.open(child.port, view, plan.deltas, onDelta))
    }
  }
  await attachAll(viewers)
  const cpu = child.cpu
  began = await child.go()
  onGo()
  await Promise.all(viewers.map((viewer) => viewer.done))
  const seconds = (clock() - began) / 1000
  const used = child.cpu - cpu
  for (const viewer of viewers) viewer.close()
  return { seconds, cpu: used, latencies }
}

const request = (port: number, method: string, path: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const one = Http.request({ port, host: "127.0.0.1", method, path, agent: false }, (response) => {
      response.resume()
      response.on("end", () => resolve(response.statusCode ?? 0))
    })
    one.on("error", reject)
    one.end()
  })

const plain = ["plain-memory", "plain-full", "plain-normal"]
const stored = ["plain-full", "runlet"]

const saturated = (name: string, short: boolean): Promise<Metrics> =>
  using(subject(name), async (child) => {
    await warmUp(child)
    const [runs, deltas] = short ? [100, 200] : [200, 500]
    const { cpu, seconds } = await deliver(child, { deltas, perSecond: 0, burst: 1 }, runs, 1)
    const all = runs * deltas
    return { "CPU us/delta": (cpu / all) * 1e6, "deltas/s": all / seconds }
  })

/** Under full load, how long an unrelated request waits: the snapshot of a run that has ended. */
const unrelated = (name: string, short: boolean): Promise<Metrics> =>
  using(subject(name), async (child) => {
    await warmUp(child)
    const [other] = await child.start({ deltas: 1, perSecond: 0, burst: 1 }, 1)
    await child.go()
    await sleep(500)
    await child.hold()
    const waits: Array<number> = []
    let over = false
    const ask = async (): Promise<void> => {
      while (!over) {
        const at = clock()
        await request(child.port, "GET", `/runs/${other?.runId}`)
        waits.push(clock() - at)
        await sleep(20)
      }
    }
    const [runs, deltas] = short ? [100, 400] : [200, 1000]
    let asking: Promise<void> | undefined
    await deliver(child, { deltas, perSecond: 0, burst: 1 }, runs, 1, () => {
      asking = ask()
    })
    over = true
    await asking
    return { "p50 ms": quantile(waits, 0.5), "p99 ms": quantile(waits, 0.99), requests: waits.length }
  })

const paced = (name: string, short: boolean): Promise<Metrics> =>
  using(subject(name), async (child) => {
    const [runs, perSecond, seconds] = short ? [100, 20, 5] : [200, 50, 10]
    const deltas = perSecond * seconds
    await warmUp(child, { deltas: perSecond * 2, perSecond, burst: 1 }, runs)
    const result = await deliver(child, { deltas, perSecond, burst: 1 }, runs, 1)
    return {
      "CPU us/delta": (result.cpu / (runs * deltas)) * 1e6,
      "p50 ms": quantile(result.latencies, 0.5),
      "p99 ms": quantile(result.latencies, 0.99),
      "took s": result.seconds,
      "planned s": seconds
    }
  })

const replay = (name: string, short: boolean): Promise<Metrics> =>
  using(subject(name), async (child) => {
    const events = short ? 20_000 : 50_000
    const history = await child.history(events)
    if (history === undefined) throw new Error("no history")
    const read = async (view: View, wanted: number) => {
      const cpu = child.cpu
      const began = clock()
      let first = 0
      const viewer = Viewer.open(child.port, view, wanted, (index, at) => {
        if (index === 0) first = at - began
      })
      await viewer.done
      const ms = clock() - began
      viewer.close()
      return { ms, first, cpu: child.cpu - cpu }
    }
    await read(history.tail, 90)
    const times = 5
    const all: Array<Awaited<ReturnType<typeof read>>> = []
    const tails: Array<number> = []
    for (let i = 0; i < times; i++) {
      all.push(await read(history.all, events))
      tails.push((await read(history.tail, 90)).first)
    }
    return {
      "all ms": quantile(
        all.map(({ ms }) => ms),
        0.5
      ),
      "CPU us/delta": (all.reduce((sum, { cpu }) => sum + cpu, 0) / times / events) * 1e6,
      "first byte at the tail ms": quantile(tails, 0.5)
    }
  })

const fanOut =
  (burst: boolean) =>
  (name: string, short: boolean): Promise<Metrics> =>
    using(subject(name), async (child) => {
      await warmUp(child)
      const [viewers, deltas] = short ? [200, 100] : [500, 200]
      const { cpu, latencies, seconds } = await deliver(
        child,
        { deltas, perSecond: burst ? 0 : 50, burst: 1 },
        1,
        viewers
      )
      return {
        "CPU us/delivery": (cpu / (viewers * deltas)) * 1e6,
        "deliveries/s": (viewers * deltas) / seconds,
        ...(!burst && { "p99 ms": quantile(latencies, 0.99) })
      }
    })

const idle = (name: string, short: boolean): Promise<Metrics> =>
  using(subject(name), async (child) => {
    const count = short ? 300 : 1000
    const [view] = await child.start({ deltas: 1, perSecond: 1, burst: 1 }, 1)
    if (view === undefined) throw new Error("no run")
    const open = async (viewersOpened: number) => {
      const viewers = Array.from({ length: viewersOpened }, () => Viewer.open(child.port, view, 1))
      await attachAll(viewers)
      return viewers
    }
    // What the first few load and compile is no price of a viewer; a larger crowd would leave pages behind for the next.
    for (const viewer of await open(20)) viewer.close()
    await sleep(500)
    const before = await child.memory()
    const viewers = await open(count)
    await sleep(500)
    const after = await child.memory()
    for (const viewer of viewers) viewer.close()
    return { "MB per 1000": (after - before) / count / 1000 }
  })

const withUpstream = <A>(use: (upstream: Child, url: string) => Promise<A>): Promise<A> =>
  using(Child.start("upstream"), (upstream) => use(upstream, `http://127.0.0.1:${upstream.port}/v1`))

const nextEvent = (upstream: Child, name: string): Promise<number> =>
  new Promise((resolve) => {
    const listen = (message: { event?: string; at?: number }): void => {
      if (message.event !== name) return
      upstream.process.off("message", listen)
      resolve(message.at ?? 0)
    }
    upstream.process.on("message", listen)
  })

const cancel = (name: string, short: boolean): Promise<Metrics> =>
  withUpstream((upstream, url) =>
    using(subject(name, { BENCH_UPSTREAM: url }), async (child) => {
      await child.go()
      const times: Array<number> = []
      for (let i = 0; i < (short ? 5 : 20); i++) {
        const [view] = await child.start({ deltas: 10_000, perSecond: 50, burst: 1, upstream: url }, 1)
        if (view === undefined) throw new Error("no run")
        const viewer = Viewer.open(child.port, view, 5)
        await viewer.done
        const closed = nextEvent(upstream, "closed")
        const began = clock()
        await request(child.port, "POST", `/runs/${view.runId}/cancel`)
        times.push((await within(5000, "Closing the upstream", closed)) - began)
        viewer.close()
      }
      return { "median ms": quantile(times, 0.5), "max ms": Math.max(...times) }
    })
  )

const bytes = (name: string, short: boolean): Promise<Metrics> =>
  using(subject(name), async (child) => {
    const empty = (await child.disk()) ?? 0
    // Slow enough that nothing is joined: what one delta costs as an event of its own.
    const [runs, deltas] = short ? [20, 100] : [50, 200]
    await deliver(child, { deltas, perSecond: 20, burst: 1 }, runs, 1)
    return { "bytes/delta": (((await child.disk()) ?? 0) - empty) / (runs * deltas) }
  })

const recovery = async (_: string, short: boolean): Promise<Metrics> => {
  const runs = short ? 100 : 500
  const dir = mkdtempSync(join(tmpdir(), "bench-recovery-"))
  const file = join(dir, "runlet.db")
  await using(subject("runlet", { BENCH_FILE: file }), async (child) => {
    const views = await child.start({ deltas: 100_000, perSecond: 1, burst: 1 }, runs)
    await child.go()
    const viewers = views.map((view) => Viewer.open(child.port, view, 1))
    await Promise.all(viewers.map((viewer) => viewer.done))
    for (const viewer of viewers) viewer.close()
  })
  const began = clock()
  return using(subject("runlet", { BENCH_FILE: file, BENCH_OPEN: "1" }), async (child) => {
    child.process.once("exit", () => rmSync(dir, { recursive: true, force: true }))
    const ready = clock() - began
    while ((await child.asked()) < runs) await sleep(20)
    return { "all continue after ms": clock() - began, "listening after ms": ready, runs, "CPU s": child.cpu }
  })
}

const reading = (name: string, short: boolean): Promise<Metrics> =>
  withUpstream((upstream, url) =>
    using(subject(name, { BENCH_UPSTREAM: url }), async (child) => {
      await child.go()
      const firsts: Array<number> = []
      for (let i = 0; i < (short ? 5 : 30); i++) {
        const sent = nextEvent(upstream, "first")
        const [view] = await child.start({ deltas: 2, perSecond: 50, burst: 1, upstream: url }, 1)
        if (view === undefined) throw new Error("no run")
        let arrived = 0
        const viewer = Viewer.open(child.port, view, 2, (index, at) => {
          if (index === 0) arrived = at
        })
        await viewer.done
        viewer.close()
        firsts.push(arrived - (await sent))
      }
      const [runs, deltas] = short ? [10, 100] : [20, 500]
      const cpu = child.cpu
      const views = await child.start({ deltas, perSecond: 50, burst: 1, upstream: url }, runs)
      const viewers = views.map((view) => Viewer.open(child.port, view, deltas))
      await Promise.all(viewers.map((viewer) => viewer.done))
      const used = child.cpu - cpu
      for (const viewer of viewers) viewer.close()
      // What a server does when nobody asks for anything is no part of reading.
      const idleMs = 3000
      const resting = child.cpu
      await sleep(idleMs)
      const idle = (child.cpu - resting) / idleMs
      const before = child.cpu
      const since = clock()
      await child.read({ deltas, perSecond: 50, burst: 1, upstream: url }, runs)
      const alone = child.cpu - before - idle * (clock() - since)
      return {
        "CPU us/delta": (used / (runs * deltas)) * 1e6,
        "reading alone, CPU us/delta": (alone / (runs * deltas)) * 1e6,
        "idle, CPU ms/s": idle * 1e6,
        "first token, p50 ms": quantile(firsts, 0.5),
        "first token, p99 ms": quantile(firsts, 0.99)
      }
    })
  )

export const workloads: Readonly<Record<Name, Workload>> = {
  a: {
    title: "saturated: 200 runs × 500 deltas, one viewer each",
    compared: [
      { metric: "CPU us/delta", target: 1.5 },
      { metric: "deltas/s", target: 0.8, more: true }
    ],
    subjects: [...plain, "durable-streams", "mcp", "runlet"],
    measure: saturated
  },
  "a-get": {
    title: "an unrelated GET of a run during (a)",
    compared: [{ metric: "p99 ms" }],
    subjects: ["runlet"],
    measure: unrelated
  },
  b: {
    title: "paced: 200 runs × 50 deltas/s × 10 s, latency from the time a delta was due",
    compared: [{ metric: "CPU us/delta" }, { metric: "p99 ms", target: 2 }],
    subjects: [...plain, "durable-streams", "mcp", "runlet"],
    measure: paced
  },
  c: {
    title: "replay of a finished log of 50,000 events",
    compared: [{ metric: "all ms", target: 2 }, { metric: "CPU us/delta" }, { metric: "first byte at the tail ms" }],
    subjects: [...plain, "durable-streams", "runlet"],
    measure: replay
  },
  d: {
    title: "fan-out: one run × 500 viewers × 200 deltas, 50 deltas/s",
    compared: [{ metric: "CPU us/delivery", target: 2 }],
    subjects: ["plain-memory", "plain-full", "durable-streams", "runlet"],
    measure: fanOut(false)
  },
  "d-burst": {
    title: "fan-out: one run × 500 viewers × 200 deltas, as a burst",
    compared: [{ metric: "CPU us/delivery", target: 2 }],
    subjects: ["plain-memory", "plain-full", "durable-streams", "runlet"],
    measure: fanOut(true)
  },
  e: {
    title: "idle viewers, resident memory",
    compared: [{ metric: "MB per 1000" }],
    subjects: ["plain-memory", "plain-full", "durable-streams", "runlet"],
    measure: idle
  },
  f: {
    title: "cancel → the upstream's socket is closed",
    compared: [{ metric: "median ms" }],
    subjects: stored,
    measure: cancel
  },
  g: {
    title: "bytes on disk per delta, none of them joined",
    compared: [{ metric: "bytes/delta", target: 1.3 }],
    subjects: stored,
    measure: bytes
  },
  h: {
    title: "recovery: 500 runs interrupted by kill -9, from the start of the next process until all of them continue",
    compared: [],
    subjects: ["runlet"],
    measure: recovery
  },
  i: {
    title: "a real upstream socket: 20 runs × 50 deltas/s, and the time from its first chunk to the viewer",
    compared: [
      { metric: "CPU us/delta" },
      { metric: "reading alone, CPU us/delta", target: 1.3 },
      { metric: "first token, p50 ms" }
    ],
    subjects: stored,
    measure: reading
  }
}
