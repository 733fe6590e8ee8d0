/**
 * The run's answer as it stood: what was thought, said and done up to the place on display. The end is in view unless
 * a reader scrolled away from it, and of a long answer the end is what is drawn.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useRef } from "preact/hooks"
import type { AgentEvent } from "../../domain/AgentEvent.js"
import * as RunState from "../../domain/RunState.js"
import { Change } from "../chat/Change.js"
import { t } from "../i18n/index.js"
import { Markdown } from "../markdown/Markdown.js"
import * as Blocks from "./Blocks.js"
import * as Format from "./Format.js"
import { Json } from "./Json.js"
import { Region } from "./Region.js"
import type { Replay } from "./Replay.js"
import type { Tone } from "./Tone.js"

type Item =
  | { readonly is: "block"; readonly key: string; readonly text: string }
  | { readonly is: "thought"; readonly key: string; readonly text: string }
  | { readonly is: "call"; readonly key: string; readonly call: RunState.Call }

/** How many items are drawn at first. */
const window = 60

type Written = Extract<RunState.Part, { readonly text: string }>

const blocks = new WeakMap<RunState.Part, ReadonlyArray<Blocks.Block>>()

/** The blocks of parts that follow each other: a sentence may go on in the next one after a new attempt. */
const blocksOf = (parts: ReadonlyArray<Written>): ReadonlyArray<Blocks.Block> => {
  const [only] = parts
  if (only === undefined) return []
  if (parts.length > 1) return Blocks.split(parts.map(({ text }) => text).join(""))
  const known = blocks.get(only) ?? Blocks.split(only.text)
  blocks.set(only, known)
  return known
}

/** The parts of one kind that end before this place. */
const runUpTo = (parts: ReadonlyArray<RunState.Part>, end: number): ReadonlyArray<Written> => {
  const written: Array<Written> = []
  for (let place = end - 1; place >= 0; place--) {
    const part = parts[place]
    if (part === undefined || part.type === "tool-call" || (written[0] ?? part).type !== part.type) break
    written.unshift(part)
  }
  return written
}

/** The last items of the answer, at most so many, and whether there are earlier ones. */
const itemsOf = (
  state: RunState.RunState,
  most: number
): { readonly items: ReadonlyArray<Item>; readonly more: boolean } => {
  const items: Array<Item> = []
  for (const turn of RunState.turns(state).toReversed()) {
    for (let end = turn.parts.length; end > 0; ) {
      if (items.length >= most) return { items: items.reverse(), more: true }
      const part = turn.parts[end - 1]
      if (part?.type === "tool-call") {
        const call = turn.calls.find(({ id }) => id === part.toolCallId)
        if (call !== undefined) items.push({ is: "call", key: `${turn.n} ${call.id}`, call })
        end--
        continue
      }
      const written = runUpTo(turn.parts, end)
      end -= Math.max(1, written.length)
      const all = blocksOf(written)
      const is = part?.type === "text" ? "block" : "thought"
      for (let index = all.length - 1; index >= 0; index--) {
        if (items.length >= most) return { items: items.reverse(), more: true }
        const { opening, text } = all[index] ?? { opening: "", text: "" }
        items.push({ is, key: `${turn.n} ${end} ${index}`, text: opening + text })
      }
    }
  }
  return { items: items.reverse(), more: false }
}

/**
 * A word for where something stands.
 *
 * @since 0.1.0
 * @category components
 */
export const Chip = ({ children, tone }: { readonly children: ComponentChildren; readonly tone: Tone }) => (
  <span class={`chip chip-${tone}`}>{children}</span>
)

const Field = ({ name, value }: { readonly name: string; readonly value: unknown }) => (
  <div class="part">
    <h4>{name}</h4>
    {typeof value === "string" ? <pre dir="auto">{value}</pre> : <Json value={value} open={2} />}
  </div>
)

/**
 * A tool call: what it is called with, how it goes, what a person was asked, and what came of it.
 *
 * @since 0.1.0
 * @category components
 */
export const CallCard = ({ call, current }: { readonly call: RunState.Call; readonly current: boolean }) => {
  const { text, tone } = Format.callState(call)
  const { approval, args, input, progress, result } = call
  const asked = approval !== undefined && approval.decision === undefined && result === undefined
  return (
    <details class="call" open={current || asked} data-current={current}>
      <summary>
        <i class="swatch lane-tool" />
        <b>{call.name}</b>
        {call.title !== undefined && result === undefined && <span class="soft">{call.title}</span>}
        <span class="grow" />
        <Chip tone={tone}>{text}</Chip>
      </summary>
      {input === undefined ? (
        args !== "" && <Field name={t("replay.answer.input")} value={args} />
      ) : (
        <Field name={t("replay.answer.input")} value={input.value} />
      )}
      {approval !== undefined && (
        <div class="part asked">
          <h4>{t("replay.answer.preview")}</h4>
          <Change input={approval.request.input} preview={approval.request.preview} />
          {approval.decision !== undefined && (
            <p class="soft">
              {t(`replay.decision.${approval.decision.decision}`)}
              {approval.decision.reason !== undefined && `: ${approval.decision.reason}`}
            </p>
          )}
        </div>
      )}
      {progress !== "" && result === undefined && <Field name={t("replay.answer.progress")} value={progress} />}
      {result !== undefined && <Field name={t("replay.answer.result")} value={result.result} />}
    </details>
  )
}

/** Thoughts that follow each other are one. */
const grouped = (items: ReadonlyArray<Item>): ReadonlyArray<ReadonlyArray<Item>> => {
  const groups: Array<Array<Item>> = []
  for (const item of items) {
    const last = groups.at(-1)
    if (item.is === "thought" && last?.[0]?.is === "thought") last.push(item)
    else groups.push([item])
  }
  return groups
}

const callIdOf = (event: AgentEvent | undefined): string | undefined =>
  event !== undefined && "toolCallId" in event ? event.toolCallId : undefined

/**
 * How a run ended, where its text does not show it.
 *
 * @since 0.1.0
 * @category words
 */
export const ending = ({ end }: RunState.RunState): { readonly text: string; readonly tone: Tone } | undefined => {
  switch (end?.type) {
    case "cancelled":
      return { text: t(`replay.answer.cancelled.${end.by}`), tone: "soft" }
    case "error":
      return { text: t("replay.answer.failed", end.message), tone: "bad" }
    case "finish":
      return end.finishReason === "stop"
        ? undefined
        : { text: t(`replay.answer.ended.${end.finishReason}`), tone: "warn" }
    default:
      return undefined
  }
}

/**
 * The answer at the place on display.
 *
 * @since 0.1.0
 * @category components
 */
export const Answer = ({ replay }: { readonly replay: Replay }) => {
  const { envelope, main, shown, state } = replay
  const scroller = useRef<HTMLElement>(null)
  const most = useSignal(window)
  const follow = useRef(true)
  const now = state.value
  const { items, more } = itemsOf(now, most.value)
  const end = ending(now)
  const current = callIdOf(envelope.value?.event)
  const groups = grouped(items)
  const question = main.value?.question.value ?? ""
  const run = main.value?.name

  // biome-ignore lint/correctness/useExhaustiveDependencies: another run is read from its own beginning
  useEffect(() => {
    most.value = window
    follow.current = true
  }, [run, most])
  useLayoutEffect(() => {
    const { current: element } = scroller
    if (element !== null && follow.current) element.scrollTop = element.scrollHeight
  })

  return (
    <Region
      scroller={scroller}
      id="answer"
      class="answer"
      seq={shown.value}
      label={t("replay.tab.answer")}
      onScroll={({ clientHeight, scrollHeight, scrollTop }) => {
        follow.current = scrollHeight - clientHeight - scrollTop < 24
      }}
    >
      <div class="column">
        {question !== "" && (
          <div class="question" dir="auto">
            <span class="visually-hidden">{t("replay.answer.question")}: </span>
            {question}
          </div>
        )}
        {more && (
          <button
            type="button"
            class="quiet"
            onClick={() => {
              follow.current = false
              most.value *= 8
            }}
          >
            {t("replay.answer.earlier")}
          </button>
        )}
        {groups.map((group, index) => {
          const [first] = group
          if (first === undefined) return null
          if (first.is === "call") {
            return <CallCard key={first.key} call={first.call} current={first.call.id === current} />
          }
          if (first.is === "block") return <Markdown key={first.key} text={first.text} />
          return (
            <details key={`thought ${first.key}`} class="thought" open={index === groups.length - 1}>
              <summary>{t("replay.answer.thinking")}</summary>
              {group.map((item) => (item.is === "thought" ? <Markdown key={item.key} text={item.text} /> : null))}
            </details>
          )
        })}
        {items.length === 0 && end === undefined && <p class="soft empty">{t("replay.answer.empty")}</p>}
        {end !== undefined && <p class={`ending chip-${end.tone}`}>{end.text}</p>}
      </div>
    </Region>
  )
}
