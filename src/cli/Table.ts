/**
 * How figures are written for people.
 *
 * @since 0.1.0
 */
import { pad, width } from "./Text.js"

const units = ["bytes", "kB", "MB", "GB", "TB"] as const

/**
 * A number of bytes in the unit that suits it: `512 bytes`, `1.5 MB`. Units are powers of 1000.
 *
 * @since 0.1.0
 * @category formatting
 */
export const bytes = (count: number): string => {
  const power = count < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(count) / 3))
  const value = count / 1000 ** power
  return `${power === 0 ? value : value.toFixed(1)} ${units[power] ?? ""}`
}

/**
 * Lines with their cells under each other, by the columns that they take. Numbers stand at the right of their column.
 *
 * @since 0.1.0
 * @category formatting
 */
export const columns = (rows: ReadonlyArray<ReadonlyArray<string | number>>): ReadonlyArray<string> => {
  const widths: Array<number> = []
  for (const row of rows) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, width(String(cell)))
  }
  return rows.map((row) =>
    row
      .map((cell, index) =>
        typeof cell === "number" ? String(cell).padStart(widths[index] ?? 0) : pad(cell, widths[index] ?? 0)
      )
      .join("  ")
      .trimEnd()
  )
}
