/**
 * How the next question is answered: by which model, with thoughts or without, changing things or only planning, about
 * which document.
 *
 * @since 0.1.0
 */
import type { Signal } from "@preact/signals"
import { t } from "../i18n/index.js"
import { Icon, type IconName } from "../ui/Icon.js"
import { usePage } from "./Context.js"

const Toggle = ({
  icon,
  label,
  on,
  title
}: {
  readonly on: Signal<boolean>
  readonly icon: IconName
  readonly label: string
  readonly title: string
}) => (
  <button
    type="button"
    class="toggle"
    aria-pressed={on.value}
    title={title}
    onClick={() => {
      on.value = !on.value
    }}
  >
    <Icon name={icon} />
    {label}
  </button>
)

/**
 * The choices of the next question.
 *
 * @since 0.1.0
 * @category components
 */
export const Manner = () => {
  const { settings } = usePage()
  const { choose, document, modelId, models, plan, thinking } = settings
  const standard = models.value.find(({ isDefault }) => isDefault)?.modelId
  return (
    <>
      {models.value.length > 1 && (
        <select
          class="model"
          aria-label={t("composer.model")}
          value={modelId.value ?? standard}
          onChange={(event) => choose(event.currentTarget.value)}
        >
          {models.value.map((model) => (
            <option key={model.modelId} value={model.modelId}>
              {model.modelId}
            </option>
          ))}
        </select>
      )}
      <Toggle on={thinking} icon="thought" label={t("composer.think")} title={t("composer.thinkHelp")} />
      <Toggle on={plan} icon="document" label={t("composer.plan")} title={t("composer.planHelp")} />
      {document.value !== undefined && (
        <span class="chip">
          <Icon name="document" />
          <bdi>{document.value.title}</bdi>
          <button
            type="button"
            class="plain"
            aria-label={t("documents.leave")}
            onClick={() => {
              document.value = undefined
            }}
          >
            <Icon name="close" />
          </button>
        </span>
      )}
    </>
  )
}
