/**
 * What the runs of the campaign do. A plan is the turns of a model; the message names it, so that the scripted model
 * gives the same answer after every restart.
 */
import * as Script from "../../../src/testing/UpstreamScript.js"

export interface PlannedCall {
  readonly name: string
  readonly input: Record<string, unknown>
}

export interface Turn {
  readonly pieces: number
  readonly reasoning?: number
  readonly calls?: ReadonlyArray<PlannedCall>
  /** Milliseconds between its pieces. */
  readonly pieceMs?: number
  /** The first answer of this turn breaks off after so many pieces. */
  readonly cutAt?: number
}

export type Person = "approve" | "reject" | "edit"

export interface Plan {
  readonly turns: ReadonlyArray<Turn>
  /** What the person says to the first request of a call; everything later is approved. */
  readonly person?: Person
  /** The run is cancelled when the viewer has seen this many events. */
  readonly cancelAt?: number
}

const pieceMs = 6

const lookup = (q: string): PlannedCall => ({ name: "lookup", input: { q } })
const slow = (q: string): PlannedCall => ({ name: "slow_lookup", input: { q } })
const last: Turn = { pieces: 6 }

export const plans = {
  text: { turns: [{ pieces: 20 }] },
  reasoning: { turns: [{ reasoning: 10, pieces: 12 }] },
  lookup: { turns: [{ pieces: 4, calls: [lookup("tide")] }, { pieces: 12 }] },
  parallel: { turns: [{ pieces: 2, calls: [lookup("sun"), slow("moon"), lookup("stars")] }, last] },
  rounds: {
    turns: [
      { pieces: 2, calls: [lookup("one")] },
      { reasoning: 2, pieces: 2, calls: [lookup("two")] },
      { pieces: 0, calls: [lookup("three"), lookup("three again")] },
      { pieces: 3, calls: [slow("four")] },
      last
    ]
  },
  write: { turns: [{ pieces: 3, calls: [{ name: "save_note", input: { text: "low tide at noon" } }] }, last] },
  writeGivingUp: {
    turns: [{ pieces: 3, calls: [{ name: "save_note", input: { text: "perhaps", givesUp: true } }] }, last]
  },
  rejected: {
    turns: [{ pieces: 2, calls: [lookup("law"), { name: "save_note", input: { text: "not wanted" } }] }, last],
    person: "reject"
  },
  edited: { turns: [{ pieces: 2, calls: [{ name: "save_note", input: { text: "mistaken" } }] }, last], person: "edit" },
  conflicting: {
    turns: [{ pieces: 2, calls: [{ name: "save_note", input: { text: "contested", conflict: true } }] }, last]
  },
  twoWrites: {
    turns: [
      {
        pieces: 1,
        calls: [
          { name: "save_note", input: { text: "first of two" } },
          { name: "save_note", input: { text: "second of two" } }
        ]
      },
      last
    ]
  },
  blindWrite: { turns: [{ pieces: 2, calls: [{ name: "post_blind", input: { text: "a letter" } }] }, last] },
  keyedEffect: { turns: [{ pieces: 2, calls: [{ name: "send_keyed", input: { to: "Ann" } }] }, last] },
  keyedUnattended: { turns: [{ pieces: 2, calls: [{ name: "ring", input: { times: 3 } }] }, last] },
  blindUnattended: { turns: [{ pieces: 2, calls: [{ name: "fire_blind", input: { at: "dawn" } }] }, last] },
  cut: {
    turns: [
      { pieces: 3, calls: [lookup("wind")] },
      { pieces: 16, cutAt: 9 }
    ]
  },
  cancelText: { turns: [{ pieces: 30 }], cancelAt: 12 },
  cancelTool: { turns: [{ pieces: 2, calls: [slow("never"), lookup("ever")] }, { pieces: 40 }], cancelAt: 9 },
  cancelWrite: {
    turns: [{ pieces: 2, calls: [{ name: "save_note", input: { text: "too late" } }] }, { pieces: 30 }],
    cancelAt: 14
  },
  short: { turns: [{ pieces: 2 }] },
  long: { turns: [{ pieces: 150 }] },
  longer: { turns: [{ pieces: 300 }] },
  calm: {
    turns: [
      { pieces: 20, pieceMs: 200, calls: [lookup("harbour")] },
      { pieces: 20, pieceMs: 200 }
    ]
  },
  steady: { turns: [{ pieces: 20_000, pieceMs: 100 }] },
  endless: { turns: [{ pieces: 20_000 }] },
  hanging: {
    turns: [{ pieces: 2, calls: [{ name: "slow_lookup", input: { q: "?", delays: { beforeMs: 600_000 } } }] }, last]
  },
  slowWrite: {
    turns: [
      {
        pieces: 2,
        calls: [{ name: "save_note", input: { text: "slowly", delays: { beforeMs: 300, afterMs: 1500 } } }]
      },
      last
    ]
  },
  slowBlind: {
    turns: [
      {
        pieces: 2,
        calls: [{ name: "post_blind", input: { text: "slowly", delays: { beforeMs: 300, afterMs: 1500 } } }]
      },
      last
    ]
  }
} satisfies Record<string, Plan>

export type PlanName = keyof typeof plans

const isPlan = (name: string): name is PlanName => name in plans

const slowOnes: ReadonlyArray<string> = [
  "long",
  "longer",
  "calm",
  "steady",
  "endless",
  "hanging",
  "slowWrite",
  "slowBlind"
]

/** The plans that end within a moment. */
export const quickPlans: ReadonlyArray<PlanName> = Object.keys(plans)
  .filter(isPlan)
  .filter((name) => !slowOnes.includes(name))

export const planOf = (name: PlanName): Plan => plans[name]

export const messageOf = (name: PlanName, label: string): string => `plan ${name} ${label}`

const read = (said: string): { readonly name: PlanName; readonly label: string } | undefined => {
  const [word, name = "", label = ""] = said.split(" ")
  return word === "plan" && isPlan(name) ? { name, label } : undefined
}

const piece = (turn: number, i: number): string => `${turn}.${i} `

/** The text of a whole turn: every piece is there once. */
export const turnText = (turn: Turn, n: number): string =>
  Array.from({ length: turn.pieces }, (_, i) => piece(n, i)).join("")

/** What a run of this plan says when it completes. */
export const wholeText = (plan: Plan): string => plan.turns.map((turn, n) => turnText(turn, n)).join("")

const paced = (steps: ReadonlyArray<Script.Step>, ms = pieceMs): ReadonlyArray<Script.Step> =>
  steps.flatMap((step) => [step, Script.wait(ms)])

/** The model of the campaign, and what it noticed. */
export const model = () => {
  const cuts = new Set<string>()
  const told = new Map<string, string>()
  const faults: Array<string> = []
  const respond = (request: Script.UpstreamRequest): Script.Reply => {
    const found = read(Script.lastUserText(request))
    if (found === undefined) return Script.answer("What? ")
    const messages = Script.messagesOf(request)
    const since = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1)
    const n = since.filter(({ role }) => role === "assistant").length
    const turn = planOf(found.name).turns[n]
    for (const { content, role, tool_call_id } of since) {
      if (role !== "tool") continue
      const id = `${found.label} ${String(tool_call_id)}`
      const before = told.get(id)
      if (before !== undefined && before !== content) {
        faults.push(`the result of ${id} was told as ${before}, then as ${String(content)}`)
      }
      told.set(id, String(content))
    }
    if (turn === undefined) {
      faults.push(`${found.name} ${found.label}: a turn ${n} was asked for`)
      return Script.answer("No more. ")
    }
    const thoughts = Array.from({ length: turn.reasoning ?? 0 }, (_, i) => Script.reasoning(`(${n}.${i}) `))
    const words = Array.from({ length: turn.pieces }, (_, i) => Script.text(piece(n, i)))
    const label = `${found.label} ${n}`
    if (turn.cutAt !== undefined && !cuts.has(label)) {
      cuts.add(label)
      return Script.reply([...paced(words.slice(0, turn.cutAt)), Script.wait(30)], { framing: "close" })
    }
    const calls = (turn.calls ?? []).map((call, index) =>
      Script.toolCall({
        index,
        id: `call_${found.label}_${n}_${index}`,
        name: call.name,
        args: JSON.stringify(call.input)
      })
    )
    const reason = calls.length > 0 ? "tool_calls" : "stop"
    return Script.reply([
      Script.wait(10),
      paced([...thoughts, ...words, ...calls], turn.pieceMs),
      Script.finish(reason),
      Script.usage(10, 5),
      Script.done
    ])
  }
  return { respond, faults }
}
