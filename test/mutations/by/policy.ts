import * as Effect from "effect/Effect"
import * as ResumePolicy from "../../../src/resume/ResumePolicy.js"
import * as PolicyContract from "../../../src/testing/PolicyContract.js"
import { contract } from "./support.js"

const policies = [ResumePolicy.layerRestartIteration, ResumePolicy.layerContinueDraft, ResumePolicy.layerManual]

await contract(
  PolicyContract.cases.flatMap(({ name, run }) =>
    policies.map((policy) => ({ name, run: Effect.provide(run, policy) }))
  )
)
