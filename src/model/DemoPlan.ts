/**
 * What the demo model does next, decided from the messages alone: the same messages, the same turn. Pure.
 *
 * @since 0.1.0
 */
import * as Phrases from "./DemoPhrases.js"
import * as Text from "./DemoText.js"
import type { ModelMessage, ModelRequest } from "./Model.js"

/**
 * A turn of the demo model. `cut`: it breaks off in the middle; `slow`: by how much it speaks slower.
 *
 * @since 0.1.0
 * @category models
 */
export interface Plan {
  readonly thought: string
  readonly text: string
  readonly calls: ReadonlyArray<{ readonly name: string; readonly input: unknown }>
  readonly cut: boolean
  readonly slow: number
}

interface Result {
  readonly name: string
  readonly value: unknown
  readonly isError: boolean
}

/** A user message, taken apart. `words` is what a command is about, or the question. */
interface Order {
  readonly command: string | undefined
  readonly words: string
  readonly long: number | undefined
  readonly failTool: boolean
  readonly cut: boolean
  readonly slow: boolean
}

const maxLong = 20_000

const orderOf = (message: string): Order => {
  const flag = (name: string) => new RegExp(`(^|\\s)/${name}(?=\\s|$)`).test(message)
  const long = /(?:^|\s)\/long(?:\s+(\d{1,5}))?(?=\s|$)/.exec(message)
  const rest = message
    .replace(/(^|\s)\/long(\s+\d{1,5})?(?=\s|$)/g, "$1")
    .replace(/(^|\s)\/(slow|cut|fail-tool)(?=\s|$)/g, "$1")
    .trim()
  const command = /^\/(help|write|update|remember|recall|plan|call)(?=\s|$)/.exec(rest)
  return {
    command: command?.[1],
    words: command === null ? rest : rest.slice(command[0].length).trim(),
    long: long === null ? undefined : Math.min(maxLong, Math.max(1, Number(long[1] ?? 400))),
    failTool: flag("fail-tool"),
    cut: flag("cut"),
    slow: flag("slow")
  }
}

const field = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined

const string = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

const list = (value: unknown): ReadonlyArray<unknown> => (Array.isArray(value) ? value : [])

interface Hit {
  readonly id: string
  readonly title: string
  readonly excerpt: string
  readonly readOnly: boolean
}

const hitsOf = (value: unknown): ReadonlyArray<Hit> =>
  list(field(value, "results")).flatMap((hit) => {
    const id = string(field(hit, "id"))
    return id === undefined
      ? []
      : [
          {
            id,
            title: string(field(hit, "title")) ?? id,
            excerpt: string(field(hit, "excerpt")) ?? "",
            readOnly: field(hit, "readOnly") === true
          }
        ]
  })

interface Page {
  readonly title: string
  readonly text: string
}

const pageOf = (value: unknown): ReadonlyArray<Page> => {
  const text = string(field(value, "text"))
  return text === undefined ? [] : [{ title: string(field(value, "title")) ?? "", text }]
}

/** The messages behind the last question, as results. */
const resultsOf = (messages: ReadonlyArray<ModelMessage>): ReadonlyArray<Result> =>
  messages.flatMap((message) =>
    message.role === "tool" ? [{ name: message.toolName, value: message.result, isError: message.isError }] : []
  )

const quote = (value: unknown): string => {
  const json = JSON.stringify(value, undefined, 2) ?? "null"
  return `\`\`\`json\n${json.length > 2000 ? `${json.slice(0, 2000)}…` : json}\n\`\`\``
}

const messageOf = (value: unknown): string => string(field(value, "error")) ?? string(value) ?? JSON.stringify(value)

const isAboutOpenDocument = (question: string): boolean =>
  /\b(this|the open|the current) (document|page|text)\b|这篇|这个文档|当前文档|本文/i.test(question)

/**
 * The turn that answers a request.
 *
 * @since 0.1.0
 * @category planning
 */
export const plan = (request: ModelRequest): Plan => {
  const at = request.messages.findLastIndex((message) => message.role === "user")
  const user = request.messages[at]
  const order = orderOf(user?.role === "user" ? user.content : "")
  const phrases = Text.isEastAsian(order.words) ? Phrases.chinese : Phrases.english
  const all = resultsOf(request.messages.slice(at + 1))
  const offers = (name: string) => request.tools.some((tool) => tool.name === name)
  const slow = order.slow ? 8 : 1
  const answer = (text: string, thought = ""): Plan => ({
    thought,
    text,
    calls: [],
    cut: order.cut && request.attempt === 1,
    slow
  })
  const act = (name: string, input: unknown, thought = phrases.thinkAct(name)): Plan =>
    offers(name)
      ? { thought, text: "", calls: [{ name, input }], cut: false, slow }
      : answer(`${phrases.notOffered(name)}\n\n${phrases.sign}`)

  /** What came of an act, in words. */
  const report = ({ isError, name, value }: Result): Plan => {
    if (field(value, "rejected") === true) {
      return answer(phrases.rejected)
    }
    if (field(value, "expired") === true) {
      return answer(phrases.expired)
    }
    if (isError) {
      return answer(phrases.failed(name, messageOf(value)))
    }
    return answer(
      field(value, "applied") === true
        ? phrases.applied(name)
        : `${phrases.answered(name)}\n\n${quote(value)}\n\n${phrases.sign}`
    )
  }

  // The call that was to fail is behind us; what was asked goes on as if it had never been made.
  const results = order.failTool ? all.slice(1) : all
  const last = results.at(-1)
  const [subject = "", ...others] = order.words.split(/[:：]/)
  const body = others.join(":").trim()

  if (order.long !== undefined) {
    return answer(longText(phrases.long, order.long))
  }
  if (order.failTool && all.length === 0) {
    const name = offers("document_read") ? "document_read" : (request.tools[0]?.name ?? "document_read")
    return act(name, { id: "no-such-document" })
  }
  if (order.failTool && order.command === undefined && order.words === "" && all[0] !== undefined) {
    return report(all[0])
  }
  switch (order.command) {
    case "help":
      return answer(phrases.help)
    case "write":
      if (last !== undefined) return report(last)
      if (subject.trim() === "" || body === "") return answer(phrases.usage("/write <title>: <text>"))
      return act("document_write", { title: subject.trim(), text: body })
    case "remember":
      if (last !== undefined) return report(last)
      if (order.words === "") return answer(phrases.usage("/remember <text>"))
      return act("memory_write", { text: order.words })
    case "recall": {
      if (last === undefined) return act("memory_recall", order.words === "" ? {} : { query: order.words })
      const memories = list(field(last.value, "memories")).flatMap((memory) => string(field(memory, "text")) ?? [])
      return last.isError
        ? report(last)
        : answer(
            memories.length === 0
              ? phrases.noMemories
              : `${phrases.memories}\n\n${memories.map((text) => `- ${text}`).join("\n")}`
          )
    }
    case "update": {
      if (last !== undefined && last.name !== "document_search") return report(last)
      if (body === "") return answer(phrases.usage("/update <id or title>: <text>"))
      const name = subject.trim()
      if (name === "" || /^(doc_|runlet\/)\S+$/.test(name)) {
        return act("document_update", name === "" ? { text: body } : { id: name, text: body })
      }
      if (last === undefined) return act("document_search", { query: name })
      const own = hitsOf(last.value).find((hit) => !hit.readOnly)
      return own === undefined ? answer(phrases.nothing) : act("document_update", { id: own.id, text: body })
    }
    case "call": {
      if (last !== undefined) return report(last)
      const parts = /^(\S+)\s*([\s\S]*)$/.exec(order.words)
      const input = parse(parts?.[2] ?? "")
      return parts?.[1] === undefined || input === undefined
        ? answer(phrases.usage("/call <tool> <JSON object>"))
        : act(parts[1], input)
    }
  }

  const question = order.words
  if (!offers("document_search") && !offers("document_read")) {
    return answer(`${phrases.noTools}\n\n${phrases.sign}`)
  }
  const search = results.find(({ name }) => name === "document_search")
  const reads = results.filter(({ name }) => name === "document_read")
  if (question !== "" && results.length === 0 && offers("document_read") && isAboutOpenDocument(question)) {
    return act("document_read", {})
  }
  if (question !== "" && search === undefined && !reads.some(({ isError }) => !isError) && offers("document_search")) {
    return act("document_search", { query: question.slice(0, 300) }, phrases.thinkSearch(question.slice(0, 120)))
  }
  const hits = search === undefined || search.isError ? [] : hitsOf(search.value).slice(0, 2)
  if (reads.length === 0 && hits.length > 0 && offers("document_read")) {
    return {
      thought: phrases.thinkRead(hits.map(({ title }) => title)),
      text: "",
      calls: hits.map(({ id }) => ({ name: "document_read", input: { id } })),
      cut: false,
      slow
    }
  }
  const pages = reads.filter(({ isError }) => !isError).flatMap(({ value }) => pageOf(value))
  const sources = pages.length > 0 ? pages : hits.map(({ excerpt, title }) => ({ title, text: excerpt }))
  return answer(
    [...answerFrom(phrases, sources, question, order.command === "plan"), phrases.sign].join("\n\n"),
    sources.length === 0 ? "" : phrases.thinkAnswer
  )
}

const answerFrom = (
  phrases: Phrases.Phrases,
  sources: ReadonlyArray<Page>,
  question: string,
  numbered: boolean
): ReadonlyArray<string> => {
  const quotes = sources
    .map(({ text, title }, index) => {
      const found = Text.relevant(text, question, 4)
      return { title, said: found.length > 0 || index > 0 ? found : Text.opening(text, 2) }
    })
    .filter(({ said }) => said.length > 0)
  if (quotes.length === 0) {
    return [phrases.nothing]
  }
  return numbered
    ? [
        phrases.steps,
        quotes
          .flatMap(({ said }) => said)
          .map((sentence, index) => `${index + 1}. ${sentence}`)
          .join("\n")
      ]
    : [
        phrases.found,
        ...quotes.map(
          ({ said, title }) => `${phrases.from(title)}\n\n${said.map((sentence) => `- ${sentence}`).join("\n")}`
        )
      ]
}

const parse = (text: string): object | undefined => {
  if (text.trim() === "") {
    return {}
  }
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Exactly `count` words, in paragraphs. */
const longText = (sentences: ReadonlyArray<string>, count: number): string => {
  const paragraph = sentences.join(" ")
  const times = Math.ceil(count / Text.words(paragraph).length)
  return Text.words(Array.from({ length: times }, () => paragraph).join("\n\n"))
    .slice(0, count)
    .join("")
}
