/**
 * What a person is asked before something is changed: what will happen, and the answers.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import type { DecideBody } from "../../client/Answers.js"
import type { Snapshot } from "../../domain/Snapshot.js"
import { t } from "../i18n/index.js"
import { useNow } from "../ui/Clock.js"
import { duration } from "../ui/Format.js"
import { Icon } from "../ui/Icon.js"
import { Change } from "./Change.js"
import { usePage } from "./Context.js"
import { Editor } from "./Editor.js"
import { Rejection } from "./Rejection.js"

type Request = Snapshot["pendingApprovals"][number]

const questionOf = ({ cause, reason }: Request): string => {
  if (reason === "in_doubt") return t("approval.doubt")
  if (cause === "conflict") return t("approval.conflict")
  return reason === "effectful" ? t("approval.effect") : t("approval.write")
}

/** How long there is to decide, once it is little enough to matter. */
const Expiry = ({ at }: { readonly at: number }) => {
  const left = at - useNow(true)
  if (left > 24 * 3_600_000) return null
  return (
    <span class={`expiry ${left < 60_000 ? "soon" : ""}`} role="timer">
      <Icon name="clock" />
      {left > 0 ? t("approval.expires", duration(left)) : t("approval.expiring")}
    </span>
  )
}

/**
 * The card of a request.
 *
 * @since 0.1.0
 * @category components
 */
export const ApprovalCard = ({ request, runId }: { readonly request: Request; readonly runId: string }) => {
  const { attempt, thread } = usePage()
  const mode = useSignal<"ask" | "edit" | "reject">("ask")
  const busy = useSignal(false)
  const doubt = request.reason === "in_doubt"
  const send = async (answer: Omit<DecideBody, "previewHash">) => {
    busy.value = true
    await attempt(() => thread.decide(runId, request.approvalId, { ...answer, previewHash: request.previewHash }))
    busy.value = false
  }
  const back = () => {
    mode.value = "ask"
  }
  const question = questionOf(request)
  return (
    <section class="approval" aria-label={question}>
      <header>
        <Icon name="question" />
        <strong>{question}</strong>
        <code class="soft">{request.toolName}</code>
        <Expiry at={request.expiresAt} />
      </header>
      {mode.value !== "edit" && <Change input={request.input} preview={request.preview} />}
      {mode.value === "edit" && (
        <Editor
          input={request.input}
          busy={busy.value}
          cancel={back}
          save={(input) => send({ decision: "edit", input })}
        />
      )}
      {mode.value === "reject" && (
        <Rejection busy={busy.value} cancel={back} reject={(reason) => send({ decision: "reject", ...reason })} />
      )}
      {mode.value === "ask" && !doubt && (
        <div class="row">
          <button type="button" disabled={busy.value} onClick={() => send({ decision: "approve" })}>
            <Icon name="check" />
            {t("approval.approve")}
          </button>
          {(["edit", "reject"] as const).map((wanted) => (
            <button
              key={wanted}
              type="button"
              class="quiet"
              disabled={busy.value}
              onClick={() => {
                mode.value = wanted
              }}
            >
              {t(`approval.${wanted}`)}
            </button>
          ))}
        </div>
      )}
      {doubt && (
        <div class="row">
          {(["retry", "applied", "abandon"] as const).map((decision, index) => (
            <button
              key={decision}
              type="button"
              class={index === 0 ? "" : "quiet"}
              disabled={busy.value}
              onClick={() => send({ decision })}
            >
              {t(`approval.${decision}`)}
            </button>
          ))}
        </div>
      )}
    </section>
  )
}
