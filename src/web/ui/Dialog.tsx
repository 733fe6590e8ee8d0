/**
 * A window over the page, with the browser's own manners: Escape closes it, and the focus stays inside and goes back.
 *
 * @since 0.1.0
 */
import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { t } from "../i18n/index.js"
import { Icon } from "./Icon.js"

/**
 * `close` is called whichever way it is closed.
 *
 * @since 0.1.0
 * @category models
 */
export interface DialogProps {
  readonly title: string
  readonly close: () => void
  readonly children: ComponentChildren
  readonly class?: string | undefined
}

/**
 * A window that is open as long as it is there.
 *
 * @since 0.1.0
 * @category components
 */
export const Dialog = ({ children, class: name = "", close, title }: DialogProps) => {
  const root = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    root.current?.showModal()
  }, [])
  const outside = (event: MouseEvent) => {
    if (event.target === root.current) close()
  }
  return (
    // The keyboard's way is Escape, which the browser itself provides.
    // biome-ignore lint/a11y/useKeyWithClickEvents: see above
    <dialog ref={root} class={name} aria-label={title} onClose={close} onClick={outside}>
      <div class="inside">
        <header>
          <h2 dir="auto">{title}</h2>
          <button type="button" class="plain" aria-label={t("common.close")} onClick={close}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
    </dialog>
  )
}
