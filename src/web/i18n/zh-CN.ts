/**
 * What the pages say, in Simplified Chinese.
 *
 * @since 0.1.0
 */
import type { Texts } from "./en.js"

/**
 * The Chinese texts.
 *
 * @since 0.1.0
 * @category texts
 */
export const zhCN: Texts = {
  "app.name": "Runlet",
  "language.switch": "语言",
  "theme.switch": "外观",
  "theme.auto": "跟随系统",
  "theme.light": "浅色",
  "theme.dark": "深色",
  "common.close": "关闭",
  "common.cancel": "取消",
  "common.copy": "复制",
  "common.copied": "已复制",
  "common.loading": "加载中…",
  "common.tokens": (count) => `${count} 个词元`
}
