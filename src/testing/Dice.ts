/**
 * Choices out of an array of numbers. What is built from it shrinks well: fewer throws and smaller numbers mean a
 * simpler thing, and when the throws are used up every further choice is the first one.
 *
 * @since 0.1.0
 */
import * as FastCheck from "effect/FastCheck"

/**
 * Throws that are used one after the other.
 *
 * @since 0.1.0
 * @category models
 */
export class Dice {
  private at = 0

  /** The throws an arbitrary thing is made from. */
  static readonly arbitrary: FastCheck.Arbitrary<ReadonlyArray<number>> = FastCheck.array(
    FastCheck.nat({ max: 0x7fff }),
    { maxLength: 200, size: "max" }
  )

  constructor(readonly throws: ReadonlyArray<number>) {}

  /** A number of 0 … n - 1; 0 when nothing is left. */
  below(n: number): number {
    const thrown = this.throws[this.at++] ?? 0
    return n <= 1 ? 0 : thrown % n
  }

  /** True once in n throws, never when nothing is left. */
  chance(n: number): boolean {
    return this.below(n) === n - 1
  }

  /** One of these. */
  pick<A>(options: readonly [A, ...ReadonlyArray<A>]): A {
    return options[this.below(options.length)] ?? options[0]
  }
}
