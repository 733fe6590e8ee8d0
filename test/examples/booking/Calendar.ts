/** A booking system somewhere else, as a tool meets it: it does what it is asked to, and sometimes its answer is lost. */

export interface Booking {
  readonly key: string
  readonly room: string
  readonly day: number
  readonly guest: string
  readonly runId: string
  readonly toolCallId: string
}

/** What comes of one request to book: an answer, none though it was done, none and nothing was done, or a refusal. */
export type Weather = "fine" | "answer lost" | "request lost" | "closed"

export class Calendar {
  readonly bookings: Array<Booking> = []
  private requests = 0

  constructor(private readonly weather: ReadonlyArray<Weather> = []) {}

  at(slot: Pick<Booking, "room" | "day">): Booking | undefined {
    return this.bookings.find(({ day, room }) => day === slot.day && room === slot.room)
  }

  under(key: string): Booking | undefined {
    return this.bookings.find((booking) => booking.key === key)
  }

  of(call: Pick<Booking, "runId" | "toolCallId">): Booking | undefined {
    return this.bookings.find(({ runId, toolCallId }) => runId === call.runId && toolCallId === call.toolCallId)
  }

  book(booking: Booking): "booked" | "silence" | "closed" {
    const weather = this.weather[this.requests++] ?? "fine"
    if (weather === "closed") return "closed"
    if (weather !== "request lost") this.bookings.push(booking)
    return weather === "fine" ? "booked" : "silence"
  }
}
