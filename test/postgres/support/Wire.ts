/**
 * What lies between a program and its database: a proxy that can hold answers back, stand still, and cut.
 */
import { connect, createServer, type Server, type Socket } from "node:net"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

export interface Wire {
  /** The address of the database, through the wire. */
  readonly url: string
  /** Cuts every connection, and for as long as it is not mended every new one. */
  readonly cut: () => void
  readonly mend: () => void
  /**
   * When these words are next sent to the database, the connection is cut: once they are `answered`, and the answer is kept
   * back; before they are `sent`; or at once, and they come `late`.
   */
  readonly loseAnswerTo: (words: string, how?: Loss) => void
  /**
   * When these words are next sent to the database, nothing gets through any more, in any connection, and none is closed:
   * to the database it is as if the program had been stopped. Ends when that has happened.
   */
  readonly standStillAt: (words: string) => Effect.Effect<void>
}

export type Loss = "answered" | "sent" | "late"

/** How long late words are on their way (milliseconds). */
const lateMs = 150

const listening = (server: Server) =>
  new Promise<number>((done) => {
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      done(typeof address === "object" && address !== null ? address.port : 0)
    })
  })

/** A wire to the database at an address. */
export const make = (url: string): Effect.Effect<Wire, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const target = new URL(url)
        const sockets = new Set<Socket>()
        const state: {
          isCut: boolean
          losing: { readonly words: string; readonly how: Loss } | undefined
          stillAt: { readonly words: string; readonly reached: () => void } | undefined
          isStill: boolean
        } = { isCut: false, losing: undefined, stillAt: undefined, isStill: false }
        const server = createServer((near) => {
          if (state.isCut) {
            near.destroy()
            return
          }
          const far = connect(Number(target.port || "5432"), target.hostname)
          let lost = false
          let late = false
          const end = () => {
            near.destroy()
            far.destroy()
          }
          for (const socket of [near, far]) {
            sockets.add(socket)
            socket.setNoDelay(true)
            socket.on("error", () => socket.destroy())
            socket.on("close", () => {
              sockets.delete(socket)
              // What is late is still to come.
              if (socket === far || !late) end()
            })
          }
          near.on("data", (bytes) => {
            if (state.stillAt !== undefined && bytes.includes(state.stillAt.words)) {
              state.isStill = true
              state.stillAt.reached()
              state.stillAt = undefined
            }
            if (state.isStill) return
            const losing =
              state.losing !== undefined && bytes.includes(state.losing.words) ? state.losing.how : undefined
            if (losing === undefined) {
              far.write(bytes)
              return
            }
            state.losing = undefined
            if (losing === "sent") return end()
            if (losing === "answered") {
              lost = true
              far.write(bytes)
              return
            }
            late = true
            near.destroy()
            setTimeout(() => far.write(bytes, () => far.end()), lateMs)
          })
          far.on("data", (bytes) => {
            if (lost) end()
            else if (!late && !state.isStill) near.write(bytes)
          })
        })
        return { port: await listening(server), server, sockets, state, target }
      }),
      ({ server, sockets }) =>
        Effect.promise(
          () =>
            new Promise<void>((done) => {
              for (const socket of sockets) socket.destroy()
              server.close(() => done())
            })
        )
    ),
    ({ port, sockets, state, target }) => {
      const address = new URL(target)
      address.hostname = "127.0.0.1"
      address.port = String(port)
      return {
        url: address.href,
        cut: () => {
          state.isCut = true
          for (const socket of sockets) socket.destroy()
        },
        mend: () => {
          state.isCut = false
        },
        loseAnswerTo: (words, how = "answered") => {
          state.losing = { words, how }
        },
        standStillAt: (words) => {
          const still = new Promise<void>((reached) => {
            state.stillAt = { words, reached }
          })
          return Effect.promise(() => still)
        }
      }
    }
  )
