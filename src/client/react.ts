/**
 * The client for React: a hook that shows what a client shows.
 *
 * @since 0.1.0
 */
import { useSyncExternalStore } from "react"
import type { Client } from "./Client.js"
import { type ClientState, initial } from "./ClientState.js"

const blank = () => initial

/**
 * The state of a client, with the component drawn anew whenever it changes. The client belongs to whoever made it:
 * components come and go, also twice in a row, without touching its connection. On a server, where nothing is shown yet,
 * the state is that of a new client.
 *
 * @example
 * ```tsx
 * import { makeClient, text } from "runlet/client"
 * import { useRun } from "runlet/client/react"
 *
 * const client = makeClient()
 *
 * export const Answer = () => {
 *   const { canContinue, phase, run } = useRun(client)
 *   return (
 *     <section aria-busy={phase === "streaming"}>
 *       <p>{run && text(run)}</p>
 *       {canContinue && <button onClick={() => client.continue()}>Continue</button>}
 *     </section>
 *   )
 * }
 * ```
 *
 * @since 0.1.0
 * @category hooks
 */
export const useRun = (client: Client): ClientState => useSyncExternalStore(client.subscribe, client.getSnapshot, blank)
