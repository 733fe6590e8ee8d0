/**
 * What an answer cost: its model, its tokens and its time.
 *
 * @since 0.1.0
 */
import type { Snapshot } from "../../domain/Snapshot.js"
import { t } from "../i18n/index.js"
import { dollars, duration, number } from "../ui/Format.js"

/**
 * One line of facts.
 *
 * @since 0.1.0
 * @category components
 */
export const Facts = ({ run }: { readonly run: Snapshot }) => {
  const { attempt, mode, model, timing, usage } = run
  const facts = [
    model,
    mode === "plan" ? t("facts.plan") : "",
    usage.totalTokens > 0 ? t("facts.tokens", number(usage.totalTokens), usage.totalTokens) : "",
    timing && timing.timeToFirstTokenMs >= 0 ? t("facts.first", duration(timing.timeToFirstTokenMs)) : "",
    timing ? t("facts.took", duration(timing.durationMs)) : "",
    usage.costUsd !== undefined && usage.costUsd > 0 ? dollars(usage.costUsd) : "",
    attempt > 1 ? t("facts.attempt", attempt) : ""
  ].filter(Boolean)
  const parts = t("facts.usage", number(usage.inputTokens), number(usage.outputTokens))
  return (
    <p class="facts" title={parts}>
      {facts.map((fact) => (
        <span key={fact}>{fact}</span>
      ))}
    </p>
  )
}
