/**
 * What moves a replay: play, step, speed, and how its timeline is counted and how much of it is in view.
 *
 * @since 0.1.0
 */
import { t } from "../i18n/index.js"
import * as Format from "./Format.js"
import * as Player from "./Player.js"
import * as Recording from "./Recording.js"
import type { Replay } from "./Replay.js"
import { Sign } from "./Sign.js"

const Position = ({ replay }: { readonly replay: Replay }) => {
  const { player, recording } = replay
  const { seq } = player.value
  return (
    <output class="position">
      <b>{t("replay.position", Format.number(seq), Format.number(recording.value.end.seq))}</b>
      <span>{Format.time(Recording.timeAt(recording.value, seq, "real"))}</span>
    </output>
  )
}

/**
 * The controls. Each key that does the same is named in its hint.
 *
 * @since 0.1.0
 * @category components
 */
export const Transport = ({ replay }: { readonly replay: Replay }) => {
  const { axis, dispatch, open, player, recording } = replay
  const { following, playing, speed } = player.value
  const none = Recording.size(recording.value) === 0
  return (
    <div class="transport" role="toolbar" aria-label={t("replay.title")}>
      <div class="group">
        <Sign
          name="first"
          label={t("replay.first")}
          hint="Home"
          disabled={none}
          onClick={() => dispatch({ type: "to", seq: 1 })}
        />
        <Sign
          name="backMark"
          label={t("replay.previousCheckpoint")}
          hint="["
          disabled={none}
          onClick={() => replay.toCheckpoint(-1)}
        />
        <Sign name="left" label={t("replay.previous")} hint="←" disabled={none} onClick={() => replay.step(-1)} />
        <Sign
          id="play"
          class="play"
          name={playing ? "pause" : "play"}
          label={t(playing ? "replay.pause" : "replay.play")}
          hint="Space"
          disabled={none}
          onClick={() => dispatch({ type: "toggle" })}
        />
        <Sign name="right" label={t("replay.next")} hint="→" disabled={none} onClick={() => replay.step(1)} />
        <Sign
          name="onMark"
          label={t("replay.nextCheckpoint")}
          hint="]"
          disabled={none}
          onClick={() => replay.toCheckpoint(1)}
        />
        <Sign
          name="last"
          label={t("replay.last")}
          hint="End"
          disabled={none}
          onClick={() => dispatch({ type: "end" })}
        />
      </div>
      <label>
        <span class="visually-hidden">{t("replay.speed")}</span>
        <select
          id="speed"
          title={t("replay.speed")}
          value={String(speed)}
          onChange={({ currentTarget }) => dispatch({ type: "speed", speed: Number(currentTarget.value) })}
        >
          {Player.speeds.map((one) => (
            <option key={one} value={String(one)}>
              {one}×
            </option>
          ))}
        </select>
      </label>
      {open.value && !none && (
        <button
          id="live"
          type="button"
          class="live"
          aria-pressed={following}
          title={t("replay.liveHint")}
          onClick={() => dispatch({ type: "end" })}
        >
          {t("replay.live")}
        </button>
      )}
      <Position replay={replay} />
      <span class="grow" />
      <label>
        <span class="visually-hidden">{t("replay.axis")}</span>
        <select
          id="axis"
          title={t("replay.axis")}
          value={axis.value}
          onChange={({ currentTarget: { value } }) => {
            replay.zoomAll()
            axis.value = value === "short" || value === "real" ? value : "seq"
          }}
        >
          <option value="seq">{t("replay.axis.seq")}</option>
          <option value="short">{t("replay.axis.short")}</option>
          <option value="real">{t("replay.axis.real")}</option>
        </select>
      </label>
    </div>
  )
}
