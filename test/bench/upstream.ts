/** A chat-completions server that tells its parent when it began a stream and when somebody closed its socket. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import { clock, deltaText } from "./Plan.js"

const chunk = (content: string): string =>
  `data: ${JSON.stringify({
    id: "c",
    object: "chat.completion.chunk",
    created: 0,
    model: "bench",
    choices: [{ index: 0, delta: { content }, finish_reason: null }]
  })}\n\n`

const last = (deltas: number): string =>
  `data: ${JSON.stringify({
    id: "c",
    object: "chat.completion.chunk",
    created: 0,
    model: "bench",
    choices: [{ index: 0, delta: {}, finish_reason: "stop" }],
    usage: { prompt_tokens: 1, completion_tokens: deltas, total_tokens: deltas + 1 }
  })}\n\ndata: [DONE]\n\n`

const server = Http.createServer((request, response) => {
  let body = ""
  request.setEncoding("utf8")
  request.on("data", (text: string) => {
    body += text
  })
  request.on("end", () => {
    const { messages } = JSON.parse(body)
    const { deltas, perSecond } = JSON.parse(messages.at(-1).content)
    response.writeHead(200, { "content-type": "text/event-stream" })
    let index = 0
    let done = false
    const began = clock()
    const every = 1000 / perSecond
    let timer: NodeJS.Timeout
    const step = (): void => {
      response.write(chunk(deltaText(index++)))
      if (index === 1) process.send?.({ event: "first", at: clock() })
      if (index < deltas) timer = setTimeout(step, began + index * every - clock())
      else {
        done = true
        response.end(last(deltas))
      }
    }
    step()
    response.on("close", () => {
      clearTimeout(timer)
      if (!done) process.send?.({ event: "closed", at: clock() })
    })
  })
})
server.listen(0, "127.0.0.1", () => process.send?.({ ready: (server.address() as AddressInfo).port }))
process.on("disconnect", () => process.exit(0))
