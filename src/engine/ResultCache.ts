/**
 * Results of tools that say that equal calls may share one.
 *
 * @since 0.1.0
 */
import type { CurrentDocument } from "../domain/RunInput.js"
import * as Json from "../tool/Json.js"

/**
 * Whose result it is and of what: calls of another user, or with another document open, never share one.
 *
 * @since 0.1.0
 * @category models
 */
export interface CacheKey {
  readonly user: string
  readonly tool: string
  readonly input: unknown
  readonly currentDocument: CurrentDocument | null
}

/**
 * Keeps the most recently used results, a bounded number of them, in this process alone.
 *
 * @since 0.1.0
 * @category models
 */
export class ResultCache {
  private readonly results = new Map<string, unknown>()

  constructor(private readonly capacity = 1000) {}

  private static text(key: CacheKey): string {
    return Json.canonical([key.user, key.tool, key.input, key.currentDocument])
  }

  get(key: CacheKey): { readonly result: unknown } | undefined {
    const text = ResultCache.text(key)
    if (!this.results.has(text)) return undefined
    const result = this.results.get(text)
    this.results.delete(text)
    this.results.set(text, result)
    return { result }
  }

  set(key: CacheKey, result: unknown): void {
    const text = ResultCache.text(key)
    this.results.delete(text)
    this.results.set(text, result)
    const oldest = this.results.keys().next()
    if (this.results.size > this.capacity && oldest.done !== true) this.results.delete(oldest.value)
  }

  /** A write was applied: what the user read before may be out of date. */
  forget(user: string): void {
    const start = `[${JSON.stringify(user)},`
    for (const key of this.results.keys()) if (key.startsWith(start)) this.results.delete(key)
  }
}
