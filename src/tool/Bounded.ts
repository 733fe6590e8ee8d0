/**
 * Work that may never end and can not be looked into beforehand, such as matching a pattern that somebody else wrote.
 *
 * @since 0.1.0
 */
import * as Vm from "node:vm"

/** As long may it take on the clock, however little of a processor there was. */
const maxMs = 30_000

const realm = Vm.createContext({ work: undefined })
const script = new Vm.Script("work()")

/** What the process has used of its processors, in milliseconds. */
const usedMs = (): number => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1000
}

const isTimeout = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "code" in error && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT"

/**
 * Does something synchronous, and throws when it has taken `boundMs` milliseconds; what runs in another realm can be
 * stopped there. The time that is meant is a processor's: where a busy machine gave the process little of it, the work
 * is begun again with twice the time on the clock, so it must be such that may be begun again.
 *
 * @since 0.1.0
 * @category running
 */
export const bounded = <A>(work: () => A, boundMs: number): A => {
  for (let timeout = boundMs; ; timeout *= 2) {
    let result: { readonly value: A } | undefined
    realm.work = () => {
      result = { value: work() }
    }
    const used = usedMs()
    try {
      script.runInContext(realm, { timeout })
    } catch (error) {
      if (!isTimeout(error)) throw error
      if (usedMs() - used < boundMs / 2 && timeout < maxMs) continue
      throw new Error("it takes too long")
    } finally {
      realm.work = undefined
    }
    if (result !== undefined) return result.value
  }
}
