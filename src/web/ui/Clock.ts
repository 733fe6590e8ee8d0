/**
 * The present time for what counts up or down on the page.
 *
 * @since 0.1.0
 */
import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"

/**
 * The time now, anew every second while `ticking`.
 *
 * @since 0.1.0
 * @category hooks
 */
export const useNow = (ticking: boolean): number => {
  const now = useSignal(Date.now())
  useEffect(() => {
    if (!ticking) return
    now.value = Date.now()
    const timer = setInterval(() => {
      now.value = Date.now()
    }, 1000)
    return () => clearInterval(timer)
  }, [ticking, now])
  return now.value
}
