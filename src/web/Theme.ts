/**
 * Light or dark: as the system is, until a person chooses one of the two.
 *
 * @since 0.1.0
 */
import { effect, signal } from "@preact/signals"
import { stored } from "./Stored.js"

/**
 * The looks that there are.
 *
 * @since 0.1.0
 * @category models
 */
export const themes = ["auto", "light", "dark"] as const

/**
 * One of the looks.
 *
 * @since 0.1.0
 * @category models
 */
export type Theme = (typeof themes)[number]

const choice = stored("runlet.theme")

const themeOf = (name: string | undefined): Theme => themes.find((known) => known === name) ?? "auto"

/**
 * The look in use.
 *
 * @since 0.1.0
 * @category themes
 */
export const theme = signal<Theme>(themeOf(choice.get()))

/**
 * Changes the look, here and at the next visit.
 *
 * @since 0.1.0
 * @category themes
 */
export const setTheme = (next: string) => {
  theme.value = themeOf(next)
  choice.set(theme.value === "auto" ? undefined : theme.value)
}

effect(() => {
  if (theme.value === "auto") delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme.value
})
