/**
 * The reference: the server's own OpenAPI document as a page, without anything from elsewhere.
 *
 * @since 0.1.0
 */
import { byId, make, show } from "../Dom.js"

interface Schema {
  readonly $ref?: string
  readonly type?: string
}

interface Media {
  readonly [type: string]: { readonly schema?: Schema }
}

interface Operation {
  readonly tags?: ReadonlyArray<string>
  readonly summary?: string
  readonly description?: string
  readonly parameters?: ReadonlyArray<{
    readonly name: string
    readonly in: string
    readonly description?: string
    readonly required?: boolean
  }>
  readonly requestBody?: { readonly content: Media }
  readonly responses: { readonly [status: string]: { readonly description?: string; readonly content?: Media } }
}

interface Document {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string }
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } }
  readonly components: { readonly schemas: { readonly [name: string]: unknown } }
}

const row = (...cells: ReadonlyArray<string>) => make("tr", "", "", ...cells.map((cell) => make("td", "", cell)))

const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<HTMLElement>) =>
  make(
    "div",
    "scroll",
    "",
    make("table", "", "", make("tr", "", "", ...head.map((cell) => make("th", "", cell))), ...rows)
  )

const details = (title: string, value: unknown) =>
  make("details", "", "", make("summary", "", title), make("pre", "", show(value)))

const media = (content: Media | undefined) => Object.keys(content ?? {}).join(", ")

const operation = (
  path: string,
  method: string,
  { description, parameters = [], requestBody, responses, summary }: Operation
) => {
  const heading = make("h2", "", "", make("span", "method", method.toUpperCase()), make("code", "", path))
  const children: Array<HTMLElement> = [heading]
  if (summary !== undefined) children.push(make("p", "", summary))
  if (description !== undefined && description !== summary) children.push(make("p", "", description))
  if (parameters.length > 0) {
    children.push(
      table(
        ["parameter", "in", "meaning"],
        parameters.map((_) => row(_.required === true ? `${_.name} *` : _.name, _.in, _.description ?? ""))
      )
    )
  }
  for (const [type, { schema }] of Object.entries(requestBody?.content ?? {})) {
    children.push(details(`body (${type})`, schema))
  }
  children.push(
    table(
      ["answer", "content", "meaning"],
      Object.entries(responses).map(([status, response]) =>
        row(status, media(response.content), response.description ?? "")
      )
    )
  )
  return make("section", "", "", ...children)
}

const render = async () => {
  const response = await fetch("/openapi.json", { headers: { accept: "application/json" } })
  if (!response.ok) throw new Error(`The server answered ${response.status}.`)
  const document: Document = await response.json()
  const main = byId("reference", HTMLElement)
  main.replaceChildren(
    make("p", "", document.info.description ?? ""),
    ...Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, value]) => operation(path, method, value))
    ),
    make("h2", "", "Schemas"),
    ...Object.entries(document.components.schemas).map(([name, schema]) => details(name, schema))
  )
}

render().catch((error: unknown) => {
  byId("reference", HTMLElement).textContent =
    error instanceof Error ? error.message : "The reference can not be shown."
})
