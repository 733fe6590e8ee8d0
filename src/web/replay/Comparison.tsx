/**
 * Two runs side by side at one moment: the same turns beside each other, with what differs marked.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { useMemo } from "preact/hooks"
import type * as RunState from "../../domain/RunState.js"
import { t } from "../i18n/index.js"
import { Markdown } from "../markdown/Markdown.js"
import { CallCard, Chip, ending } from "./Answer.js"
import * as Compare from "./Compare.js"
import * as Format from "./Format.js"
import * as Recording from "./Recording.js"
import { Region } from "./Region.js"
import type { Replay } from "./Replay.js"
import { Refused, Unsound } from "./Start.js"
import { BesideTimeline } from "./Timeline.js"
import * as Tone from "./Tone.js"

type Side = "left" | "right"

const Marked = ({ changes, side }: { readonly changes: ReadonlyArray<Compare.Change>; readonly side: Side }) => {
  let place = 0
  return (
    <p class="marked" dir="auto">
      {changes.map(({ in: where, text }) => {
        place += text.length
        if (where === "both") return <span key={place}>{text}</span>
        if (where !== side) return null
        return side === "left" ? <del key={place}>{text}</del> : <ins key={place}>{text}</ins>
      })}
    </p>
  )
}

const Texts = ({
  left,
  marked,
  right
}: {
  readonly left?: string | undefined
  readonly right?: string | undefined
  readonly marked: boolean
}) => {
  const changes = useMemo(() => (marked ? Compare.words(left ?? "", right ?? "") : []), [left, right, marked])
  const side = (name: Side, text: string | undefined) => {
    if (text === undefined) return <p class="soft missing">{t("replay.compare.missing")}</p>
    return marked && left !== undefined && right !== undefined ? (
      <Marked changes={changes} side={name} />
    ) : (
      <Markdown text={text} />
    )
  }
  return (
    <>
      <div class="cell">{side("left", left)}</div>
      <div class="cell">{side("right", right)}</div>
    </>
  )
}

const Calls = ({
  left,
  right
}: {
  readonly left?: RunState.Call | undefined
  readonly right?: RunState.Call | undefined
}) => {
  const side = (call: RunState.Call | undefined) =>
    call === undefined ? (
      <p class="soft missing">{t("replay.compare.missing")}</p>
    ) : (
      <CallCard call={call} current={false} />
    )
  return (
    <>
      <div class="cell">{side(left)}</div>
      <div class="cell">{side(right)}</div>
    </>
  )
}

const Head = ({
  name,
  recording,
  state
}: {
  readonly name: string
  readonly recording: Recording.Recording
  readonly state: RunState.RunState
}) => {
  const fact = (title: string, value: ComponentChildren) => (
    <>
      <dt>{title}</dt>
      <dd>{value}</dd>
    </>
  )
  const first = state.firstTokenAt === undefined ? "—" : Format.time(state.firstTokenAt - state.createdAt)
  const end = ending(state)
  return (
    <div class="cell head">
      <h2>
        {name} <Chip tone={Tone.ofStatus(state.status)}>{t(`replay.status.${state.status}`)}</Chip>
      </h2>
      <p class="soft">{state.start?.model}</p>
      <dl class="facts wide">
        {fact(t("replay.compare.events"), Format.number(state.seq))}
        {fact(t("replay.compare.duration"), Format.time(Recording.timeAt(recording, state.seq, "real")))}
        {fact(t("replay.compare.firstToken"), first)}
        {fact(t("replay.compare.tokens"), Format.number(state.usage.totalTokens))}
      </dl>
      {end !== undefined && <p class={`ending chip-${end.tone}`}>{end.text}</p>}
    </div>
  )
}

const textOf = (rows: ReadonlyArray<Compare.Row>, side: Side): string =>
  rows.map((row) => (row.is === "text" ? (row[side] ?? "") : "")).join("\n\n")

/**
 * The run and the one beside it.
 *
 * @since 0.1.0
 * @category components
 */
export const Comparison = ({ replay }: { readonly replay: Replay }) => {
  const { beside, besideState, recording, settled, shown, state } = replay
  const marked = useSignal(true)
  const other = besideState.value
  const rows = useMemo(() => (other === undefined ? [] : Compare.align(state.value, other)), [state.value, other])
  // While a hand moves, words are neither compared nor counted.
  const resting = settled.value === shown.value
  const likeness = useMemo(
    () => (resting ? Compare.likeness(textOf(rows, "left"), textOf(rows, "right")) : undefined),
    [rows, resting]
  )
  if (other === undefined || beside.value === undefined) return null
  let turn = 0
  let place = 0
  return (
    <Region id="comparison" class="comparison" label={t("replay.compare")}>
      <Refused tape={beside.value} />
      <Unsound tape={beside.value} kept={Recording.size(beside.value.recording.value)} />
      <BesideTimeline replay={replay} name={t("replay.compare.right")} />
      <div class="row options">
        <label>
          <input
            type="checkbox"
            checked={marked.value}
            onChange={({ currentTarget }) => {
              marked.value = currentTarget.checked
            }}
          />{" "}
          {t("replay.compare.words")}
        </label>
        {likeness !== undefined && (
          <span class="soft">{t("replay.compare.like", `${Math.round(likeness * 100)} %`)}</span>
        )}
      </div>
      <div class="pairs">
        <Head name={t("replay.compare.left")} recording={recording.value} state={state.value} />
        <Head name={t("replay.compare.right")} recording={beside.value.recording.value} state={other} />
        {rows.map((row) => {
          const first = row.iteration !== turn
          turn = row.iteration
          place++
          return (
            <div key={place} class="pair">
              {first && <h3 class="soft">{t("replay.turn", row.iteration)}</h3>}
              {row.is === "call" ? (
                <Calls left={row.left} right={row.right} />
              ) : (
                <div class={row.is === "reasoning" ? "pair thought" : "pair"}>
                  <Texts left={row.left} right={row.right} marked={marked.value && resting} />
                </div>
              )}
            </div>
          )
        })}
      </div>
    </Region>
  )
}
