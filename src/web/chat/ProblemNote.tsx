/**
 * What did not work, in plain words, with the way on.
 *
 * @since 0.1.0
 */
import { t } from "../i18n/index.js"
import { Icon } from "../ui/Icon.js"
import { usePage } from "./Context.js"

/**
 * The note about the last thing that did not work, until it is closed or something else is done.
 *
 * @since 0.1.0
 * @category components
 */
export const ProblemNote = () => {
  const { problem } = usePage()
  const shown = problem.value
  if (shown === undefined) return null
  return (
    <div class="problem" role="alert">
      <Icon name="alert" />
      <span>
        {t(shown.text)}
        {shown.detail !== undefined && <bdi class="detail"> {shown.detail}</bdi>}
      </span>
      {shown.again !== undefined && (
        <button type="button" class="quiet" onClick={shown.again}>
          {t("problem.again")}
        </button>
      )}
      <button
        type="button"
        class="plain"
        aria-label={t("common.close")}
        onClick={() => {
          problem.value = undefined
        }}
      >
        <Icon name="close" />
      </button>
    </div>
  )
}
