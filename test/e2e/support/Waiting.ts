/** Waiting for what another process does: polled, because nothing there can be awaited from here. */

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** How long is waited for what comes at once on a quiet machine (milliseconds). */
export const patience = { ms: 20_000 }

/** The first value that is not `undefined`. */
export const eventually = async <A>(
  what: string,
  look: () => A | undefined | Promise<A | undefined>,
  withinMs = patience.ms
): Promise<A> => {
  const until = Date.now() + withinMs
  for (let wait = 5; ; wait = Math.min(100, wait * 1.5)) {
    const found = await look()
    if (found !== undefined) return found
    if (Date.now() > until) throw new Error(`waited ${withinMs} ms in vain for ${what}`)
    await pause(wait)
  }
}
