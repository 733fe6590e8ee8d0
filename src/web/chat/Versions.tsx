/**
 * Leads from one answer of a question to another, or shows all of them side by side.
 *
 * @since 0.1.0
 */
import type { Signal } from "@preact/signals"
import { t } from "../i18n/index.js"
import { Icon } from "../ui/Icon.js"

/**
 * `chosen` is the version that the reader went to; `compared` whether all are shown.
 *
 * @since 0.1.0
 * @category components
 */
export const Versions = ({
  chosen,
  compared,
  runIds,
  shown
}: {
  readonly runIds: ReadonlyArray<string>
  readonly shown: string | undefined
  readonly chosen: Signal<string | undefined>
  readonly compared: Signal<boolean>
}) => {
  const place = runIds.indexOf(shown ?? "")
  const go = (to: number) => () => {
    chosen.value = runIds[to]
  }
  const toggle = () => {
    compared.value = !compared.value
  }
  return (
    <fieldset class="versions">
      <legend class="visually-hidden">{t("versions.label")}</legend>
      {!compared.value && (
        <>
          <button
            type="button"
            class="plain"
            aria-label={t("versions.before")}
            disabled={place <= 0}
            onClick={go(place - 1)}
          >
            <Icon name="left" />
          </button>
          <span>{t("versions.place", place + 1, runIds.length)}</span>
          <button
            type="button"
            class="plain"
            aria-label={t("versions.after")}
            disabled={place >= runIds.length - 1}
            onClick={go(place + 1)}
          >
            <Icon name="right" />
          </button>
        </>
      )}
      <button type="button" class="plain" aria-pressed={compared.value} onClick={toggle}>
        <Icon name="columns" />
        {t("versions.compare")}
      </button>
    </fieldset>
  )
}
