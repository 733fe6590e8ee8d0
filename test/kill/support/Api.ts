/** The server's API, as plain requests. */
import { Agent, request } from "node:http"

const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY })

export interface Answer {
  readonly status: number
  readonly text: string
  readonly json: unknown
}

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Fails when no whole answer came. */
export const call = (
  method: string,
  url: string,
  body?: unknown,
  headers: Record<string, string> = {}
): Promise<Answer> =>
  new Promise((done, failed) => {
    const text = body === undefined ? undefined : JSON.stringify(body)
    const sent = request(
      url,
      { agent, method, headers: { ...(text !== undefined && { "content-type": "application/json" }), ...headers } },
      (response) => {
        let got = ""
        response.setEncoding("utf8")
        response.on("data", (piece: string) => {
          got += piece
        })
        response.on("end", () =>
          response.complete
            ? done({ status: response.statusCode ?? 0, text: got, json: parse(got) })
            : failed(new Error("The answer was cut"))
        )
        response.on("error", failed)
        response.on("close", () => failed(new Error("The answer was cut")))
      }
    )
    sent.on("error", failed)
    sent.end(text)
  })

export interface Accepted {
  readonly runId: string
  readonly conversationId: string
  readonly assistantMessageId: string
}

/** Starts a run in the background. */
export const start = async (
  url: string,
  message: string,
  options: { readonly key?: string | undefined; readonly conversationId?: string | undefined } = {}
): Promise<Accepted> => {
  const { conversationId, key } = options
  const body = { message, background: true, ...(conversationId !== undefined && { conversationId }) }
  const answer = await call("POST", `${url}/chat`, body, key === undefined ? {} : { "idempotency-key": key })
  if (answer.status !== 202) throw new Refused(`POST /chat: ${answer.status} ${answer.text}`)
  return answer.json as Accepted
}

/** The server answered, but not as it should. */
export class Refused extends Error {}

/** The lines of a run's trace behind the header: its envelopes. */
export const trace = async (url: string, runId: string): Promise<ReadonlyArray<string>> => {
  const answer = await call("GET", `${url}/runs/${runId}/trace`)
  if (answer.status !== 200) throw new Refused(`GET /runs/${runId}/trace: ${answer.status} ${answer.text}`)
  return answer.text
    .split("\n")
    .filter((line) => line !== "")
    .slice(1)
}

export const snapshot = async (url: string, runId: string): Promise<Record<string, unknown>> => {
  const answer = await call("GET", `${url}/runs/${runId}`)
  if (answer.status !== 200) throw new Refused(`GET /runs/${runId}: ${answer.status} ${answer.text}`)
  return answer.json as Record<string, unknown>
}
