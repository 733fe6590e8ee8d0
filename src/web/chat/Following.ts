/**
 * Keeps the end of the page in view while it grows, until the reader scrolls away from it.
 *
 * @since 0.1.0
 */
import type { Signal } from "@preact/signals"
import { useEffect } from "preact/hooks"

/** How far from the end still counts as the end. */
const near = 24

/**
 * Follows the end of the page while `following`, which the reader's own scrolling turns off, and on again at the end.
 *
 * @since 0.1.0
 * @category hooks
 */
export const useFollowing = (following: Signal<boolean>) => {
  useEffect(() => {
    const root = document.documentElement
    let lastTop = window.scrollY
    let lastHeight = root.scrollHeight
    const toEnd = () => {
      if (following.peek()) window.scrollTo({ top: root.scrollHeight, behavior: "instant" })
    }
    const scrolled = () => {
      const [top, height] = [window.scrollY, root.scrollHeight]
      // A page that became shorter moves by itself.
      if (top >= height - window.innerHeight - near) following.value = true
      else if (top < lastTop - 1 && height >= lastHeight) following.value = false
      lastTop = top
      lastHeight = height
    }
    const observer = new ResizeObserver(toEnd)
    observer.observe(document.body)
    window.addEventListener("scroll", scrolled, { passive: true })
    window.addEventListener("resize", toEnd)
    const stop = following.subscribe((on) => {
      if (on) toEnd()
    })
    return () => {
      observer.disconnect()
      window.removeEventListener("scroll", scrolled)
      window.removeEventListener("resize", toEnd)
      stop()
    }
  }, [following])
}
