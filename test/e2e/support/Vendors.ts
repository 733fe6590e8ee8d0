/** What the tests with the vendors' own clients have in common. */
import * as Script from "../../../src/testing/UpstreamScript.js"

/** A turn of the model with its usage and its end. */
export const turn = (reason: "stop" | "tool_calls", ...steps: ReadonlyArray<Script.Step>): Script.Reply =>
  Script.reply([...steps, Script.finish(reason), Script.usage(10, 5), Script.done])

/** A response that breaks: after so many bytes, or when what has come of it is as wanted. */
export const cutting = (response: Response, when: number | ((text: string) => boolean)): Response => {
  if (response.body === null) return response
  const decoder = new TextDecoder()
  const reader = response.body.getReader()
  let length = 0
  let text = ""
  const body = new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        if (typeof when === "number" ? length >= when : when(text)) {
          await reader.cancel()
          return controller.error(new TypeError("network error"))
        }
        const { done, value } = await reader.read()
        if (done) return controller.close()
        const most = typeof when === "number" ? value.subarray(0, when - length) : value
        length += most.length
        text += decoder.decode(most, { stream: true })
        controller.enqueue(most)
      }
    },
    { highWaterMark: 0 }
  )
  return new Response(body, response)
}
