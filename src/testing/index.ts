/**
 * What tests of runs are made of: models, upstream servers, tools and stores that do as they are told, a clock that
 * does too, and the laws and contracts to check against. It belongs to no test runner.
 *
 * @since 0.1.0
 */
export * as Dice from "./Dice.js"
export * as EventArbitraries from "./EventArbitraries.js"
export * as ScriptedModel from "./ScriptedModel.js"
export * as ScriptedUpstream from "./ScriptedUpstream.js"
export * as StoreContract from "./StoreContract.js"
export * as UpstreamBehaviours from "./UpstreamBehaviours.js"
export * as UpstreamScript from "./UpstreamScript.js"
