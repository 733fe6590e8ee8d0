/**
 * Choices that a browser keeps for the page. Where it may not keep anything, they last as long as the page.
 *
 * @since 0.1.0
 */

/**
 * A text under a name in the browser's storage.
 *
 * @since 0.1.0
 * @category models
 */
export interface Stored {
  readonly get: () => string | undefined
  readonly set: (value: string | undefined) => void
}

/**
 * The text of this name. A browser that forbids it throws even when it is only looked at.
 *
 * @since 0.1.0
 * @category constructors
 */
export const stored = (name: string): Stored => ({
  get: () => {
    try {
      return localStorage.getItem(name) ?? undefined
    } catch {
      return undefined
    }
  },
  set: (value) => {
    try {
      if (value === undefined) localStorage.removeItem(name)
      else localStorage.setItem(name, value)
    } catch {}
  }
})
