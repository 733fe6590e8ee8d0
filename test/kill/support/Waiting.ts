/** Small things that tests of processes share. */
import type { AgentEvent, EventOf } from "../../../src/domain/AgentEvent.js"
import * as RunStatus from "../../../src/domain/RunStatus.js"
import type { Viewer } from "./Viewer.js"
import { sleep, type Watched } from "./World.js"

/** Waits for something that the test can see by itself. */
export const until = async (what: string, condition: () => boolean, ms = 60_000): Promise<void> => {
  const end = Date.now() + ms
  while (!condition()) {
    if (Date.now() > end) throw new Error(`In ${ms} ms it did not come to pass: ${what}`)
    await sleep(5)
  }
}

export const eventsOf = <T extends AgentEvent["type"]>(viewer: Viewer, type: T): ReadonlyArray<EventOf<T>> =>
  viewer.envelopes.flatMap(({ event }) => (event.type === type ? [event as EventOf<T>] : []))

export const ended = ({ viewer }: Watched): boolean => RunStatus.isEnded(viewer.state.status)

export const waiting = ({ viewer }: Watched): boolean => viewer.state.status === "waiting_approval"

/** The newest request for a decision. */
export const requestOf = ({ viewer }: Watched): EventOf<"approval-request"> => {
  const found = eventsOf(viewer, "approval-request").at(-1)
  if (found === undefined) throw new Error("Nothing is asked")
  return found
}

export const median = (values: ReadonlyArray<number>): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
