/**
 * What tests of runs are made of: models, upstream servers, tools and stores that do as they are told, a clock that
 * does too, and the laws and contracts to check against. It belongs to no test runner.
 *
 * @since 0.1.0
 */

export * as Arbitraries from "./Arbitraries.js"
export * as Cases from "./Cases.js"
export * as Commands from "./Commands.js"
export * as Dice from "./Dice.js"
export * as EventArbitraries from "./EventArbitraries.js"
export * as FaultyStore from "./FaultyStore.js"
export * as HistoryLaws from "./HistoryLaws.js"
export * as HttpContract from "./HttpContract.js"
export * as Law from "./Law.js"
export * as Laws from "./Laws.js"
export * as LimitLaws from "./LimitLaws.js"
export * as ModelContract from "./ModelContract.js"
export * as Observed from "./Observed.js"
export * as Plan from "./Plan.js"
export * as PolicyContract from "./PolicyContract.js"
export * as Recorder from "./Recorder.js"
export * as RecordingTools from "./RecordingTools.js"
export * as ScriptedModel from "./ScriptedModel.js"
export * as ScriptedUpstream from "./ScriptedUpstream.js"
export * as Simulation from "./Simulation.js"
export * as StoreContract from "./StoreContract.js"
export * as Stores from "./Stores.js"
export * as TestStack from "./TestStack.js"
export * as Timeline from "./Timeline.js"
export * as ToolLaws from "./ToolLaws.js"
export * as UpstreamBehaviours from "./UpstreamBehaviours.js"
export * as UpstreamScript from "./UpstreamScript.js"
export * as VirtualClient from "./VirtualClient.js"
export * as VirtualTime from "./VirtualTime.js"
