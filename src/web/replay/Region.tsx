/**
 * A part of the page that scrolls by itself. It has a name and can be reached with the keyboard.
 *
 * @since 0.1.0
 */
import type { ComponentChildren, Ref } from "preact"

interface RegionProps {
  readonly id: string
  readonly class: string
  readonly label: string
  readonly children: ComponentChildren
  readonly scroller?: Ref<HTMLElement>
  readonly seq?: number
  readonly onScroll?: (element: HTMLElement) => void
}

/**
 * A named part that scrolls. `seq` is the place in the log that it shows.
 *
 * @since 0.1.0
 * @category components
 */
export const Region = ({ children, class: look, id, label, onScroll, scroller, seq }: RegionProps) => (
  <section
    ref={scroller ?? null}
    id={id}
    class={look}
    aria-label={label}
    data-seq={seq}
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
    tabIndex={0}
    onScroll={({ currentTarget }) => onScroll?.(currentTarget)}
  >
    {children}
  </section>
)
