/**
 * A route handler as Next.js has them (`app/api/chat/[[...path]]/route.ts`): a page with `useChat` talks to it, and it to
 * the server, with a token that no browser sees. Nothing is stored here; the server has the messages.
 */
const server = process.env.RUNLET_URL ?? "http://127.0.0.1:4747"

const forward = async (request: Request): Promise<Response> => {
  const { pathname, search } = new URL(request.url)
  const token = process.env.RUNLET_TOKEN
  const answer = await fetch(`${server}/adapters/ai-sdk${pathname.slice(pathname.indexOf("/chat"))}${search}`, {
    method: request.method,
    headers: {
      ...(request.method === "POST" && { "content-type": "application/json" }),
      ...(token !== undefined && { authorization: `Bearer ${token}` })
    },
    body: request.method === "POST" ? await request.text() : null,
    // When the page goes, so does this view of the run; the run stays.
    signal: request.signal
  })
  const kept = ["content-type", "cache-control", "x-vercel-ai-ui-message-stream", "x-accel-buffering", "retry-after"]
  return new Response(answer.body, {
    status: answer.status,
    headers: [...answer.headers].filter(([name]) => kept.includes(name))
  })
}

export const GET = forward
export const POST = forward
