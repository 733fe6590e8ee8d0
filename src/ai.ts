/**
 * What needs `@effect/ai`, which is installed by those who want it.
 *
 * @since 0.1.0
 */
export * as AiTool from "./tool/AiTool.js"
