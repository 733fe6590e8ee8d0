/**
 * The workspace of the sample: each user's own documents and memories, and the product's documentation, which
 * everybody may read and nobody may change.
 *
 * Writes are not done here but handed on as `within`, to happen inside the transaction that records them. Each act is
 * remembered under its key in the same transaction, so whether it happened is always known exactly.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Json from "../Json.js"
import { type Committed, ToolConflict } from "../Tool.js"
import * as Search from "./Search.js"

/**
 * A document. `contentHash` is the SHA-256 of its text in hex; `updatedAt` epoch milliseconds, 0 for the product's
 * own.
 *
 * @since 0.1.0
 * @category models
 */
export interface Document {
  readonly id: string
  readonly title: string
  readonly text: string
  readonly version: number
  readonly contentHash: string
  readonly readOnly: boolean
  readonly updatedAt: number
}

/**
 * A document without its text.
 *
 * @since 0.1.0
 * @category models
 */
export type DocumentSummary = Omit<Document, "text">

/**
 * A document that was found, and the part of it that says why.
 *
 * @since 0.1.0
 * @category models
 */
export interface Hit {
  readonly id: string
  readonly title: string
  readonly readOnly: boolean
  readonly excerpt: string
}

/**
 * Something that a user wants remembered.
 *
 * @since 0.1.0
 * @category models
 */
export interface Memory {
  readonly id: string
  readonly text: string
  readonly createdAt: number
}

/**
 * Whose act this is, and its key: the same for every try of the same act.
 *
 * @since 0.1.0
 * @category models
 */
export interface Act {
  readonly user: string
  readonly key: string
}

/**
 * How much a user may have of each. A document is as long as `DocumentTools.maxTextLength` at most.
 *
 * @since 0.1.0
 * @category models
 */
export interface Bounds {
  readonly maxDocuments: number
  readonly maxMemories: number
}

/**
 * What a store of documents changes in one transaction: the document or memory, and the record of the act with its
 * result. An act whose key is there already changes nothing. `most`: as many of the kind as the user may have, this one
 * included. A document is deleted at the version that it has, and updated to the one behind it.
 *
 * @since 0.1.0
 * @category models
 */
export type Change = Act & { readonly result: string; readonly at: number } & (
    | { readonly type: "create"; readonly document: Document; readonly most: number }
    | { readonly type: "update"; readonly document: Document }
    | { readonly type: "delete"; readonly id: string; readonly version: number }
    | { readonly type: "remember"; readonly memory: Memory; readonly most: number }
    | { readonly type: "forget"; readonly id: string }
  )

/**
 * So many records of acts are kept of a user, the newest: more than can be under way at a time.
 *
 * @since 0.1.0
 * @category constants
 */
export const keptActs = 10_000

/**
 * Why a change was refused.
 *
 * @since 0.1.0
 * @category errors
 */
export const conflicts = {
  changed: new ToolConflict({ message: "The document has changed since." }),
  forgotten: new ToolConflict({ message: "This is no longer remembered." }),
  full: new ToolConflict({ message: "There are as many as there may be by now." })
}

/**
 * What a store of documents must do.
 *
 * - `visible`: the user's own and the product's documents
 * - `candidates`: those among them that may hold a term; more than that does no harm
 * - `counts`: how many of each are the user's own
 * - `write`: refused with `ToolConflict` when the document to change is not at the version before, when the memory to
 *   forget is not there, and when there are as many as the user may have. Forgets acts beyond `keptActs`
 *
 * @since 0.1.0
 * @category models
 */
export interface Driver {
  readonly visible: (user: string) => Effect.Effect<ReadonlyArray<Document>>
  readonly find: (query: { readonly user: string; readonly id: string }) => Effect.Effect<Option.Option<Document>>
  readonly candidates: (query: {
    readonly user: string
    readonly terms: ReadonlyArray<string>
  }) => Effect.Effect<ReadonlyArray<Document>>
  readonly memories: (user: string) => Effect.Effect<ReadonlyArray<Memory>>
  readonly counts: (user: string) => Effect.Effect<{ readonly documents: number; readonly memories: number }>
  readonly applied: (act: Act) => Effect.Effect<Option.Option<string>>
  readonly write: (change: Change) => Effect.Effect<void, ToolConflict>
}

/**
 * The workspace. Every operation sees what its user may see and nothing else; what belongs to somebody else does not
 * exist.
 *
 * @since 0.1.0
 * @category services
 */
export class Documents extends Context.Tag("runlet/Documents")<
  Documents,
  {
    /** The user's own documents first, the newest first. */
    readonly list: (query: { readonly user: string }) => Effect.Effect<ReadonlyArray<DocumentSummary>>

    /** The best answers to a question, at most `limit`. */
    readonly search: (query: {
      readonly user: string
      readonly query: string
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<Hit>>

    readonly read: (query: { readonly user: string; readonly id: string }) => Effect.Effect<Option.Option<Document>>

    /** Title, version and content hash, to see whether a document is still the one it was. */
    readonly describe: (query: {
      readonly user: string
      readonly id: string
    }) => Effect.Effect<Option.Option<DocumentSummary>>

    /** What the user had remembered about a question, or all of it, the newest first, at most `limit`. */
    readonly recall: (query: {
      readonly user: string
      readonly query?: string | undefined
      readonly limit: number
    }) => Effect.Effect<ReadonlyArray<Memory>>

    /** The result of the act, if it has happened. */
    readonly applied: (act: Act) => Effect.Effect<Option.Option<unknown>>

    /** How many documents or memories the user may have, where it has as many. */
    readonly full: (query: {
      readonly user: string
      readonly of: "documents" | "memories"
    }) => Effect.Effect<Option.Option<number>>

    /** A new document; `within` conflicts when there are as many as there may be. */
    readonly create: (act: Act & { readonly title: string; readonly text: string }) => Effect.Effect<Committed>

    /** The new title and text of a document that stands at `version`; `within` conflicts when it no longer does. */
    readonly update: (
      act: Act & {
        readonly id: string
        readonly version: number
        readonly title: string
        readonly text: string
      }
    ) => Effect.Effect<Committed>

    /** Removes a document that stands at `version`; `within` conflicts when it no longer does. */
    readonly remove: (
      act: Act & { readonly id: string; readonly title: string; readonly version: number }
    ) => Effect.Effect<Committed>

    /** A new memory; `within` conflicts when there are as many as there may be. */
    readonly remember: (act: Act & { readonly text: string }) => Effect.Effect<Committed>

    /** Removes a memory; `within` conflicts when it is not there. */
    readonly forget: (act: Act & { readonly id: string }) => Effect.Effect<Committed>
  }
>() {}

const summary = ({ text: _, ...rest }: Document): DocumentSummary => rest

const nameOf = (prefix: string, { key, user }: Act): string =>
  `${prefix}_${Json.hash([prefix, user, key]).slice(0, 24)}`

/**
 * A user may have as much of each as there is room for.
 *
 * @since 0.1.0
 * @category constants
 */
export const unbounded: Bounds = { maxDocuments: Number.MAX_SAFE_INTEGER, maxMemories: Number.MAX_SAFE_INTEGER }

/**
 * The workspace over a store.
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromDriver = (driver: Driver, bounds: Bounds = unbounded): Context.Tag.Service<Documents> => {
  const commit = (change: (at: number) => Change): Effect.Effect<Committed> =>
    Effect.map(Clock.currentTimeMillis, (at) => {
      const made = change(at)
      return { result: JSON.parse(made.result), within: driver.write(made) }
    })

  const written = (
    act: Act,
    kind: { readonly type: "create"; readonly most: number } | { readonly type: "update" },
    document: Omit<Document, "contentHash" | "readOnly">
  ) => {
    const contentHash = Json.sha256(document.text)
    const { id, title, version } = document
    return commit((at) => ({
      user: act.user,
      key: act.key,
      ...kind,
      at,
      document: { ...document, contentHash, readOnly: false, updatedAt: at },
      result: JSON.stringify({ id, title, version, contentHash })
    }))
  }

  return {
    list: ({ user }) =>
      Effect.map(driver.visible(user), (documents) =>
        documents
          .map(summary)
          .sort((a, b) => b.updatedAt - a.updatedAt || (a.title < b.title ? -1 : a.title > b.title ? 1 : 0))
      ),
    search: ({ limit, query, user }) =>
      Effect.map(driver.candidates({ user, terms: Search.terms(query) }), (documents) => {
        const terms = Search.terms(query)
        return Search.rank(documents, terms)
          .slice(0, limit)
          .map(({ id, readOnly, text, title }) => ({ id, title, readOnly, excerpt: Search.excerpt(text, terms) }))
      }),
    read: driver.find,
    describe: (query) => Effect.map(driver.find(query), Option.map(summary)),
    recall: ({ limit, query, user }) =>
      Effect.map(driver.memories(user), (memories) => {
        const terms = query === undefined ? [] : Search.terms(query)
        const found =
          terms.length === 0
            ? memories
            : Search.rank(
                memories.map((memory) => ({ ...memory, title: "" })),
                terms
              ).map(({ createdAt, id, text }) => ({ id, text, createdAt }))
        return found.slice(0, limit)
      }),
    applied: (act) =>
      Effect.map(
        driver.applied(act),
        Option.map((result): unknown => JSON.parse(result))
      ),
    full: ({ of, user }) =>
      Effect.map(driver.counts(user), (counts) => {
        const most = of === "documents" ? bounds.maxDocuments : bounds.maxMemories
        return counts[of] < most ? Option.none() : Option.some(most)
      }),
    create: ({ text, title, ...act }) =>
      written(
        act,
        { type: "create", most: bounds.maxDocuments },
        { id: nameOf("doc", act), title, text, version: 1, updatedAt: 0 }
      ),
    update: ({ id, text, title, version, ...act }) =>
      written(act, { type: "update" }, { id, title, text, version: version + 1, updatedAt: 0 }),
    remove: ({ id, title, version, ...act }) =>
      commit((at) => ({
        ...act,
        type: "delete",
        at,
        id,
        version,
        result: JSON.stringify({ id, title, deleted: true })
      })),
    remember: ({ text, ...act }) => {
      const id = nameOf("mem", act)
      return commit((at) => ({
        ...act,
        type: "remember",
        most: bounds.maxMemories,
        at,
        memory: { id, text, createdAt: at },
        result: JSON.stringify({ id, remembered: text })
      }))
    },
    forget: ({ id, ...act }) =>
      commit((at) => ({ ...act, type: "forget", at, id, result: JSON.stringify({ id, forgotten: true }) }))
  }
}
