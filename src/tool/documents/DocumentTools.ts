/**
 * The tools of the workspace: reading at once, writing after a person has seen what will change.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Metrics from "../../domain/Metrics.js"
import * as EffectTool from "../EffectTool.js"
import { type Probed, type Tool, ToolConflict, type ToolContext, ToolFailure } from "../Tool.js"
import * as Diff from "./Diff.js"
import { type Document, Documents } from "./Documents.js"

/**
 * How long a document may be, in characters, so that a person can be shown all of a change.
 *
 * @since 0.1.0
 * @category constants
 */
export const maxTextLength = 20_000

const Title = Schema.Trim.pipe(Schema.minLength(1), Schema.maxLength(200))
const Text = Schema.String.pipe(Schema.maxLength(maxTextLength))

const described = <A, I>(schema: Schema.Schema<A, I>, description: string) => schema.annotations({ description })

/** What a person is shown, and what a commit relies on: the version that the document has. */
const Preview = Schema.Struct({ version: Schema.Int })
const decodePreview = Schema.decodeUnknownOption(Preview)

const notFound = (id: string) =>
  new ToolFailure({ message: `There is no document ${JSON.stringify(id)}. Search for it, or list what there is.` })

/** A preview that would come to nothing is refused, so that nobody is asked about it. */
const room = (user: string, of: "documents" | "memories"): Effect.Effect<void, ToolFailure, Documents> =>
  Effect.gen(function* () {
    const documents = yield* Documents
    const most = yield* documents.full({ user, of })
    if (Option.isNone(most)) return
    const [limit, advice] =
      of === "documents"
        ? ["maxDocumentsPerUser", "Change one of them (document_update), or delete one first (document_delete)."]
        : ["maxMemoriesPerUser", "Forget something first (memory_forget)."]
    Metrics.limitReached(limit)
    return yield* new ToolFailure({
      message: `The user has ${most.value} ${of}, as many as one may have (limits.${limit}). ${advice}`
    })
  })

const noneOpen = new ToolFailure({ message: "No document is open; say the id of one." })

/** The act's own result, if it has happened; looked at before anything else. */
const before = <A, E, R>(
  { idempotencyKey, user }: ToolContext,
  act: Effect.Effect<A, E, R>
): Effect.Effect<A | { readonly result: unknown }, E, R | Documents> =>
  Effect.flatMap(Documents, (documents) =>
    Effect.flatMap(
      documents.applied({ user, key: idempotencyKey }),
      Option.match({
        onNone: (): Effect.Effect<A | { readonly result: unknown }, E, R> => act,
        onSome: (result) => Effect.succeed({ result })
      })
    )
  )

const probe = ({ idempotencyKey, user }: Omit<ToolContext, "progress">): Effect.Effect<Probed, never, Documents> =>
  Effect.flatMap(Documents, (documents) =>
    Effect.map(
      documents.applied({ user, key: idempotencyKey }),
      Option.match({
        onNone: (): Probed => ({ state: "absent" }),
        onSome: (result): Probed => ({ state: "applied", result })
      })
    )
  )

/** The document that a call names, or the one that the user has open. */
const target = (id: string | undefined, context: ToolContext): Effect.Effect<Document, ToolFailure, Documents> =>
  Effect.gen(function* () {
    const wanted = id ?? context.currentDocument?.id
    if (wanted === undefined) {
      return yield* noneOpen
    }
    const documents = yield* Documents
    const found = yield* documents.read({ user: context.user, id: wanted })
    return yield* Effect.mapError(found, () => notFound(wanted))
  })

const search = EffectTool.makeWith({
  name: "document_search",
  title: "Searching…",
  description:
    "Searches the user's documents and the product documentation. Answers the best matches with their ids and the part that matched. An empty query lists everything there is.",
  kind: "readonly",
  parameters: Schema.Struct({
    query: described(Schema.String.pipe(Schema.maxLength(500)), "Words or a question, in any language"),
    limit: Schema.optional(described(Schema.Int.pipe(Schema.between(1, 20)), "How many matches at most, 5 unless said"))
  }),
  execute: ({ limit = 5, query }, { user }) =>
    Effect.gen(function* () {
      const documents = yield* Documents
      if (query.trim() === "") {
        const all = yield* documents.list({ user })
        return { query, results: all.slice(0, limit).map(({ id, readOnly, title }) => ({ id, title, readOnly })) }
      }
      return { query, results: yield* documents.search({ user, query, limit }) }
    })
})

const maxRead = 12_000

const read = EffectTool.makeWith({
  name: "document_read",
  title: "Reading…",
  description:
    "Reads a document by its id. Without an id, the document that the user has open. Long ones come in parts: go on at nextOffset.",
  kind: "readonly",
  parameters: Schema.Struct({
    id: Schema.optional(described(Schema.String, "The id of the document, from document_search")),
    offset: Schema.optional(described(Schema.NonNegativeInt, "Where to begin, in characters"))
  }),
  execute: ({ id, offset = 0 }, context) =>
    Effect.map(target(id, context), ({ text, ...document }) => {
      const part = text.slice(offset, offset + maxRead)
      const end = offset + part.length
      return { ...document, text: part, ...(end < text.length ? { nextOffset: end } : {}) }
    })
})

const write = EffectTool.makeWith({
  name: "document_write",
  title: "Writing…",
  description: "Creates a new document of the user. The user sees it and confirms before it is saved.",
  kind: "write",
  parameters: Schema.Struct({
    title: described(Title, "The title"),
    text: described(Text, "The whole text, in Markdown")
  }),
  preview: ({ text, title }, { user }) =>
    Effect.as(room(user, "documents"), {
      action: "create",
      title,
      after: text,
      diff: Diff.lines("", text),
      version: 0
    }),
  commit: ({ text, title }, context) =>
    before(
      context,
      Effect.flatMap(Documents, (documents) =>
        documents.create({ user: context.user, key: context.idempotencyKey, title, text })
      )
    ),
  probe
})

const documentation = (what: "changed" | "deleted") =>
  new ToolFailure({
    message: `The product documentation can not be ${what}. Write a document of your own instead.`
  })

/** The document of a commit, which still is at the version that was shown. */
const shownTarget = (wanted: string | undefined, context: ToolContext) =>
  Effect.gen(function* () {
    const shown = decodePreview(context.preview)
    const id = wanted ?? context.currentDocument?.id
    const documents = yield* Documents
    if (Option.isNone(shown) || id === undefined) {
      return yield* new ToolFailure({ message: "The preview of this change is not known, so nothing was changed." })
    }
    const { version } = shown.value
    const found = yield* documents.read({ user: context.user, id })
    if (Option.isNone(found)) {
      return yield* new ToolConflict({ message: "The document is no longer there." })
    }
    if (found.value.version !== version) {
      return yield* new ToolConflict({
        message: `The document has changed since: it was at version ${version} and is at ${found.value.version}.`
      })
    }
    return { document: found.value, version }
  })

/** What a document becomes; or why it can not become that. */
const revised = (
  document: Document,
  input: {
    readonly title?: string | undefined
    readonly text?: string | undefined
    readonly find?: string | undefined
    readonly replace?: string | undefined
  }
): Effect.Effect<{ readonly title: string; readonly text: string }, ToolFailure> => {
  const fail = (message: string) => Effect.fail(new ToolFailure({ message }))
  const title = input.title ?? document.title
  if (document.readOnly) return documentation("changed")
  if (input.find === undefined) {
    const text = input.text ?? document.text
    return title === document.title && text === document.text
      ? fail("Nothing would change: give a new title, a new text, or find and replace.")
      : Effect.succeed({ title, text })
  }
  if (input.text !== undefined) {
    return fail("Give either a whole new text, or find and replace.")
  }
  const parts = document.text.split(input.find)
  if (parts.length !== 2) {
    return fail(
      parts.length === 1
        ? "The text to find is not in the document."
        : `The text to find is there ${parts.length - 1} times; give a longer piece that is there once.`
    )
  }
  const text = parts.join(input.replace ?? "")
  return text.length > maxTextLength
    ? fail(`The text would be longer than ${maxTextLength} characters.`)
    : Effect.succeed({ title, text })
}

const update = EffectTool.makeWith({
  name: "document_update",
  title: "Changing…",
  description:
    "Changes a document of the user: its title, its whole text, or one piece of it (find and replace). Without an id, the document that the user has open. The user sees the change and confirms before it is saved.",
  kind: "write",
  parameters: Schema.Struct({
    id: Schema.optional(described(Schema.String, "The id of the document")),
    title: Schema.optional(described(Title, "A new title")),
    text: Schema.optional(described(Text, "The whole new text")),
    find: Schema.optional(
      described(Schema.String.pipe(Schema.minLength(1)), "A piece of the text that is there exactly once")
    ),
    replace: Schema.optional(described(Text, "What stands in its place"))
  }),
  preview: (input, context) =>
    Effect.gen(function* () {
      const document = yield* target(input.id, context)
      const next = yield* revised(document, input)
      return {
        action: "update",
        id: document.id,
        title: next.title,
        ...(next.title === document.title ? {} : { titleBefore: document.title }),
        version: document.version,
        before: document.text,
        after: next.text,
        diff: Diff.lines(document.text, next.text)
      }
    }),
  commit: (input, context) =>
    before(
      context,
      Effect.gen(function* () {
        const { document, version } = yield* shownTarget(input.id, context)
        const next = yield* revised(document, input)
        const { id } = document
        const documents = yield* Documents
        return yield* documents.update({ user: context.user, key: context.idempotencyKey, id, version, ...next })
      })
    ),
  probe
})

const remove = EffectTool.makeWith({
  name: "document_delete",
  title: "Deleting…",
  description:
    "Deletes a document of the user, for good. Without an id, the document that the user has open. The user sees it and confirms before it is deleted.",
  kind: "write",
  parameters: Schema.Struct({
    id: Schema.optional(described(Schema.String, "The id of the document"))
  }),
  preview: ({ id }, context) =>
    Effect.gen(function* () {
      const document = yield* target(id, context)
      if (document.readOnly) return yield* documentation("deleted")
      const { text, title, version } = document
      return { action: "delete", id: document.id, title, version, before: text, diff: Diff.lines(text, "") }
    }),
  commit: (input, context) =>
    before(
      context,
      Effect.gen(function* () {
        const { document, version } = yield* shownTarget(input.id, context)
        const { id, title } = document
        const documents = yield* Documents
        return yield* documents.remove({ user: context.user, key: context.idempotencyKey, id, title, version })
      })
    ),
  probe
})

const remember = EffectTool.makeWith({
  name: "memory_write",
  title: "Remembering…",
  description: "Remembers a fact for the user, for all later conversations. The user confirms before it is saved.",
  kind: "write",
  parameters: Schema.Struct({
    text: described(Schema.Trim.pipe(Schema.minLength(1), Schema.maxLength(2_000)), "The fact, as one sentence")
  }),
  preview: ({ text }, { user }) =>
    Effect.as(room(user, "memories"), { action: "remember", title: "Remember this", after: text }),
  commit: ({ text }, context) =>
    before(
      context,
      Effect.flatMap(Documents, (documents) =>
        documents.remember({ user: context.user, key: context.idempotencyKey, text })
      )
    ),
  probe
})

const recall = EffectTool.makeWith({
  name: "memory_recall",
  title: "Recalling…",
  description: "What the user had remembered in earlier conversations: about a question, or everything.",
  kind: "readonly",
  parameters: Schema.Struct({
    query: Schema.optional(described(Schema.String.pipe(Schema.maxLength(500)), "Words or a question; absent: all")),
    limit: Schema.optional(described(Schema.Int.pipe(Schema.between(1, 50)), "How many at most, 10 unless said"))
  }),
  execute: ({ limit = 10, query }, { user }) =>
    Effect.flatMap(Documents, (documents) =>
      Effect.map(documents.recall({ user, query, limit }), (memories) => ({ memories }))
    )
})

const forget = EffectTool.makeWith({
  name: "memory_forget",
  title: "Forgetting…",
  description: "Forgets something that was remembered for the user. The user confirms before it is forgotten.",
  kind: "write",
  parameters: Schema.Struct({ id: described(Schema.String, "The id of the memory, from memory_recall") }),
  preview: ({ id }, { user }) =>
    Effect.gen(function* () {
      const documents = yield* Documents
      const memories = yield* documents.recall({ user, limit: Number.MAX_SAFE_INTEGER })
      const memory = memories.find((one) => one.id === id)
      if (memory === undefined) {
        return yield* new ToolFailure({ message: `There is no memory ${JSON.stringify(id)}. Recall what there is.` })
      }
      return { action: "forget", title: "Forget this", before: memory.text, diff: Diff.lines(memory.text, "") }
    }),
  commit: ({ id }, { idempotencyKey, user, ...context }) =>
    before(
      { idempotencyKey, user, ...context },
      Effect.flatMap(Documents, (documents) => documents.forget({ user, key: idempotencyKey, id }))
    ),
  probe
})

/**
 * All tools of the workspace.
 *
 * @since 0.1.0
 * @category constructors
 */
export const make: Effect.Effect<ReadonlyArray<Tool>, never, Documents> = Effect.all([
  search,
  read,
  write,
  update,
  remove,
  remember,
  forget,
  recall
])
