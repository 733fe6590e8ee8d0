/** The whole server in this process, met over a real socket. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeContext from "@effect/platform-node/NodeContext"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Console from "effect/Console"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Serve from "../../../src/cli/Serve.js"
import * as Wiring from "../../../src/node/Wiring.js"
import * as HttpContract from "../../../src/testing/HttpContract.js"
import { say } from "./support.js"

const folder = mkdtempSync(join(tmpdir(), "runlet-mutation-"))
process.on("exit", () => rmSync(folder, { recursive: true, force: true }))
const tokens = { alice: "token-of-alice-5d1f", bob: "token-of-bob-77ac" }
const config = join(folder, "config.json")
writeFileSync(
  config,
  JSON.stringify({
    auth: { tokens: Object.entries(tokens).map(([user, token]) => ({ user, token })) },
    limits: { heartbeatMs: 500, maxRunsPerUser: 256 }
  })
)

const program = Effect.gen(function* () {
  const ready = yield* Deferred.make<string>()
  const console = yield* Console.consoleWith(Effect.succeed)
  const listening: Console.Console = { ...console, log: (line: string) => Deferred.succeed(ready, line) }
  yield* Serve.serve({ config, data: join(folder, "runlet.db"), port: 0 }, Wiring.layer).pipe(
    Console.withConsole(listening),
    Effect.forkScoped
  )
  const [, url = ""] = /ready at (\S+)/.exec(yield* Deferred.await(ready)) ?? []
  const { results } = yield* HttpContract.run({
    url,
    only: process.env.RUNLET_ONLY,
    token: Redacted.make(tokens.alice),
    otherToken: Redacted.make(tokens.bob),
    heartbeatMs: 500,
    // A busy machine is no mistake of the server.
    patienceMs: 600_000
  })
  const broken = results.find(({ outcome }) => outcome === "broken")
  return say({
    killed: broken !== undefined,
    cases: results.length,
    ...(broken && { law: `${broken.name}: ${broken.message?.split("\n")[0]}` })
  })
})

await Effect.runPromise(Effect.scoped(program).pipe(Effect.provide([NodeContext.layer, NodeHttpClient.layerUndici])))
