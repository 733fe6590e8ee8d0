/**
 * A change as a tool announces it: what becomes of a text, line by line or as it will read, or all that is known of it.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import { t } from "../i18n/index.js"
import { Markdown } from "../markdown/Markdown.js"
import { Scroll } from "../ui/Scroll.js"
import { diffLines, of, show } from "./Preview.js"

const marks = { added: "+", removed: "−", same: "" } as const

const Diff = ({ diff }: { readonly diff: string }) => (
  <Scroll class="diff" label={t("change.diff")}>
    {diffLines(diff).map(({ change, text }, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other name than their place
      <div key={index} class={change}>
        <span class="mark" aria-hidden="true">
          {marks[change]}
        </span>
        {change === "added" && <ins dir="auto">{text}</ins>}
        {change === "removed" && <del dir="auto">{text}</del>}
        {change === "same" && <span dir="auto">{text}</span>}
      </div>
    ))}
  </Scroll>
)

/**
 * The change, with a choice between its views when there are several.
 *
 * @since 0.1.0
 * @category components
 */
export const Change = ({ input, preview: json }: { readonly input: unknown; readonly preview: unknown }) => {
  const { action, after, diff, title, titleBefore } = of(json)
  const views = [
    ...(diff !== undefined ? (["diff"] as const) : []),
    ...(after !== undefined ? (["after"] as const) : []),
    "all" as const
  ]
  const chosen = useSignal<(typeof views)[number]>(views[0] ?? "all")
  const view = views.includes(chosen.value) ? chosen.value : "all"
  return (
    <div class="change">
      {(action !== undefined || title !== undefined) && (
        <p class="about" dir="auto">
          {action !== undefined && <span class="action">{action}</span>}
          {title !== undefined && <bdi class="title">{title}</bdi>}
          {titleBefore !== undefined && <bdi class="soft">{t("change.before", titleBefore)}</bdi>}
        </p>
      )}
      {views.length > 1 && (
        <fieldset class="views">
          <legend class="visually-hidden">{t("change.views")}</legend>
          {views.map((name) => (
            <button
              key={name}
              type="button"
              class="plain"
              aria-pressed={view === name}
              onClick={() => {
                chosen.value = name
              }}
            >
              {t(`change.${name}`)}
            </button>
          ))}
        </fieldset>
      )}
      {view === "diff" && diff !== undefined && <Diff diff={diff} />}
      {view === "after" && after !== undefined && (
        <Scroll class="after" label={t("change.after")}>
          <Markdown text={after} />
        </Scroll>
      )}
      {view === "all" && (
        <Scroll label={t("change.all")}>
          <pre dir="auto">{show(json ?? input)}</pre>
        </Scroll>
      )}
    </div>
  )
}
