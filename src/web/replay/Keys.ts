/**
 * What the keys do, wherever the focus is, except where a person writes or a key has a meaning of its own.
 *
 * @since 0.1.0
 */
import type { Replay } from "./Replay.js"

/** Elements that do something with the key themselves. */
const taken = (target: EventTarget | null, key: string): boolean => {
  if (!(target instanceof Element)) return false
  if (target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null) return true
  return (key === " " || key === "Enter") && target.closest("a, button, summary, input") !== null
}

/**
 * Does what the key is for. What it is for nothing is left alone.
 *
 * @since 0.1.0
 * @category keys
 */
export const onKey = (event: KeyboardEvent, replay: Replay, search: () => void): void => {
  // Some keyboards have the brackets behind AltGr, which looks like Ctrl and Alt.
  const held = (event.ctrlKey || event.altKey) && !event.getModifierState("AltGraph")
  if (event.defaultPrevented || held || event.metaKey || event.isComposing) return
  if (taken(event.target, event.key)) return
  const act = actionOf(event, replay, search)
  if (act === undefined) return
  event.preventDefault()
  act()
}

const actionOf = ({ key, shiftKey }: KeyboardEvent, replay: Replay, search: () => void): (() => void) | undefined => {
  switch (key) {
    case " ":
      return () => replay.dispatch({ type: "toggle" })
    case "ArrowLeft":
      return () => replay.step(-1, shiftKey ? 10 : 1)
    case "ArrowRight":
      return () => replay.step(1, shiftKey ? 10 : 1)
    case "Home":
      return () => replay.dispatch({ type: "to", seq: 1 })
    case "End":
      return () => replay.dispatch({ type: "end" })
    case "[":
      return () => replay.toCheckpoint(-1)
    case "]":
      return () => replay.toCheckpoint(1)
    case "+":
    case "=":
      return () => replay.zoom(0.5)
    case "-":
      return () => replay.zoom(2)
    case "0":
      return () => replay.zoomAll()
    case "/":
      return search
    default:
      return undefined
  }
}
