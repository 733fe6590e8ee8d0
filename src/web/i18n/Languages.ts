/**
 * Which languages there are, and which of them fits somebody best. Pure.
 *
 * @since 0.1.0
 */
import { en, type Texts } from "./en.js"
import { zhCN } from "./zh-CN.js"

/**
 * The languages that there are, each under its own name.
 *
 * @since 0.1.0
 * @category models
 */
export const languages = { en: "English", "zh-CN": "简体中文" } as const

/**
 * The tag of a language that there is.
 *
 * @since 0.1.0
 * @category models
 */
export type Language = keyof typeof languages

/**
 * The texts of each language.
 *
 * @since 0.1.0
 * @category texts
 */
export const tables: { readonly [language in Language]: Texts } = { en, "zh-CN": zhCN }

/**
 * Whether the tag is that of a language that there is.
 *
 * @since 0.1.0
 * @category languages
 */
export const isLanguage = (tag: string | undefined): tag is Language =>
  tag !== undefined && Object.hasOwn(languages, tag)

/**
 * The first of the wanted languages that there is, whatever its region; English when there is none.
 *
 * @since 0.1.0
 * @category languages
 */
export const bestOf = (wanted: ReadonlyArray<string>): Language => {
  for (const tag of wanted) {
    const primary = tag.toLowerCase().split("-")[0]
    const found = Object.keys(languages).find((known) => known.toLowerCase().split("-")[0] === primary)
    if (isLanguage(found)) return found
  }
  return "en"
}
