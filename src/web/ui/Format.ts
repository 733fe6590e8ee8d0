/**
 * Numbers, durations and times as the reader's language writes them.
 *
 * @since 0.1.0
 */
import { language, t } from "../i18n/index.js"

/**
 * A number with its groups of digits.
 *
 * @since 0.1.0
 * @category formatting
 */
export const number = (value: number): string => new Intl.NumberFormat(language.value).format(value)

/**
 * A duration in milliseconds, as precise as it matters.
 *
 * @since 0.1.0
 * @category formatting
 */
export const duration = (milliseconds: number): string => {
  const seconds = Math.max(0, milliseconds) / 1000
  if (seconds < 9.95) return t("time.seconds", seconds.toFixed(1))
  if (seconds < 59.5) return t("time.seconds", seconds.toFixed(0))
  const whole = Math.round(seconds)
  if (whole < 3600) return t("time.minutes", Math.floor(whole / 60), whole % 60)
  // Of many hours nobody counts the minutes.
  const hours = Math.floor(whole / 3600)
  return t("time.hours", hours, hours < 10 ? Math.floor((whole % 3600) / 60) : 0)
}

/**
 * US dollars, with as many digits as a small amount needs.
 *
 * @since 0.1.0
 * @category formatting
 */
export const dollars = (amount: number): string =>
  new Intl.NumberFormat(language.value, {
    style: "currency",
    currency: "USD",
    maximumFractionDigits: amount < 0.1 ? 4 : 2
  }).format(amount)

/**
 * A day and its hour.
 *
 * @since 0.1.0
 * @category formatting
 */
export const when = (time: number): string =>
  new Intl.DateTimeFormat(language.value, { dateStyle: "medium", timeStyle: "short" }).format(time)
