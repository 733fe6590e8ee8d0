/** @jsxImportSource react */
/** A page for the route handler beside it: `useChat` as it is, with approvals, and a button that really stops the run. */
import { type Chat, useChat } from "@ai-sdk/react"
import { isToolUIPart, type UIMessage } from "ai"

export const stop = (id: string) => fetch(`/api/chat/${encodeURIComponent(id)}/cancel`, { method: "POST" })

export const Page = ({ chat }: { readonly chat: Chat<UIMessage> }) => {
  const { addToolApprovalResponse, error, messages, regenerate, sendMessage, status } = useChat({ chat, resume: true })
  return (
    <main data-status={status}>
      {messages.map(({ id, parts, role }) => (
        <article key={id} data-role={role}>
          {parts.map((part, index) => {
            const key = `${id}.${index}`
            if (part.type === "text") return <p key={key}>{part.text}</p>
            if (part.type === "reasoning") return <details key={key}>{part.text}</details>
            if (!isToolUIPart(part)) return null
            const { approval } = part
            return (
              <section key={key} data-state={part.state}>
                <pre>{JSON.stringify(part.state === "approval-requested" ? approval?.descriptor : part.input)}</pre>
                {part.state === "approval-requested" && approval !== undefined && (
                  <>
                    <button type="button" onClick={() => addToolApprovalResponse({ id: approval.id, approved: true })}>
                      Do it
                    </button>
                    <button type="button" onClick={() => addToolApprovalResponse({ id: approval.id, approved: false })}>
                      Do not
                    </button>
                  </>
                )}
              </section>
            )
          })}
        </article>
      ))}
      {error !== undefined && <p role="alert">{error.message}</p>}
      {status === "streaming" && (
        <button type="button" onClick={() => stop(chat.id)}>
          Stop
        </button>
      )}
      <button type="button" onClick={() => regenerate()}>
        Again
      </button>
      <form action={(data) => sendMessage({ text: String(data.get("text")) })}>
        <input name="text" />
      </form>
    </main>
  )
}
