/** Logs to fold: those that are kept as examples, and any that a run could have written. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as Envelope from "../../../src/domain/Envelope.js"
import * as RunState from "../../../src/domain/RunState.js"
import * as Snapshot from "../../../src/domain/Snapshot.js"

export type Log = ReadonlyArray<Envelope.Envelope>

const directory = join(__dirname, "../../golden")

/** The logs of the standard stories, by name. */
export const golden: ReadonlyArray<readonly [name: string, log: Log]> = readdirSync(directory)
  .filter((file) => file.endsWith(".jsonl"))
  .map((file) => [
    file.replace(".jsonl", ""),
    readFileSync(join(directory, file), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => Envelope.decodeSync(JSON.parse(line)))
  ])

/** The run as it stood at `seq`, by its log. */
export const stateOf = (log: Log, seq: number): RunState.RunState =>
  RunState.reduceAll(RunState.empty(log[0]?.runId ?? ""), log.slice(0, seq))

/** As the server does it, which has no more of a run than its snapshot. */
export const restored = (run: RunState.RunState): RunState.RunState =>
  run.seq === 0 ? run : RunState.ofSnapshot(Snapshot.of(run))
