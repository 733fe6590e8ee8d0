import { readFileSync } from "node:fs"
import { join } from "node:path"
import { parser } from "@prometheus-io/lezer-promql"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Script from "../../src/testing/UpstreamScript.js"
import { ofType } from "../e2e/support/Client.js"
import { eventually } from "../e2e/support/Waiting.js"
import * as World from "../e2e/support/World.js"
import { type Exposition, parse } from "../http/Exposition.js"

interface Target {
  readonly expr: string
  readonly datasource: { readonly type: string; readonly uid: string }
}

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number }
  readonly datasource?: Target["datasource"]
  readonly targets?: ReadonlyArray<Target>
}

const file = readFileSync(join(__dirname, "../examples/grafana-dashboard.json"), "utf8")
const dashboard: {
  readonly panels: ReadonlyArray<Panel>
  readonly annotations: { readonly list: ReadonlyArray<Target> }
  readonly templating: { readonly list: ReadonlyArray<{ readonly name: string; readonly definition?: string }> }
} = JSON.parse(file)

/** What a query asks for: metrics with the functions around them and the labels that are named. */
interface Asked {
  readonly metric: string
  readonly functions: ReadonlyArray<string>
  readonly labels: ReadonlyArray<string>
}

/** Grafana puts an interval in the place of its variable before it asks. */
const asked = (query: string): ReadonlyArray<Asked> => {
  const text = query.replaceAll("$__rate_interval", "1m")
  const all: Array<Asked> = []
  const grouping: Array<string> = []
  parser.parse(text).iterate({
    enter: ({ from, name, node, to, type }) => {
      if (type.isError) throw new Error(`This is no PromQL: ${query}`)
      if (name === "GroupingLabels") {
        grouping.push(...node.getChildren("LabelName").map((label) => text.slice(label.from, label.to)))
      }
      if (name !== "VectorSelector") return
      const identifier = node.getChild("Identifier")
      const functions: Array<string> = []
      for (let above = node.parent; above !== null; above = above.parent) {
        const called = above.getChild("FunctionIdentifier")
        if (called !== null) functions.push(text.slice(called.from, called.to))
      }
      all.push({
        metric: identifier === null ? "" : text.slice(identifier.from, identifier.to),
        functions,
        labels: [...text.slice(from, to).matchAll(/(\w+)=/g)].map(([, label]) => label ?? "")
      })
    }
  })
  return all.map((one) => ({ ...one, labels: [...one.labels, ...grouping] }))
}

const queries = [...dashboard.panels.flatMap(({ targets = [] }) => targets), ...dashboard.annotations.list].map(
  ({ expr }) => expr
)

/** Labels that Prometheus adds. */
const added = new Set(["job", "instance"])

const samplesOf = ({ figures }: Exposition, metric: string): ReadonlyArray<string> =>
  [...figures.keys()].filter((key) => key === metric || key.startsWith(`${metric}{`))

let world: World.World
beforeAll(async () => {
  world = await World.start({
    models: { demo: { provider: "demo", price: { input: 1, output: 2 } } },
    limits: { maxMessageChars: 1000 }
  })
})
afterAll(() => world.stop())

const look = async (): Promise<Exposition> => parse((await world.client.call("GET", "/metrics")).text)

/** What the server says when it has done nothing, while much is under way, and when all of it has ended. */
const moments = async () => {
  const { client, upstream } = world
  const before = await look()
  upstream.script("Much", [
    Script.reply([
      // More than a server keeps at hand for who comes late.
      Array.from({ length: 10 }, () => [Script.text("word ".repeat(10_000)), Script.wait(20)]).flat(),
      Script.gate("more"),
      Script.finish("stop"),
      Script.done
    ])
  ])
  upstream.script("Save", [
    Script.calls({ id: "call_a", name: "save_note", args: '{"doc":"a","text":"b"}' }),
    Script.answer("Saved.")
  ])
  upstream.script("Again", [
    Script.body(429, "application/json", "{}", { "retry-after": "0" }),
    Script.answer("At", " last.")
  ])
  const much = await client.start("Much")
  await client.until(much.runId, "in the middle", ({ text }) => text.length === 500_000)
  const behind = await client.events(much.runId, 0)
  await behind.until(
    "all of it",
    () => ofType(behind.envelopes, "text-delta").reduce((sum, { delta }) => sum + delta.length, 0) === 500_000
  )
  const next = await client.start({ message: "Next", conversationId: much.conversationId })
  const asks = await client.start("Save")
  await client.waiting(asks.runId)
  const during = await look()

  await upstream.release("more")
  await behind.ended
  await client.cancel(asks.runId)
  const again = await client.start("Again")
  const paid = await client.start({ message: "/long 3", modelId: "demo" })
  for (const { runId } of [much, next, again, paid]) expect((await client.settled(runId)).status).toBe("completed")
  expect((await client.call("POST", "/chat", { message: "long ".repeat(300) })).status).toBe(413)
  const after = await eventually("the viewer to be gone", async () => {
    const found = await look()
    return found.figures.get("runlet_viewers") === 0 ? found : undefined
  })
  return { before, during, after }
}

describe("the Grafana dashboard", () => {
  it("can be imported anywhere: its data source is a variable, its panels have places of their own", () => {
    const variables = dashboard.templating.list.map(({ name }) => name)
    expect(variables).toEqual(["datasource", "job", "instance"])
    const shown = dashboard.panels.filter(({ type }) => type !== "row")
    for (const { datasource, targets = [], title } of shown) {
      expect(targets.length, title).toBeGreaterThan(0)
      for (const one of [datasource, ...targets.map((target) => target.datasource)]) {
        expect(one, title).toEqual({ type: "prometheus", uid: `\${datasource}` })
      }
    }
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length)
    const cells = dashboard.panels.flatMap(({ gridPos: { h, w, x, y } }) =>
      Array.from({ length: h * w }, (_, i) => `${x + (i % w)}/${y + Math.floor(i / w)}`)
    )
    expect(new Set(cells).size).toBe(cells.length)
    for (const [, name] of file.matchAll(/\$\{?(\w+)/g)) {
      expect([...variables, "__rate_interval", "__all"]).toContain(name)
    }
  })

  it("shows every figure of the README", () => {
    const readme = readFileSync(join(__dirname, "../../README.md"), "utf8")
    const table = /\| metric \| labels[\s\S]*?\n\n/.exec(readme)?.[0] ?? ""
    const named = [...table.matchAll(/`((?:runlet|process|nodejs)_[a-z_]+)`/g)].map(([, name]) => name ?? "")
    expect(named.length).toBeGreaterThan(30)
    const shown = new Set(queries.flatMap(asked).map(({ metric }) => metric.replace(/_bucket$/, "")))
    expect(named.filter((name) => !shown.has(name))).toEqual([])
  })

  it("asks for what a server tells that has worked, by its labels and as its types allow; all of it moves", async () => {
    const { after, before, during } = await moments()
    for (const query of queries) {
      for (const { functions, labels, metric } of asked(query)) {
        const samples = samplesOf(after, metric)
        expect({ metric, samples: samples.length }).not.toEqual({ metric, samples: 0 })
        for (const label of labels.filter((name) => !added.has(name))) {
          expect({ query, label, samples }).toMatchObject({
            samples: expect.arrayContaining([expect.stringContaining(`${label}="`)])
          })
        }
        const type = after.types.get(metric.replace(/_bucket$/, ""))
        const counts = functions.includes("rate") || functions.includes("increase")
        expect({ query, counts, type }).toEqual({
          query,
          counts,
          type: counts ? expect.stringMatching(/^(counter|histogram)$/) : expect.stringMatching(/^(gauge|summary)$/)
        })
      }
    }
    // A counter that came with its first event would hide that event from every rate.
    const unknown = /\{(?:code|model|limit)="/
    const sudden = [...after.figures.keys()].filter((key) => !before.figures.has(key) && !unknown.test(key))
    expect(sudden).toEqual([])

    const value = ({ figures }: Exposition, key: string) => figures.get(key) ?? 0
    expect(value(before, 'runlet_runs{status="streaming"}')).toBe(0)
    expect(Object.fromEntries(during.figures)).toMatchObject({
      'runlet_runs{status="streaming"}': 1,
      'runlet_runs{status="queued"}': 1,
      'runlet_runs{status="waiting_approval"}': 1,
      runlet_runs_executing: 1,
      runlet_viewers: 1,
      runlet_viewer_lag_events_count: 1
    })
    expect(Object.fromEntries(after.figures)).toMatchObject({
      'runlet_runs{status="streaming"}': 0,
      'runlet_runs{status="queued"}': 0,
      'runlet_runs{status="waiting_approval"}': 0,
      runlet_runs_started_total: 5,
      'runlet_runs_ended_total{status="completed"}': 4,
      'runlet_model_retries_total{code="rate_limited"}': 1,
      'runlet_limits_reached_total{limit="maxMessageChars"}': 1
    })
    for (const [key, least] of [
      ['runlet_time_to_first_token_seconds_count{model="scripted"}', 3],
      ['runlet_time_to_first_token_seconds_count{model="demo"}', 1],
      ["runlet_events_total", 50],
      ["runlet_commit_seconds_count", 5],
      ['runlet_tokens_total{kind="input"}', 1],
      ['runlet_tokens_total{kind="output"}', 1],
      ['runlet_cost_usd_total{model="demo"}', 1e-9]
    ] as const) {
      expect({ key, value: value(before, key) }).toEqual({ key, value: 0 })
      expect(value(after, key), key).toBeGreaterThanOrEqual(least)
    }
  })
})
