/**
 * Secrets in a text that comes in pieces. What may become one is held back until it is known; everything else passes
 * at once, as it is.
 *
 * @since 0.1.0
 */
import { type Patterns, type Range, replaced } from "./SecretPatterns.js"

/** How much of what has passed is looked at again, because a secret may have begun in it. */
const context = 64
/** After something suspicious, this many characters are looked at: the fixed beginning of a form is no longer. */
const watch = 16
/** More than this is not held back: if it is a secret, so is what follows it without a break. */
const maxHeld = 16_384
const unbroken = /^[\w.~+/=\\-]+/

/** The place, or where the secret begins that goes on over it: what is told may not end in one. */
const outOfSecrets = (ranges: ReadonlyArray<Range>, place: number): number =>
  ranges.reduceRight((place, [from, to]) => (from < place && place < to ? from : place), place)

/**
 * One text in pieces.
 *
 * Plain mutable code on purpose: it runs once for every delta of every run.
 *
 * @since 0.1.0
 * @category models
 */
export class SecretStream {
  private held = ""
  private passed = ""
  private depth = context
  private before = 0
  private last = 0
  /** How long what is held back must have become before it is looked at again. */
  private wanted = 0
  private swallowing = false
  /** For so many characters what passed may go on as a secret. */
  private wary = 0

  constructor(private readonly patterns: Patterns) {}

  /** Whether something is held back. */
  get holds(): boolean {
    return this.held !== ""
  }

  /** What may be told now that this piece has come; often the piece itself, sometimes nothing. */
  push(piece: string): string {
    const { length } = piece
    if (length === 0) return piece
    const suspicious = this.patterns.suspicious(piece, this.before, this.last)
    this.before = length > 1 ? piece.charCodeAt(length - 2) : this.last
    this.last = piece.charCodeAt(length - 1)
    const wary = suspicious || this.wary > 0
    this.wary = suspicious ? watch : this.wary - length
    if (this.held !== "" || this.swallowing || wary) return this.look(piece)
    this.passed = this.passed.length > 256 ? this.passed.slice(-context) + piece : this.passed + piece
    return piece
  }

  /** The rest, when nothing more comes for now. */
  end(): string {
    this.swallowing = false
    if (this.held === "") return ""
    const text = this.passed + this.held
    const out = replaced(text, this.patterns.find(text, true), this.passed.length)
    this.keep(text, this.held.length)
    this.held = ""
    this.wanted = 0
    this.wary = watch
    return out
  }

  private look(piece: string): string {
    this.held += this.swallowing ? piece.replace(unbroken, "") : piece
    if (this.held === "" || this.held.length < this.wanted) return ""
    this.swallowing = false
    const before = this.passed.slice(-this.depth)
    const text = before + this.held
    const found = this.patterns.find(text, false)
    const place = outOfSecrets(found, this.patterns.begun(text))
    const tooMuch = text.length - place > maxHeld
    const cut = tooMuch ? text.length : Math.max(before.length, place)
    const told = text.slice(0, cut)
    const ranges = tooMuch ? this.patterns.find(text, true) : found.filter(([, to]) => to <= cut)
    const out = replaced(told, ranges, before.length)
    this.held = text.slice(cut)
    this.swallowing = tooMuch && ranges.some(([, end]) => end === cut)
    // A long secret would otherwise be read again for each of its pieces.
    this.wanted = this.held.length < 64 ? 0 : Math.ceil(this.held.length * 1.25)
    // What may have begun in what was told is remembered for as long as it may go on.
    this.keep(told, Math.max(0, cut - place))
    return out
  }

  /** Remembers the end of what was told: enough of it, and all of what was held back. */
  private keep(told: string, length: number): void {
    this.depth = Math.max(context, length)
    this.passed = told.slice(-this.depth)
  }
}
