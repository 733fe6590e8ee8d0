/**
 * Documents in memory, for tests and for servers that forget.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { ToolConflict } from "../Tool.js"
import {
  type Act,
  type Bounds,
  type Change,
  conflicts,
  type Document,
  Documents,
  type Driver,
  fromDriver,
  keptActs,
  type Memory
} from "./Documents.js"
import * as Seed from "./seed/Seed.js"

interface Owned {
  readonly user: string | undefined
  readonly document: Document
}

/** One synchronous step each, so that nobody sees half a change. */
const makeDriver = (seed: ReadonlyArray<Document>): Driver => {
  const documents = new Map<string, Owned>(seed.map((document) => [document.id, { user: undefined, document }]))
  const memories = new Map<string, Array<Memory>>()
  const acts = new Map<string, string>()
  const beginningOf = (user: string) => `${JSON.stringify(user)} `
  const nameOf = ({ key, user }: Act) => beginningOf(user) + key
  const sees = (user: string, owned: Owned) => owned.user === undefined || owned.user === user
  const visible = (user: string) =>
    [...documents.values()].filter((owned) => sees(user, owned)).map(({ document }) => document)
  const memoriesOf = (user: string) => memories.get(user) ?? []
  const counts = (user: string) => ({
    documents: [...documents.values()].filter((owned) => owned.user === user).length,
    memories: memoriesOf(user).length
  })

  /** What one change does, without the record of it. */
  const alter = (change: Change): ToolConflict | undefined => {
    const { user } = change
    const isAt = (id: string, version: number) => {
      const before = documents.get(id)
      return before?.user === user && before.document.version === version
    }
    switch (change.type) {
      case "create":
        if (counts(user).documents >= change.most) return conflicts.full
        documents.set(change.document.id, { user, document: change.document })
        return undefined
      case "update":
        if (!isAt(change.document.id, change.document.version - 1)) return conflicts.changed
        documents.set(change.document.id, { user, document: change.document })
        return undefined
      case "delete":
        if (!isAt(change.id, change.version)) return conflicts.changed
        documents.delete(change.id)
        return undefined
      case "remember":
        if (counts(user).memories >= change.most) return conflicts.full
        memories.set(user, [change.memory, ...memoriesOf(user)])
        return undefined
      case "forget": {
        const rest = memoriesOf(user).filter(({ id }) => id !== change.id)
        if (rest.length === memoriesOf(user).length) return conflicts.forgotten
        memories.set(user, rest)
        return undefined
      }
    }
  }

  const apply = (change: Change): ToolConflict | undefined => {
    const name = nameOf(change)
    if (acts.has(name)) {
      return undefined
    }
    const conflict = alter(change)
    if (conflict !== undefined) return conflict
    acts.set(name, change.result)
    const own = [...acts.keys()].filter((one) => one.startsWith(beginningOf(change.user)))
    for (const old of own.slice(0, Math.max(0, own.length - keptActs))) acts.delete(old)
    return undefined
  }

  return {
    visible: (user) => Effect.sync(() => visible(user)),
    find: ({ id, user }) =>
      Effect.sync(() => {
        const owned = documents.get(id)
        return owned !== undefined && sees(user, owned) ? Option.some(owned.document) : Option.none()
      }),
    candidates: ({ user }) => Effect.sync(() => visible(user)),
    memories: (user) => Effect.sync(() => memoriesOf(user)),
    counts: (user) => Effect.sync(() => counts(user)),
    applied: (act) => Effect.sync(() => Option.fromNullable(acts.get(nameOf(act)))),
    write: (change) =>
      Effect.suspend(() => {
        const conflict = apply(change)
        return conflict === undefined ? Effect.void : Effect.fail(conflict)
      })
  }
}

/**
 * A workspace in memory with the given documents for everybody.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerWith = (seed: ReadonlyArray<Document>, bounds?: Bounds): Layer.Layer<Documents> =>
  Layer.sync(Documents, () => fromDriver(makeDriver(seed), bounds))

/**
 * A workspace in memory with the product's documentation.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Documents> = layerWith(Seed.documents)
