/**
 * What needs `@effect/ai`, which is installed by those who want it.
 *
 * @since 0.1.0
 */
export * as AiAgent from "./agent/AiAgent.js"
export * as AiModel from "./model/AiModel.js"
export type * as ProviderOptions from "./model/ProviderOptions.js"
export * as ProviderTurn from "./model/ProviderTurn.js"
export * as AiTool from "./tool/AiTool.js"
