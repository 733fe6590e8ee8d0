import * as Effect from "effect/Effect"
import * as ModelContract from "../../../src/testing/ModelContract.js"
import * as Subjects from "../../testing/subjects.js"
import { contract } from "./support.js"

await contract(
  Object.entries(Subjects.all).flatMap(([model, { can, subject }]) =>
    ModelContract.cases
      .filter(({ needs }) => can(needs))
      .map(({ name, run }) => ({ name: `${name} (${model})`, run: Effect.provide(run, subject) }))
  )
)
