/**
 * How large an element is.
 *
 * @since 0.1.0
 */
import { type ReadonlySignal, useSignal } from "@preact/signals"
import type { RefObject } from "preact"
import { useEffect } from "preact/hooks"

/**
 * The inner width or height of an element in pixels, as it changes; 0 before it is drawn.
 *
 * @since 0.1.0
 * @category hooks
 */
export const useExtent = (
  element: RefObject<HTMLElement>,
  side: "clientWidth" | "clientHeight"
): ReadonlySignal<number> => {
  const extent = useSignal(0)
  useEffect(() => {
    const { current } = element
    if (current === null) return
    const measure = () => {
      extent.value = current[side]
    }
    const observer = new ResizeObserver(measure)
    observer.observe(current)
    measure()
    return () => observer.disconnect()
  }, [element, extent, side])
  return extent
}
