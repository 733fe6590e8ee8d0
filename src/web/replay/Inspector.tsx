/**
 * The event on display, whole; for a checkpoint also what a resume would start from there.
 *
 * @since 0.1.0
 */
import { type ReadonlySignal, useSignal, useSignalEffect } from "@preact/signals"
import type { ComponentChildren } from "preact"
import type { AgentRunCheckpoint } from "../../domain/Checkpoint.js"
import type { Envelope } from "../../domain/Envelope.js"
import * as RunState from "../../domain/RunState.js"
import { t } from "../i18n/index.js"
import { Copy } from "../ui/Copy.js"
import { Chip } from "./Answer.js"
import * as Format from "./Format.js"
import { Json } from "./Json.js"
import * as Recording from "./Recording.js"
import { Region } from "./Region.js"
import type { Replay } from "./Replay.js"
import * as Tone from "./Tone.js"

const Fact = ({ children, name }: { readonly name: string; readonly children: ComponentChildren }) => (
  <>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </>
)

type Loaded = { readonly seq: number } & (
  | { readonly is: "loading" | "away" }
  | { readonly is: "here"; readonly checkpoint: AgentRunCheckpoint }
)

/** What the server keeps at a checkpoint, asked for when a person stays there. */
const useCheckpoint = (replay: Replay): ReadonlySignal<Loaded | undefined> => {
  const loaded = useSignal<Loaded>()
  useSignalEffect(() => {
    const tape = replay.main.value
    const seq = replay.settled.value
    const event = Recording.envelopeAt(replay.recording.peek(), seq)?.event
    if (event?.type !== "checkpoint" || tape === undefined) {
      loaded.value = undefined
      return
    }
    if (tape.file) {
      loaded.value = { seq, is: "away" }
      return
    }
    const abort = new AbortController()
    loaded.value = { seq, is: "loading" }
    replay.api
      .checkpoint(tape.name, seq, abort.signal)
      .then((checkpoint) => {
        if (!abort.signal.aborted) loaded.value = { seq, is: "here", checkpoint }
      })
      .catch(() => {
        if (!abort.signal.aborted) loaded.value = { seq, is: "away" }
      })
    return () => abort.abort()
  })
  return loaded
}

const Ids = ({ ids }: { readonly ids: ReadonlyArray<string> }) =>
  ids.length === 0 ? <span class="soft">0</span> : <span class="ids">{ids.join(", ")}</span>

/** What the log alone tells of a checkpoint. */
const FromLog = ({ state }: { readonly state: RunState.RunState }) => {
  const calls = RunState.turns(state).flatMap((turn) => turn.calls)
  const ids = (completed: boolean) =>
    calls.flatMap((call) => ((call.result !== undefined) === completed ? [call.id] : []))
  return (
    <Resume
      textLength={state.textLength}
      reasoningLength={state.reasoningLength}
      completed={ids(true)}
      pending={ids(false)}
      iteration={state.iteration}
    />
  )
}

interface ResumeProps {
  readonly textLength: number
  readonly reasoningLength: number
  readonly completed: ReadonlyArray<string>
  readonly pending: ReadonlyArray<string>
  readonly iteration: number
}

const Resume = ({ completed, iteration, pending, reasoningLength, textLength }: ResumeProps) => (
  <dl class="facts">
    <Fact name={t("replay.details.kept")}>
      {t("replay.details.keptLengths", Format.number(textLength), Format.number(reasoningLength))}
    </Fact>
    <Fact name={t("replay.details.turn")}>{iteration}</Fact>
    <Fact name={t("replay.details.completed")}>
      <Ids ids={completed} />
    </Fact>
    <Fact name={t("replay.details.pending")}>
      <Ids ids={pending} />
    </Fact>
  </dl>
)

const FromServer = ({ checkpoint }: { readonly checkpoint: AgentRunCheckpoint }) => {
  const { assistantDraft, compressedMessages, toolResults, ...settings } = checkpoint.resumeState
  return (
    <>
      <Resume
        textLength={checkpoint.textLength}
        reasoningLength={checkpoint.reasoningLength}
        completed={checkpoint.completedToolCallIds}
        pending={checkpoint.pendingToolCallIds}
        iteration={checkpoint.lastIteration}
      />
      <div class="json">
        <Json name={t("replay.details.messages")} value={compressedMessages} open={0} />
        <Json name={t("replay.details.results")} value={toolResults} open={0} />
        <Json name={t("replay.details.draft")} value={assistantDraft} open={1} />
        <Json name={t("replay.details.settings")} value={settings} open={1} />
      </div>
    </>
  )
}

const Checkpoint = ({
  loaded,
  replay,
  seq
}: {
  readonly replay: Replay
  readonly seq: number
  readonly loaded: Loaded | undefined
}) => {
  const here = loaded?.seq === seq ? loaded : undefined
  return (
    <section class="resume" aria-busy={here === undefined || here.is === "loading"}>
      <h3>{t("replay.details.resume")}</h3>
      {here?.is === "here" ? (
        <FromServer checkpoint={here.checkpoint} />
      ) : (
        <>
          <p class="soft">{t(here?.is === "away" ? "replay.details.resumeAway" : "replay.details.resumeLoading")}</p>
          {here?.is === "away" && <FromLog state={replay.state.value} />}
        </>
      )}
    </section>
  )
}

const Event = ({ envelope, replay }: { readonly envelope: Envelope; readonly replay: Replay }) => {
  const { recording, state } = replay
  const { createdAt, event, seq } = envelope
  const before = Recording.envelopeAt(recording.value, seq - 1)
  const { type: _, ...fields } = event
  const now = state.value
  const lane = recording.value.lanes.lanes[Recording.laneAt(recording.value, seq) ?? -1]
  return (
    <>
      <header>
        <i class={`swatch lane-${lane?.kind ?? "run"}`} />
        <h2>{Format.eventName(event)}</h2>
        <code>{event.type}</code>
      </header>
      <dl class="facts">
        <Fact name={t("replay.details.seq")}>{Format.number(seq)}</Fact>
        <Fact name={t("replay.details.at")}>{Format.moment(createdAt)}</Fact>
        <Fact name={t("replay.details.since")}>{Format.time(Recording.timeAt(recording.value, seq, "real"))}</Fact>
        {before !== undefined && (
          <Fact name={t("replay.details.after")}>{Format.time(Math.max(0, createdAt - before.createdAt))}</Fact>
        )}
      </dl>
      <section>
        <h3>
          {t("replay.details.event")}
          <Copy key={seq} text={() => JSON.stringify(envelope, undefined, 2)} />
        </h3>
        <Json value={fields} open={2} />
      </section>
      <section>
        <h3>{t("replay.details.status")}</h3>
        <dl class="facts">
          <Fact name={t("replay.event.run-status")}>
            <Chip tone={Tone.ofStatus(now.status)}>{t(`replay.status.${now.status}`)}</Chip>
          </Fact>
          <Fact name={t("replay.details.attempt")}>{now.attempt}</Fact>
          <Fact name={t("replay.details.turn")}>{now.iteration}</Fact>
          <Fact name={t("replay.details.tokens")}>{Format.number(now.usage.totalTokens)}</Fact>
        </dl>
      </section>
    </>
  )
}

/**
 * The details of the event on display.
 *
 * @since 0.1.0
 * @category components
 */
export const Inspector = ({ replay }: { readonly replay: Replay }) => {
  const envelope = replay.envelope.value
  const loaded = useCheckpoint(replay)
  return (
    <Region id="details" class="inspector" label={t("replay.details")}>
      {envelope === undefined ? (
        <p class="soft empty">{t("replay.nothing")}</p>
      ) : (
        <>
          <Event envelope={envelope} replay={replay} />
          {envelope.event.type === "checkpoint" && (
            <Checkpoint replay={replay} seq={envelope.seq} loaded={loaded.value} />
          )}
        </>
      )}
    </Region>
  )
}
