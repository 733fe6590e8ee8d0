/**
 * The reference: the server's own OpenAPI document as a page, without anything from elsewhere.
 *
 * @since 0.1.0
 */
import { type ComponentChildren, render } from "preact"
import { Scroll } from "../ui/Scroll.js"

interface Schema {
  readonly $ref?: string
  readonly type?: string
}

interface Media {
  readonly [type: string]: { readonly schema?: Schema }
}

interface Operation {
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

const Table = ({
  head,
  rows
}: {
  readonly head: ReadonlyArray<string>
  readonly rows: ReadonlyArray<ReadonlyArray<string>>
}) => (
  <Scroll label={head.join(", ")}>
    <table>
      <thead>
        <tr>
          {head.map((cell) => (
            <th key={cell} scope="col">
              {cell}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((cells) => (
          <tr key={cells.join()}>
            {cells.map((cell, index) => (
              <td key={head[index]}>{cell}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  </Scroll>
)

const Details = ({ children, title }: { readonly title: string; readonly children: ComponentChildren }) => (
  <details>
    <summary>{title}</summary>
    <Scroll label={title}>
      <pre>{children}</pre>
    </Scroll>
  </details>
)

const show = (value: unknown) => JSON.stringify(value, undefined, 2) ?? ""

const Call = ({
  method,
  operation: { description, parameters = [], requestBody, responses, summary },
  path
}: {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}) => (
  <section>
    <h2>
      <span class="method">{method.toUpperCase()}</span> <code>{path}</code>
    </h2>
    {summary !== undefined && <p>{summary}</p>}
    {description !== undefined && description !== summary && <p>{description}</p>}
    {parameters.length > 0 && (
      <Table
        head={["parameter", "in", "meaning"]}
        rows={parameters.map((one) => [
          one.required === true ? `${one.name} *` : one.name,
          one.in,
          one.description ?? ""
        ])}
      />
    )}
    {Object.entries(requestBody?.content ?? {}).map(([type, { schema }]) => (
      <Details key={type} title={`body (${type})`}>
        {show(schema)}
      </Details>
    ))}
    <Table
      head={["answer", "content", "meaning"]}
      rows={Object.entries(responses).map(([status, response]) => [
        status,
        Object.keys(response.content ?? {}).join(", "),
        response.description ?? ""
      ])}
    />
  </section>
)

const Reference = ({ document }: { readonly document: Document }) => (
  <>
    <p>{document.info.description}</p>
    {Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => (
        <Call key={`${method} ${path}`} method={method} path={path} operation={operation} />
      ))
    )}
    <h2>Schemas</h2>
    {Object.entries(document.components.schemas).map(([name, schema]) => (
      <Details key={name} title={name}>
        {show(schema)}
      </Details>
    ))}
  </>
)

const load = async (): Promise<Document> => {
  const response = await fetch("/openapi.json", { headers: { accept: "application/json" } })
  if (!response.ok) throw new Error(`The server answered ${response.status}.`)
  return response.json()
}

const main = document.querySelector("main")
if (main !== null) {
  load().then(
    (found) => {
      main.replaceChildren()
      render(<Reference document={found} />, main)
    },
    (error: unknown) => {
      main.textContent = error instanceof Error ? error.message : "The reference can not be shown."
    }
  )
}
