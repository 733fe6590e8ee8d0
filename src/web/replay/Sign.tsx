/**
 * A button that is a sign. Its name, and the key that does the same, are in its hint.
 *
 * @since 0.1.0
 */
import { Icon, type IconName } from "../ui/Icon.js"

interface SignProps {
  readonly name: IconName
  readonly label: string
  readonly onClick: () => void
  readonly disabled?: boolean
  readonly class?: string
  readonly id?: string
  readonly hint?: string
}

/**
 * A button that shows a sign and is named for those who do not see it.
 *
 * @since 0.1.0
 * @category components
 */
export const Sign = ({ class: look = "plain", disabled = false, hint, id, label, name, onClick }: SignProps) => (
  <button
    id={id}
    type="button"
    class={look}
    aria-label={label}
    title={hint === undefined ? label : `${label} (${hint})`}
    disabled={disabled}
    onClick={onClick}
  >
    <Icon name={name} />
  </button>
)
