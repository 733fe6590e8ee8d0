/**
 * A Markdown text that may still be arriving. What is added is added to what is drawn; nothing is drawn twice.
 *
 * @since 0.1.0
 */
import { useLayoutEffect, useRef } from "preact/hooks"
import { makeWriter, type Writer } from "./Renderer.js"

interface Drawn {
  readonly writer: Writer
  readonly text: string
  readonly ended: boolean
}

const advance = (root: HTMLElement, before: Drawn | undefined, text: string, arriving: boolean): Drawn => {
  const goesOn = before !== undefined && text.startsWith(before.text) && (!before.ended || text === before.text)
  const writer = goesOn ? before.writer : makeWriter(root)
  const from = goesOn ? before.text.length : 0
  if (from < text.length) writer.write(text.slice(from))
  const ended = goesOn && before.ended
  if (!arriving && !ended) writer.end()
  return { writer, text, ended: ended || !arriving }
}

/**
 * - `text`: all of it so far
 * - `arriving`: whether more of it may come; what could still become markup is held back until then
 *
 * @since 0.1.0
 * @category models
 */
export interface MarkdownProps {
  readonly text: string
  readonly arriving?: boolean | undefined
  readonly class?: string | undefined
}

/**
 * Draws the text. A text that continues the one before is continued, any other one is drawn anew.
 *
 * @since 0.1.0
 * @category components
 */
export const Markdown = ({ arriving = false, class: name = "", text }: MarkdownProps) => {
  const root = useRef<HTMLDivElement>(null)
  const drawn = useRef<Drawn>()
  useLayoutEffect(() => {
    if (root.current) drawn.current = advance(root.current, drawn.current, text, arriving)
  }, [text, arriving])
  return <div ref={root} class={`markdown ${name}`} dir="auto" />
}
