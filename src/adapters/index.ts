/**
 * Logs in the words of other protocols: pure folds, for servers and browsers alike. Nothing of those protocols' own
 * packages is needed.
 *
 * @since 0.1.0
 */
export * as AgUi from "./AgUi.js"
export * as AiSdk from "./AiSdk.js"
export * as AiSdkChunks from "./AiSdkChunks.js"
export * as AiSdkMessages from "./AiSdkMessages.js"
export { type ResumableOptions, resumableFetch } from "./ResumableFetch.js"
