/**
 * How a run ended, when that needs words, with the way on.
 *
 * @since 0.1.0
 */
import type { Snapshot } from "../../domain/Snapshot.js"
import { t } from "../i18n/index.js"
import { Icon } from "../ui/Icon.js"
import { usePage } from "./Context.js"
import * as Failure from "./Failure.js"

/**
 * The note under a run that failed, was stopped, or ended early. A failure that can be overcome offers to go on, if it
 * is the run that counts.
 *
 * @since 0.1.0
 * @category components
 */
export const Ending = ({
  again,
  counts,
  run
}: {
  readonly run: Snapshot
  readonly counts: boolean
  readonly again: () => void
}) => {
  const { attempt, following, thread } = usePage()
  const failed = run.status === "failed"
  const failure = run.error === undefined ? Failure.ofEnding(run) : Failure.ofRun(run.error)
  if (failure === undefined) return null
  const { canContinue, run: watched, starting } = thread.live.value
  const goOn = () => {
    following.value = true
    void attempt(thread.goOn)
  }
  return (
    <div class={`ending ${failed ? "failed" : ""}`}>
      <p>
        <Icon name={failed ? "alert" : "stop"} />
        <span>
          <strong>{t(failure.text)}</strong>
          {failure.detail !== undefined && <bdi class="detail"> {failure.detail}</bdi>}
        </span>
      </p>
      {failed && counts && (
        <div class="row">
          {canContinue && watched?.runId === run.runId && (
            <button type="button" disabled={starting} onClick={goOn}>
              <Icon name="play" />
              {t("run.continue")}
            </button>
          )}
          <button type="button" class="quiet" onClick={again}>
            <Icon name="again" />
            {t("run.again")}
          </button>
        </div>
      )}
    </div>
  )
}
