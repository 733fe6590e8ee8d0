import { createServer } from "node:http"
import { text } from "node:stream/consumers"

// A write tool behind HTTP: one POST for each phase, and one GET to ask what became of a commit.
const note = { text: "nothing yet", version: 1 }
const shown = new Map<string, number>()
const done = new Map<string, unknown>()

interface Call {
  readonly phase: "preview" | "commit"
  readonly input: { readonly text: string }
  readonly toolCallId: string
  readonly idempotencyKey: string
}

const act = ({ idempotencyKey, input, phase, toolCallId }: Call): readonly [status: number, body: unknown] => {
  if (phase === "preview") {
    shown.set(toolCallId, note.version)
    return [200, { before: note.text, after: input.text }]
  }
  // The key before anything else: the same commit again has the same answer and changes nothing.
  if (done.has(idempotencyKey)) return [200, done.get(idempotencyKey)]
  if (shown.get(toolCallId) !== note.version) return [409, { message: "The note has changed since it was shown." }]
  note.text = input.text
  note.version += 1
  done.set(idempotencyKey, { version: note.version })
  return [200, done.get(idempotencyKey)]
}

const server = createServer(async (request, response) => {
  const answer = (status: number, body: unknown) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
  if (request.method === "POST") {
    const [status, body] = act(JSON.parse(await text(request)))
    return answer(status, body)
  }
  const key = new URL(request.url ?? "/", "http://localhost").searchParams.get("key") ?? ""
  return answer(200, done.has(key) ? { state: "applied", result: done.get(key) } : { state: "absent" })
})

server.listen(Number(process.env.PORT ?? 9100), "127.0.0.1", () => {
  const address = server.address()
  if (typeof address === "object" && address !== null) console.log(`http://127.0.0.1:${address.port}`)
})
