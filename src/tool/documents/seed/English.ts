/**
 * The documentation in English.
 *
 * @since 0.1.0
 */
import type { Page } from "./Page.js"

/**
 * The product's documentation in English.
 *
 * @since 0.1.0
 * @category constants
 */
export const pages: ReadonlyArray<Page> = [
  {
    id: "runlet/runs",
    title: "What a run is",
    text: `A run is one execution of an agent for one user message. It is a public state machine with an id of its own, not a function call that is tied to a connection. A run goes on when the browser is closed, when the network is lost, and when the server is restarted.

## Statuses

- \`queued\`: the run is accepted and has not started, because the server or the conversation is busy.
- \`running\`: an attempt works on it and no model output is arriving, for example while a tool runs.
- \`streaming\`: model output is arriving.
- \`waiting_approval\`: nothing executes; a person must decide about a tool call.
- \`completed\`, \`cancelled\` and \`failed\` are the ends. A failed run that is recoverable can be resumed.

## The log

Everything that happens in a run is an event in its log, with a number \`seq\` that counts from 1 without holes. The log is the truth: the status, the text and the tool calls that you see are all computed from it. An event is stored before anybody sees it, so what a client has seen is never lost.

## Iterations and attempts

An iteration is one turn of the model and the tool calls that it asked for. An attempt is one try of the server to bring the run to its end; after a crash or an explicit resume a new attempt begins where the log ends.
`
  },
  {
    id: "runlet/resume",
    title: "How a client resumes a run",
    text: `A client resumes a run with the number of the last event that it has applied. It never has to start over, and it never sees a piece of text twice.

## After a lost connection

Open \`GET /runs/{id}/events\` with the header \`Last-Event-ID\` set to the last \`seq\` that you applied, or with \`?after=<seq>\`. The server sends the events that you missed, and then goes on live. A browser's EventSource does this by itself, because every frame carries its \`seq\` as the event id. When the run has ended and nothing is missing, the answer is 204, which tells an EventSource to stop.

## After a page reload

Read \`GET /runs/{id}\`. The snapshot holds everything that a page shows: text, reasoning, tool calls, pending approvals and \`lastSeq\`. Then follow the events after \`lastSeq\`.

## Continuing a failed run

When a run failed and is recoverable, \`POST /runs/{id}/resume\` continues it. Completed tool calls are not executed again. A new attempt begins with an event \`run-resumed\`, which says how much of the text is kept: cut your draft to these lengths and go on.

## After a server crash

Nothing needs to be done. When the server is back, it continues the runs that had not ended, and clients reconnect with their cursor as usual.
`
  },
  {
    id: "runlet/events",
    title: "Events of a run",
    text: `Events are typed and speak the language of the product, not that of a model provider. An envelope \`{ runId, seq, event, createdAt }\` wraps each one.

- \`run-start\` is always first, \`run-status\` reports each change of the status.
- \`text-delta\` and \`reasoning-delta\` carry the answer and the thinking, piece by piece.
- \`tool-call-start\`, \`tool-call-delta\` and \`tool-call-ready\` show a call while the model writes it.
- \`tool-start\` is stored before a tool really runs, \`tool-call-result\` when it is settled.
- \`approval-request\`, \`approval-decision\` and \`tool-conflict\` belong to calls that a person must confirm.
- \`finish\`, \`cancelled\` and \`error\` are the three possible ends.

Streams come as Server-Sent Events, or as one envelope a line with \`Accept: application/x-ndjson\`. A heartbeat keeps quiet connections open. Viewing a stream never starts or restarts work, so any number of viewers may watch one run.
`
  },
  {
    id: "runlet/cancel",
    title: "How to cancel a run",
    text: `Cancel a run with \`POST /runs/{id}/cancel\`, or with the stop button of the page. The answer comes when the run is final. Cancelling twice is harmless: an ended run answers with the state it really has.

A cancel reaches everything below the run within a second: the connection to the model is closed, and every running tool is interrupted. Text that was already written stays. A run that is cancelled while it is queued never starts.

Closing the page or losing the connection is not a cancel: the run goes on. A tool whose effect had begun when the cancel came is marked \`in_doubt\`, because nobody can know whether it happened.
`
  },
  {
    id: "runlet/approvals",
    title: "How approvals work",
    text: `A tool that changes something does not act by itself. The model proposes, a person decides, and only then the change is made.

## Preview, confirm, commit

A \`write\` tool first makes a preview: a dry run that shows what would change. The run then waits in the status \`waiting_approval\`; it holds no connection and no memory while it waits, also for days. When the person approves, exactly what was shown is committed, at most once.

## Deciding

\`POST /runs/{id}/approvals/{approvalId}\` with \`{ "decision": "approve" }\`, \`"reject"\` or \`"edit"\`. An edit replaces the arguments, makes a new preview and asks again. An approval that nobody decides expires, and the run goes on as after a rejection.

## When the target has changed

If the document was changed between preview and commit, nothing is applied: the tool reports a conflict, and a new preview with a new question is made.

## When the outcome is unknown

If the server crashes between an effect and its record, the tool is asked whether the act with this key has happened. If it can not say, a person decides: retry with the same key, mark it as applied, or abandon it.
`
  },
  {
    id: "runlet/configuration",
    title: "Configuration",
    text: `Runlet reads \`runlet.config.json\` in the directory where it is started, or the file named with \`--config\`. Flags win over environment variables, and these over the file. Without any configuration the server listens on http://127.0.0.1:4747, keeps its data in \`./.runlet/runlet.db\` and uses the demo model.

- \`models\` and \`defaultModel\`: the models that clients may choose.
- \`instructions\`: what the agent is told before every conversation.
- \`tools\`: tools that are served over HTTP.
- \`auth\`: tokens and their users. Without it there is one local user, and only this machine is served.
- \`limits\`: bounds on runs, time, size and cost.
- \`resume\`: how runs continue after a crash.
- \`retention\`: how long events and runs are kept.

Any string may be \`{ "env": "NAME" }\`, so that secrets stay out of the file. A wrong key or value is reported with its path when the server starts.
`
  },
  {
    id: "runlet/models",
    title: "Connecting a real model",
    text: `The demo model needs no key and no network; it only quotes from documents. To connect a real model, add it to \`runlet.config.json\` and restart the server:

\`\`\`json
{
  "models": {
    "deepseek": {
      "provider": "openai-compatible",
      "baseUrl": "https://api.deepseek.com/v1",
      "apiKey": { "env": "DEEPSEEK_API_KEY" }
    }
  },
  "defaultModel": "deepseek"
}
\`\`\`

Every server that speaks OpenAI's streaming chat completions works: DeepSeek, Ollama, vLLM, llama.cpp and others. For a local Ollama the address is \`http://127.0.0.1:11434/v1\` and no key is needed. Reasoning that the model streams is shown as a collapsible block. A model may name a \`fallback\`, its \`contextWindow\` and its \`price\`.
`
  },
  {
    id: "runlet/tools",
    title: "Writing tools",
    text: `A tool has a name, a description, a JSON Schema for its parameters, and a kind that says what it may do to the world.

- \`readonly\` tools run at once and may be repeated.
- \`write\` tools have a preview and a commit, and ask a person in between.
- \`effectful\` tools act without a preview, so a person is asked before each call, unless the tool is declared \`unattended\`.

## Tools over HTTP

Put the tool into the configuration with its \`url\`. Runlet sends \`POST\` with \`{ phase, input, toolCallId, runId, conversationId, idempotencyKey }\` and the header \`Idempotency-Key\`. The JSON answer is the result. Any status outside 2xx is a failure, and 409 to a commit means that the target has changed. With a \`statusUrl\` Runlet can ask whether an act with a given key has happened.

## Tools in code

In a program, \`EffectTool.make\` builds a tool from Schemas and handlers. Look at the idempotency key before anything else: the same key means the same act, which must happen only once. Tools of \`@effect/ai\` are taken over with \`AiTool.fromToolkit\`.

Every call has a time limit. Whatever a tool throws or returns becomes a result that the model sees, and the conversation goes on.
`
  }
]
