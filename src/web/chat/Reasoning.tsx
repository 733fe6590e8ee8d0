/**
 * What the model thought, which may be folded away, and how long it took.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import type { SnapshotPart } from "../../domain/Snapshot.js"
import { t } from "../i18n/index.js"
import { useNow } from "../ui/Clock.js"
import { duration } from "../ui/Format.js"
import { Icon } from "../ui/Icon.js"

/**
 * A thought; `arriving` while it is being thought. It is open when it is seen coming, and closed when it was there
 * before it was looked at; nobody but the reader opens or closes it afterwards, so that nothing jumps.
 *
 * @since 0.1.0
 * @category components
 */
export const Reasoning = ({
  arriving,
  part
}: {
  readonly arriving: boolean
  readonly part: Extract<SnapshotPart, { readonly text: string }>
}) => {
  const open = useSignal(arriving)
  const now = useNow(arriving)
  const ms = (arriving ? now : part.endedAt) - part.startedAt
  const thought = ms < 100 ? t("reasoning.moment") : t("reasoning.took", duration(ms))
  return (
    <details
      class="reasoning"
      open={open.value}
      onToggle={(event) => {
        open.value = event.currentTarget.open
      }}
    >
      <summary>
        <Icon name="thought" />
        <span>{arriving ? t("reasoning.now", duration(ms)) : thought}</span>
      </summary>
      <div class="thought" dir="auto">
        {part.text}
      </div>
    </details>
  )
}
