/**
 * How much of a conversation is read at once.
 *
 * @since 0.1.0
 */

/** In bytes. */
const pageBytes = 1024 * 1024

/**
 * How many of the first exchanges fit into a page, by their sizes; one always does.
 *
 * @since 0.1.0
 * @category reading
 */
export const fitting = (sizes: ReadonlyArray<number>): number => {
  let bytes = 0
  const over = sizes.findIndex((size) => {
    bytes += size
    return bytes > pageBytes
  })
  return over === -1 ? sizes.length : Math.max(1, over)
}
