/**
 * A question with its answer, or with all its answers side by side.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { t } from "../i18n/index.js"
import { Copy } from "../ui/Copy.js"
import { Icon } from "../ui/Icon.js"
import { Scroll } from "../ui/Scroll.js"
import { Answer } from "./Answer.js"
import { usePage } from "./Context.js"
import { Ending } from "./Ending.js"
import { Facts } from "./Facts.js"
import { textOf } from "./Parts.js"
import { Question } from "./Question.js"
import * as Turns from "./Turns.js"
import { Versions } from "./Versions.js"

/**
 * One version: the answer, how it ended, and what can be done with it.
 *
 * @since 0.1.0
 * @category components
 */
const Version = ({
  again,
  counts,
  earlier,
  runId,
  text
}: {
  readonly runId: string | undefined
  readonly text: string
  readonly earlier: boolean
  readonly counts: boolean
  readonly again: () => void
}) => {
  const { attempt, thread } = usePage()
  const run = runId === undefined ? undefined : thread.run(runId).value.snapshot
  const over = run === undefined ? text !== "" : Turns.isOver(run)
  // The version that counts comes with its conversation; an earlier one when somebody looks at it.
  useEffect(() => {
    if (runId !== undefined && earlier) thread.ensure(runId).catch(() => {})
  }, [runId, earlier, thread])
  const waits = run?.status === "queued" && runId !== thread.currentId.value
  return (
    <>
      <Answer runId={runId} text={text} />
      {run !== undefined && over && <Ending run={run} counts={counts} again={again} />}
      {waits && (
        <p class="row">
          <button type="button" class="quiet" onClick={() => attempt(() => thread.stop(run.runId))}>
            {t("answer.withdraw")}
          </button>
        </p>
      )}
      <div class={`foot ${over ? "" : "coming"}`}>
        {over && <Copy text={() => (run === undefined ? text : textOf(run))} />}
        {over && counts && run !== undefined && (
          <button type="button" class="plain" title={t("run.again")} aria-label={t("run.again")} onClick={again}>
            <Icon name="again" />
          </button>
        )}
        {over && run !== undefined && (
          <a
            class="button plain"
            href={`/runs/${encodeURIComponent(run.runId)}/replay`}
            title={t("run.replay")}
            aria-label={t("run.replay")}
          >
            <Icon name="history" />
          </a>
        )}
        {over && run !== undefined && <Facts run={run} />}
      </div>
    </>
  )
}

/**
 * The turn at a place of the conversation; `last` is the one that can be answered again.
 *
 * @since 0.1.0
 * @category components
 */
export const Turn = ({
  at,
  last,
  turn
}: {
  readonly turn: Turns.Turn
  readonly at: number
  readonly last: boolean
}) => {
  const { attempt, following, settings, thread } = usePage()
  const { question, runIds, text } = turn
  const chosen = useSignal<string | undefined>(undefined)
  const compared = useSignal(false)
  const newest = Turns.newest(turn)
  const shown = runIds.find((runId) => runId === chosen.value) ?? newest
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new version is what the reader wants to see
  useEffect(() => {
    chosen.value = undefined
  }, [newest])
  const again = () => {
    if (newest === undefined) return
    following.value = true
    void attempt(() => thread.again(newest, settings.modelId.peek()))
  }
  const version = (runId: string | undefined) => (
    <Version runId={runId} text={text} earlier={runId !== newest} counts={last && runId === newest} again={again} />
  )
  return (
    <section class="turn" aria-labelledby={`turn-${at}`}>
      <h2 class="visually-hidden" id={`turn-${at}`}>
        {t("turn.label", at + 1)}
      </h2>
      {question !== "" && <Question at={at} text={question} />}
      {runIds.length > 1 && <Versions runIds={runIds} shown={shown} chosen={chosen} compared={compared} />}
      {compared.value && runIds.length > 1 ? (
        <Scroll class="compared" label={t("versions.compared")}>
          {runIds.map((runId, index) => (
            <article key={runId}>
              <h3>{t("versions.name", index + 1)}</h3>
              {version(runId)}
            </article>
          ))}
        </Scroll>
      ) : (
        <article key={runIds.length > 1 ? shown : "only"}>{version(shown)}</article>
      )}
    </section>
  )
}
