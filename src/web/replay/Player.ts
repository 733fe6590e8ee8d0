/**
 * Where a replay stands and whether it moves: plays, pauses, goes to any place, and follows a run that is still going.
 * A pure reducer; what time it is comes from outside.
 *
 * @since 0.1.0
 */

/**
 * What a player moves on: the places of a log and their times in milliseconds, which never go back. `open`: more may
 * come. An empty log has a `last` before its `first`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Track {
  readonly first: number
  readonly last: number
  readonly open: boolean
  readonly timeAt: (seq: number) => number
  readonly seqAt: (ms: number) => number
}

/**
 * `seq` is the last event that has happened, `at` the time by the track's clock. `following` stays at the end while it
 * moves.
 *
 * @since 0.1.0
 * @category models
 */
export interface Player {
  readonly seq: number
  readonly at: number
  readonly playing: boolean
  readonly speed: number
  readonly following: boolean
}

/**
 * The speeds to choose from; 1 is as it was.
 *
 * @since 0.1.0
 * @category models
 */
export const speeds: ReadonlyArray<number> = [0.25, 0.5, 1, 2, 4, 8, 16, 64]

/**
 * A player at the place before the first event, that follows what comes.
 *
 * @since 0.1.0
 * @category constructors
 */
export const initial: Player = { seq: 0, at: 0, playing: false, speed: 1, following: true }

/**
 * - `to`: goes to a place, the nearest one that there is
 * - `end`: goes to the last place, and follows what may come after it
 * - `toggle`: plays or pauses; at the end it plays from the start
 * - `tick`: so many milliseconds went by
 * - `grew`: the track has further events
 * - `retimed`: the track has another clock
 *
 * @since 0.1.0
 * @category models
 */
export type Action =
  | { readonly type: "to"; readonly seq: number }
  | { readonly type: "end" }
  | { readonly type: "toggle" }
  | { readonly type: "pause" }
  | { readonly type: "speed"; readonly speed: number }
  | { readonly type: "tick"; readonly elapsedMs: number }
  | { readonly type: "grew" }
  | { readonly type: "retimed" }

const atEnd = (player: Player, track: Track): Player => ({
  ...player,
  seq: Math.max(track.last, track.first - 1),
  at: track.timeAt(track.last)
})

const to = (player: Player, seq: number, track: Track): Player => {
  if (track.last < track.first) return atEnd(player, track)
  const place = Math.min(Math.max(seq, track.first), track.last)
  return { ...player, seq: place, at: track.timeAt(place) }
}

/** A player at the end does not play, unless more may come. */
const stay = (player: Player, track: Track): Player => ({
  ...player,
  playing: player.playing && (track.open || player.seq < track.last)
})

const play = (player: Player, track: Track): Player => {
  if (track.last < track.first) return player
  const from = player.seq >= track.last && !track.open ? to(player, track.first, track) : player
  return stay({ ...from, playing: true, following: false }, track)
}

const tick = (player: Player, elapsedMs: number, track: Track): Player => {
  if (!player.playing) return player
  const at = player.at + elapsedMs * player.speed
  if (at < track.timeAt(track.last)) return { ...player, at, seq: Math.max(player.seq, track.seqAt(at)) }
  return { ...atEnd(player, track), playing: track.open }
}

/**
 * The player after an action. Total and pure.
 *
 * @since 0.1.0
 * @category transitions
 */
export const reduce = (player: Player, action: Action, track: Track): Player => {
  switch (action.type) {
    case "to":
      return stay({ ...to(player, action.seq, track), following: false }, track)
    case "end":
      return { ...atEnd(player, track), playing: false, following: true }
    case "toggle":
      return player.playing ? { ...player, playing: false } : play(player, track)
    case "pause":
      return { ...player, playing: false }
    case "speed":
      return { ...player, speed: action.speed }
    case "tick":
      return tick(player, action.elapsedMs, track)
    case "grew":
      if (player.following) return atEnd(player, track)
      return player.playing ? player : to(player, player.seq, track)
    case "retimed":
      return to(player, player.seq, track)
  }
}
