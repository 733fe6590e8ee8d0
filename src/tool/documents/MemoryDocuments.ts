/**
 * Documents in memory, for tests and for servers that forget.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { ToolConflict } from "../Tool.js"
import { type Act, type Change, type Document, Documents, type Driver, fromDriver, type Memory } from "./Documents.js"
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
  const nameOf = ({ key, user }: Act) => JSON.stringify([user, key])
  const sees = (user: string, owned: Owned) => owned.user === undefined || owned.user === user
  const visible = (user: string) =>
    [...documents.values()].filter((owned) => sees(user, owned)).map(({ document }) => document)

  const apply = (change: Change): ToolConflict | undefined => {
    const name = nameOf(change)
    if (acts.has(name)) {
      return undefined
    }
    if (change.type === "remember") {
      memories.set(change.user, [change.memory, ...(memories.get(change.user) ?? [])])
    } else {
      const before = documents.get(change.document.id)
      if (
        change.type === "update" &&
        (before?.user !== change.user || before.document.version !== change.document.version - 1)
      ) {
        return new ToolConflict({ message: "The document has changed since." })
      }
      documents.set(change.document.id, { user: change.user, document: change.document })
    }
    acts.set(name, change.result)
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
    memories: (user) => Effect.sync(() => memories.get(user) ?? []),
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
export const layerWith = (seed: ReadonlyArray<Document>): Layer.Layer<Documents> =>
  Layer.sync(Documents, () => fromDriver(makeDriver(seed)))

/**
 * A workspace in memory with the product's documentation.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<Documents> = layerWith(Seed.documents)
