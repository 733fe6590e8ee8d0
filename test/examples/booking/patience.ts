/** A resume policy: a text that was begun is gone on with, and after so many attempts a person must ask for more. */
import { ResumePolicy } from "runlet"

export const mostAttempts = 2

export const patience = ResumePolicy.of((facts) =>
  facts.reason === "recovery" && facts.state.attempt >= mostAttempts
    ? ResumePolicy.refuse(`It was cut short ${mostAttempts} times.`)
    : ResumePolicy.keepDraft(facts)
)
