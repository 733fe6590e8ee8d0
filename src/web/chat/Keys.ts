/**
 * The keys of the page: `/` leads to where a question is written, Escape stops the answer that is under way.
 *
 * @since 0.1.0
 */
import { useLayoutEffect } from "preact/hooks"
import type { Page } from "./Page.js"

const isWriting = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || target.matches("textarea, select, input:not([type=checkbox])"))

/**
 * Listens to the keys as long as the component is there. What is open above the page has the keys for itself.
 *
 * @since 0.1.0
 * @category hooks
 */
export const useKeys = ({ attempt, thread }: Page) => {
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return
      if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !isWriting(event.target)) {
        event.preventDefault()
        document.getElementById("message")?.focus()
      }
      const runId = thread.currentId.peek()
      if (event.key === "Escape" && thread.active.peek() && runId !== undefined) {
        event.preventDefault()
        void attempt(() => thread.stop(runId))
      }
    }
    document.addEventListener("keydown", pressed)
    return () => document.removeEventListener("keydown", pressed)
  }, [attempt, thread])
}
