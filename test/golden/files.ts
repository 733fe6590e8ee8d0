import { readFileSync } from "node:fs"
import { join } from "node:path"

/** Where the log of a scenario is kept. */
export const fileOf = (name: string) => join(__dirname, `${name}.jsonl`)

/** The envelopes of a scenario, as they always were. */
export const golden = (name: string): ReadonlyArray<string> => readFileSync(fileOf(name), "utf8").trimEnd().split("\n")
