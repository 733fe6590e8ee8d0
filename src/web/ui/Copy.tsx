/**
 * A button that puts a text into the clipboard, and says so.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import { t } from "../i18n/index.js"
import { Icon } from "./Icon.js"

/** The way of pages that are not served through TLS from elsewhere, where there is no clipboard to write to. */
const copyBySelection = (text: string): boolean => {
  const area = document.createElement("textarea")
  area.value = text
  area.className = "visually-hidden"
  document.body.append(area)
  area.select()
  const done = document.execCommand("copy")
  area.remove()
  return done
}

const copy = async (text: string): Promise<boolean> => {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return copyBySelection(text)
  }
}

/**
 * Copies `text()` when it is pressed.
 *
 * @since 0.1.0
 * @category components
 */
export const Copy = ({ text }: { readonly text: () => string }) => {
  const copied = useSignal(false)
  const press = async () => {
    copied.value = await copy(text())
    setTimeout(() => {
      copied.value = false
    }, 2000)
  }
  const label = copied.value ? t("common.copied") : t("common.copy")
  return (
    <button type="button" class="plain" title={label} aria-label={label} onClick={press}>
      <Icon name={copied.value ? "check" : "copy"} />
    </button>
  )
}
