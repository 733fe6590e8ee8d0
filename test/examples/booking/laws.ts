/** What must hold of bookings whatever breaks. A law may look at the log, and at a world of one's own beside it. */
import { Law, Laws } from "runlet/testing"
import type { Calendar } from "./Calendar.js"
import { mostAttempts } from "./patience.js"

export const bookedOnce = (calendar: Calendar): Law.Law => ({
  name: "a room has one guest a day",
  check: () =>
    calendar.bookings
      .filter(({ day, room }, index, all) => all.slice(0, index).some((one) => one.day === day && one.room === room))
      .map(({ day, guest, room }) => `${room} on day ${day} is booked again, for ${guest}`)
})

export const appliedIsBooked = (calendar: Calendar): Law.Law =>
  Law.forEvents("what the calendar is said to have done, it has done", ({ event }, { runId }) => {
    if (event.type !== "tool-call-result" || event.state !== "applied" || event.source === "person") return undefined
    return calendar.of({ ...event, runId }) === undefined ? `${event.toolCallId} is not in it` : undefined
  })

const denials = new Set(["done", "rejected", "expired", "interrupted", "invalid"])

export const bookedIsTold = (calendar: Calendar): Law.Law =>
  Law.forEvents("what stands in the calendar is not denied", ({ event }, { runId }) => {
    if (event.type !== "tool-call-result" || !denials.has(event.state)) return undefined
    return calendar.of({ ...event, runId }) === undefined ? undefined : `${event.toolCallId} is ${event.state}`
  })

export const patient: Law.Law = Law.forEvents("nothing goes on by itself for ever", ({ event }) =>
  event.type === "run-resumed" && event.reason === "recovery" && event.attempt > mostAttempts
    ? `attempt ${event.attempt}`
    : undefined
)

/** These, and all those of the package. */
export const lawsOf = (calendar: Calendar): ReadonlyArray<Law.Law> => [
  bookedOnce(calendar),
  appliedIsBooked(calendar),
  bookedIsTold(calendar),
  patient,
  ...Laws.all
]
