/**
 * AG-UI's own client for agents of this server: its runs live through broken connections and restarts of the server, and
 * a page that is loaded anew attaches to what its thread is doing. Needs the package `@ag-ui/client`.
 *
 * @since 0.1.0
 */
import {
  type AgentSubscriber,
  HttpAgent,
  type HttpAgentConfig,
  type RunAgentInput,
  type RunAgentParameters,
  type RunAgentResult,
  runHttpRequest,
  transformHttpEventStream
} from "@ag-ui/client"
import { left, type ResumableOptions, resumableFetch, resuming } from "./ResumableFetch.js"

/**
 * What the vendor's `HttpAgent` takes, and how to come back to a run whose connection broke.
 *
 * @since 0.1.0
 * @category models
 */
export interface ResumableHttpAgentConfig extends HttpAgentConfig, Omit<ResumableOptions, "fetch"> {}

/**
 * An agent of AG-UI at `url`, the address of the server's `/adapters/ag-ui`.
 *
 * - `runAgent` is the vendor's; when its connection breaks, the rest is asked for by `Last-Event-ID`
 * - `connectAgent` brings the messages of the thread and what its last run does now; nothing, in an unknown thread
 * - `abortRun` stops the run on the server, unless `cancelOnAbort` is false
 * - `detachActiveRun` leaves a run, which goes on
 *
 * @example
 * import { ResumableHttpAgent } from "runlet/adapters/ag-ui"
 *
 * const agent = new ResumableHttpAgent({ url: "http://localhost:4747/adapters/ag-ui", threadId: "support 17" })
 * await agent.connectAgent()
 *
 * @since 0.1.0
 * @category clients
 */
export class ResumableHttpAgent extends HttpAgent {
  private options: ResumableOptions

  constructor(config: ResumableHttpAgentConfig) {
    const { cancelOnAbort, delayMs, fetch, maxTries, ...rest } = config
    const options = { cancelOnAbort, delayMs, fetch, maxTries }
    super({ ...rest, fetch: resumableFetch(options) })
    this.options = options
  }

  override async connectAgent(parameters?: RunAgentParameters, subscriber?: AgentSubscriber): Promise<RunAgentResult> {
    this.abortController = new AbortController()
    // What the thread waits for is told anew.
    const pending = this.pendingInterrupts
    this.pendingInterrupts = []
    try {
      return await super.connectAgent(parameters, subscriber)
    } catch (cause) {
      this.pendingInterrupts = pending
      throw cause
    }
  }

  protected override connect(input: RunAgentInput): ReturnType<HttpAgent["run"]> {
    const { body: _, ...init } = this.requestInit(input)
    const { runId: clientRunId, threadId } = input
    const path = `/threads/${encodeURIComponent(threadId)}/events?${new URLSearchParams({ clientRunId })}`
    const response = async () => {
      const asked = { ...this.options, url: this.url, path, init: { ...init, method: "GET" }, threadId, clientRunId }
      const answer = await resuming(asked)
      // The vendor's client takes no answer without a body.
      return answer.status === 204 ? new Response("", { headers: { "content-type": "text/event-stream" } }) : answer
    }
    return transformHttpEventStream(runHttpRequest(response), this.debugLogger)
  }

  override async detachActiveRun(): Promise<void> {
    const { abortController, isRunning } = this
    await super.detachActiveRun()
    if (isRunning) abortController.abort(left)
  }

  override async getCapabilities() {
    return { transport: { streaming: true, resumable: true } }
  }

  override clone(): ResumableHttpAgent {
    const cloned = super.clone() as ResumableHttpAgent
    cloned.options = this.options
    return cloned
  }
}
