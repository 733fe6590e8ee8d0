/**
 * What stands where a replay would be, while there is none: why, and how to open a trace.
 *
 * @since 0.1.0
 */

import { t } from "../i18n/index.js"
import { Icon } from "../ui/Icon.js"
import { isSignedOut } from "./Source.js"
import type * as Tape from "./Tape.js"

interface Words {
  readonly title: string
  readonly text: string
  readonly signIn?: boolean
}

/** Says what is wrong with a file. */
const wrongWith = (trouble: Exclude<Tape.Trouble, { is: "refused" }>, name: string): string => {
  if (trouble.is === "unreadable") return t("replay.problem.unreadable", name)
  const { problem } = trouble
  const why = () => {
    switch (problem.is) {
      case "not-an-envelope":
        return t("replay.problem.not-an-envelope", problem.field)
      case "unknown-event":
        return t("replay.problem.unknown-event", problem.type)
      case "hole":
        return t("replay.problem.hole", problem.expected, problem.found)
      case "version":
        return t("replay.problem.version", problem.version)
      default:
        return t(`replay.problem.${problem.is}`)
    }
  }
  return t("replay.problem.line", problem.line, why())
}

const wordsOf = (tape: Tape.Tape | undefined): Words | undefined => {
  if (tape === undefined) return { title: t("replay.start.title"), text: t("replay.start.text") }
  const trouble = tape.trouble.value
  if (trouble === undefined) {
    if (tape.link.value === "lost") return { title: t("replay.away.title"), text: t("replay.away.text") }
    return undefined
  }
  if (trouble.is !== "refused")
    return { title: t("replay.problem.title", tape.name), text: wrongWith(trouble, tape.name) }
  if (isSignedOut(trouble.error)) {
    return { title: t("replay.signedOut.title"), text: t("replay.signedOut.text"), signIn: true }
  }
  if (trouble.error.status === 404) return { title: t("replay.gone.title"), text: t("replay.gone.text") }
  return { title: t("replay.refused.title"), text: trouble.error.message }
}

/**
 * Says of a file that is shown in part what is wrong with the rest.
 *
 * @since 0.1.0
 * @category components
 */
export const Unsound = ({ kept, tape }: { readonly tape: Tape.Tape; readonly kept: number }) => {
  const trouble = tape.trouble.value
  if (trouble === undefined || trouble.is === "refused") return null
  return (
    <p class="notice notice-bad" role="alert">
      <b>{t("replay.problem.title", tape.name)}</b> {wrongWith(trouble, tape.name)} {t("replay.problem.kept", kept)}
    </p>
  )
}

/**
 * Says why the server does not show a run.
 *
 * @since 0.1.0
 * @category components
 */
export const Refused = ({ tape }: { readonly tape: Tape.Tape }) => {
  if (tape.trouble.value?.is !== "refused") return null
  const words = wordsOf(tape)
  return (
    <p class="notice notice-bad" role="alert">
      <b>{words?.title}</b> {words?.text}
    </p>
  )
}

/**
 * The page without a recording.
 *
 * @since 0.1.0
 * @category components
 */
export const Start = ({ onOpen, tape }: { readonly tape: Tape.Tape | undefined; readonly onOpen: () => void }) => {
  const words = wordsOf(tape)
  if (words === undefined) {
    return (
      <main class="start" aria-busy="true">
        <p class="soft">{t("common.loading")}</p>
      </main>
    )
  }
  return (
    <main class="start">
      <div class="panel" role={tape === undefined ? undefined : "alert"}>
        <h2>{words.title}</h2>
        <p>{words.text}</p>
        <p class="row">
          {words.signIn === true && (
            <a class="button" href="/">
              {t("replay.signedOut.go")}
            </a>
          )}
          <button type="button" class={words.signIn === true ? "quiet" : ""} onClick={onOpen}>
            <Icon name="document" /> {t("replay.open")}
          </button>
        </p>
        <p class="soft">{t("replay.openHint")}</p>
      </div>
    </main>
  )
}
