/**
 * The replay page: its head, the timeline, and below it the answer, the events and the details; or two runs side by
 * side.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import { useEffect, useLayoutEffect, useRef } from "preact/hooks"
import * as TraceLink from "../../domain/TraceLink.js"
import { language, languages, setLanguage, t } from "../i18n/index.js"
import { setTheme, theme, themes } from "../Theme.js"
import { when } from "../ui/Format.js"
import { Icon } from "../ui/Icon.js"
import { Answer, Chip } from "./Answer.js"
import { Comparison } from "./Comparison.js"
import { EventList } from "./EventList.js"
import * as Format from "./Format.js"
import { Inspector } from "./Inspector.js"
import { onKey } from "./Keys.js"
import * as Recording from "./Recording.js"
import type { Replay } from "./Replay.js"
import { Start, Unsound } from "./Start.js"
import { Timeline } from "./Timeline.js"
import * as Tone from "./Tone.js"
import * as Trace from "./Trace.js"
import { traceUrl } from "./TraceUrl.js"
import { Transport } from "./Transport.js"

const download = (recording: Recording.Recording) => {
  const blob = new Blob([...Trace.write(recording.end, Recording.envelopes(recording))], {
    type: "application/x-ndjson"
  })
  const url = URL.createObjectURL(blob)
  const link = document.createElement("a")
  link.href = url
  link.download = `${recording.end.runId}.jsonl`
  link.click()
  // The browser has taken hold of it by then.
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}

const Versions = ({ onFile, replay }: { readonly replay: Replay; readonly onFile: () => void }) => {
  const { beside, versions } = replay
  if (beside.value !== undefined) {
    return (
      <button type="button" class="quiet" onClick={() => replay.compareWith(undefined)}>
        <Icon name="close" /> {t("replay.compare.stop")}
      </button>
    )
  }
  return (
    <select
      id="compare"
      aria-label={t("replay.compare")}
      value=""
      onChange={({ currentTarget }) => {
        const { value } = currentTarget
        currentTarget.value = ""
        if (value === "file") onFile()
        else if (value !== "") replay.compareWith(value)
      }}
    >
      <option value="">{t("replay.compare.with")}</option>
      {versions.value.map(({ createdAt, model, runId, status }) => (
        <option key={runId} value={runId}>
          {t("replay.compare.version", when(createdAt), model, t(`replay.status.${status}`))}
        </option>
      ))}
      <option value="file">{t("replay.compare.file")}</option>
    </select>
  )
}

const Preferences = () => (
  <div class="group">
    <select
      aria-label={t("theme.switch")}
      value={theme.value}
      onChange={({ currentTarget }) => setTheme(currentTarget.value)}
    >
      {themes.map((one) => (
        <option key={one} value={one}>
          {t(`theme.${one}`)}
        </option>
      ))}
    </select>
    <select
      aria-label={t("language.switch")}
      value={language.value}
      onChange={({ currentTarget }) => setLanguage(currentTarget.value)}
    >
      {Object.entries(languages).map(([tag, name]) => (
        <option key={tag} value={tag} lang={tag}>
          {name}
        </option>
      ))}
    </select>
  </div>
)

const keys = [
  ["Space", "replay.keys.play"],
  ["← →", "replay.keys.step"],
  ["Home End", "replay.keys.ends"],
  ["[ ]", "replay.keys.checkpoints"],
  ["+ - 0", "replay.keys.zoom"],
  ["/", "replay.keys.search"]
] as const

const Keys = () => (
  <>
    <button type="button" class="plain wide-only" popovertarget="keys">
      {t("replay.keys")}
    </button>
    <div id="keys" class="keys" popover="auto">
      <dl>
        {keys.map(([names, meaning]) => (
          <>
            <dt>
              {names.split(" ").map((name) => (
                <kbd key={name}>{name}</kbd>
              ))}
            </dt>
            <dd>{t(meaning)}</dd>
          </>
        ))}
      </dl>
    </div>
  </>
)

interface HeadProps {
  readonly replay: Replay
  readonly onOpen: () => void
  readonly onBeside: () => void
}

const Head = ({ onBeside, onOpen, replay }: HeadProps) => {
  const { main, recording, state } = replay
  const tape = main.value
  const now = state.value
  const none = Recording.size(recording.value) === 0
  const question = tape?.question.value ?? ""
  const trace = TraceLink.to(traceUrl, now.trace)
  const conversation = tape?.snapshot.value?.conversationId ?? ""
  return (
    <header class="head">
      {tape?.file !== true && (
        <a class="button plain" href={conversation === "" ? "/" : `/#${encodeURIComponent(conversation)}`}>
          <Icon name="arrow" /> {t("replay.back")}
        </a>
      )}
      <h1>{t("replay.title")}</h1>
      {tape !== undefined && (
        <span class={question === "" ? "name id" : "name"} title={tape.name} dir="auto">
          {question === "" ? tape.name : question}
        </span>
      )}
      {tape?.file === true && (
        <button
          type="button"
          class="plain"
          aria-label={t("replay.closeFile")}
          title={t("replay.closeFile")}
          onClick={() => replay.closeFile()}
        >
          <Icon name="close" />
        </button>
      )}
      {now.start !== undefined && (
        <>
          <Chip tone={Tone.ofStatus(now.status)}>{t(`replay.status.${now.status}`)}</Chip>
          <span class="soft model">{now.start.model}</span>
        </>
      )}
      <span class="grow" />
      <button type="button" class="plain narrow-only" popovertarget="tools" aria-label={t("replay.more")}>
        <Icon name="more" />
      </button>
      <div id="tools" class="tools" popover="auto">
        <Keys />
        {trace !== undefined && (
          <a
            class="button quiet"
            id="trace"
            href={trace}
            target="_blank"
            rel="noopener noreferrer"
            title={t("replay.traceHint")}
          >
            {t("replay.trace")}
          </a>
        )}
        {!none && <Versions replay={replay} onFile={onBeside} />}
        <button type="button" class="quiet" id="open" title={t("replay.openHint")} onClick={onOpen}>
          {t("replay.open")}
        </button>
        {tape?.file !== true && (
          <button
            type="button"
            class="quiet"
            id="download"
            title={t("replay.download")}
            disabled={none || tape?.link.value === "loading"}
            onClick={() => download(recording.value)}
          >
            <Icon name="download" /> {t("replay.downloadShort")}
          </button>
        )}
        <Preferences />
      </div>
    </header>
  )
}

const Notices = ({ replay }: { readonly replay: Replay }) => {
  const { main, recording } = replay
  const tape = main.value
  if (tape === undefined) return null
  const seen = recording.value.end.seq
  const all = tape.stored.value
  return (
    <>
      {tape.link.value === "loading" && (
        <div
          class="loading"
          role="progressbar"
          aria-label={t("common.loading")}
          aria-valuemin={0}
          aria-valuemax={all}
          aria-valuenow={seen}
        >
          <div style={{ width: `${all === 0 ? 0 : (100 * seen) / all}%` }} />
          <span class="soft">
            {tape.file
              ? t("replay.reading", Format.number(seen))
              : t("replay.loading", Format.number(seen), Format.number(all))}
          </span>
        </div>
      )}
      {tape.link.value === "lost" && tape.trouble.value === undefined && (
        <p class="notice" role="status">
          {t("replay.lost")}
        </p>
      )}
      {tape.removed.value && (
        <p class="notice" role="status">
          {t("replay.removed")}
        </p>
      )}
      <Unsound tape={tape} kept={Recording.size(recording.value)} />
    </>
  )
}

const views = ["answer", "events", "details"] as const

const Views = ({ replay }: { readonly replay: Replay }) => {
  const view = useSignal<(typeof views)[number]>("answer")
  return (
    <div class="panes" data-view={view.value}>
      <nav class="tabs" aria-label={t("replay.views")}>
        {views.map((one) => (
          <button
            key={one}
            type="button"
            data-of={one}
            aria-pressed={view.value === one}
            onClick={() => {
              view.value = one
            }}
          >
            {t(`replay.tab.${one}`)}
          </button>
        ))}
      </nav>
      <Answer replay={replay} />
      <EventList replay={replay} />
      <Inspector replay={replay} />
    </div>
  )
}

/** Where the replay rests, for those who listen. While it plays or follows, it does not say every word. */
const Said = ({ replay }: { readonly replay: Replay }) => {
  const { open, player, recording, settled } = replay
  const { following, playing, seq } = player.value
  const quiet = playing || (following && open.value) || settled.value !== seq
  return (
    <p class="visually-hidden" role="status">
      {quiet ? "" : Format.place(recording.value, seq)}
    </p>
  )
}

/** On a small screen the list, and the search with it, may be out of view. */
const focusSearch = () => {
  const search = document.getElementById("search")
  if (search?.checkVisibility() !== false) return search?.focus()
  document.querySelector<HTMLElement>('[data-of="events"]')?.click()
  requestAnimationFrame(() => search.focus())
}

/** Files that are dropped anywhere on the page are opened; a second one is put beside the first. */
const useDrop = (replay: Replay) => {
  const over = useSignal(false)
  useEffect(() => {
    const drag = (event: DragEvent) => {
      if (event.dataTransfer?.types.includes("Files") !== true) return
      event.preventDefault()
      over.value = event.type === "dragover"
    }
    const drop = (event: DragEvent) => {
      drag(event)
      const [first, second] = event.dataTransfer?.files ?? []
      if (first !== undefined) replay.openFile(first)
      if (second !== undefined) replay.compareWith(second)
    }
    addEventListener("dragover", drag)
    addEventListener("dragleave", drag)
    addEventListener("drop", drop)
    return () => {
      removeEventListener("dragover", drag)
      removeEventListener("dragleave", drag)
      removeEventListener("drop", drop)
    }
  }, [replay, over])
  return over
}

/**
 * The whole page.
 *
 * @since 0.1.0
 * @category components
 */
export const Page = ({ replay }: { readonly replay: Replay }) => {
  const file = useRef<HTMLInputElement>(null)
  const toBeside = useRef(false)
  const over = useDrop(replay)
  const { beside, main, recording } = replay
  const tape = main.value

  // Before the first paint: what is seen answers keys.
  useLayoutEffect(() => {
    const key = (event: KeyboardEvent) => onKey(event, replay, () => focusSearch())
    addEventListener("keydown", key)
    return () => removeEventListener("keydown", key)
  }, [replay])

  const choose = (besideIt: boolean) => () => {
    toBeside.current = besideIt
    file.current?.click()
  }
  const empty = Recording.size(recording.value) === 0 && tape?.removed.value !== true
  return (
    <div class="replay" data-comparing={beside.value !== undefined}>
      <Head replay={replay} onOpen={choose(false)} onBeside={choose(true)} />
      <input
        ref={file}
        id="file"
        type="file"
        accept=".jsonl,.ndjson,application/x-ndjson"
        hidden
        onChange={({ currentTarget }) => {
          const [chosen] = currentTarget.files ?? []
          if (chosen !== undefined) (toBeside.current ? replay.compareWith : replay.openFile)(chosen)
          // The same file may be chosen again.
          currentTarget.value = ""
        }}
      />
      {empty ? (
        <Start tape={tape} onOpen={choose(false)} />
      ) : (
        <main class="stage">
          <Notices replay={replay} />
          <Transport replay={replay} />
          <Timeline replay={replay} />
          {beside.value === undefined ? <Views replay={replay} /> : <Comparison replay={replay} />}
          <Said replay={replay} />
        </main>
      )}
      {over.value && <div class="drop">{t("replay.drop")}</div>}
    </div>
  )
}
