/**
 * What may be larger than its place and scrolls in it, with the keyboard too.
 *
 * @since 0.1.0
 */
import type { ComponentChildren } from "preact"

/**
 * A region of its own, under a name for those who do not see it.
 *
 * @since 0.1.0
 * @category components
 */
export const Scroll = ({
  children,
  class: name = "",
  label
}: {
  readonly label: string
  readonly class?: string
  readonly children: ComponentChildren
}) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard must reach what scrolls
  <section class={`scroll ${name}`} aria-label={label} tabIndex={0}>
    {children}
  </section>
)
