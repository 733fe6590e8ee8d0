/**
 * This process in leases: so named that another process on the same host can see at once when it is gone.
 *
 * @since 0.1.0
 */
import { readFileSync, readlinkSync } from "node:fs"
import { hostname } from "node:os"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { IdGenerator } from "../domain/Ids.js"
import { Process } from "../engine/Process.js"

const read = (look: () => string): string | undefined => {
  try {
    return look().trim()
  } catch {
    return undefined
  }
}

/** The boot of the machine, and the namespace in which process ids mean something: containers have their own. */
const place = (): string | undefined => {
  const boot = read(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8"))
  const namespace = read(() => readlinkSync("/proc/self/ns/pid"))
  return boot === undefined || namespace === undefined ? undefined : `${boot}/${namespace}`
}

/** When a process began, in ticks since the boot (field 22 of proc(5)'s stat), so that a reused id is told apart. */
const began = (pid: number): string | undefined => {
  const stat = read(() => readFileSync(`/proc/${pid}/stat`, "utf8"))
  // The name, in parentheses, may hold anything; what follows it is fields of fixed meaning.
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19]
}

const exists = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return !(error instanceof Error && "code" in error && error.code === "ESRCH")
  }
}

const gone = (here: string, owner: string): boolean => {
  const [where, pid, start] = owner.split(" ")
  const id = Number(pid)
  if (where !== here || !Number.isInteger(id) || id <= 0) return false
  if (!exists(id)) return true
  const now = began(id)
  return now !== undefined && start !== "" && now !== start
}

const turn = Effect.async<void>((resume) => {
  const waiting = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(waiting))
})

/**
 * Names the process by the boot of its machine, its id and its start time, and recognises owners on this machine that
 * do not live any more. Where the system does not tell these things, leases of dead processes run out by time.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Process, never, IdGenerator> = Layer.effect(
  Process,
  Effect.gen(function* () {
    const ids = yield* IdGenerator
    const nonce = yield* ids.key
    const here = place() ?? `host/${hostname()}`
    return {
      owner: `${here} ${process.pid} ${began(process.pid) ?? ""} ${nonce}`,
      isGone: (owner) => Effect.sync(() => gone(here, owner)),
      turn
    }
  })
)
