/**
 * The bounds that keep a server healthy, each with its default. Times are milliseconds, sizes bytes.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

const positive = (value: number) => Schema.optionalWith(Schema.Int.pipe(Schema.positive()), { default: () => value })
const nonNegative = (value: number) => Schema.optionalWith(Schema.NonNegativeInt, { default: () => value })

/**
 * - `maxIterations`: model turns of one run; `maxTokens`, `maxCostUsd`: budgets of one run, `null` for none
 * - `maxConcurrentRuns`, `maxRunsPerUser`: executing at once; `maxQueuedRuns`: waiting; `maxStoredRunsPerUser`,
 *   `maxRunsPerConversation`: kept, whatever their state; `maxStreamsPerUser`: open viewers
 * - `maxConversationsPerUser`, `maxDocumentsPerUser`, `maxMemoriesPerUser`: kept, until they are deleted
 * - `maxStoreBytes`: with a store of so many bytes no run begins any more; `null` for none
 * - `toolTimeoutMs`: one phase of a tool; `firstChunkTimeoutMs`, `chunkTimeoutMs`: silence of a model before and after
 *   its first chunk; `runTimeoutMs`: execution of a run, without waiting; `approvalTtlMs`: life of an approval request
 * - `maxBodyBytes`, `maxMessages`, `maxMessageChars`: what a request may bring; `maxHeaderBytes`: its headers;
 *   `requestTimeoutMs`: how long headers and body may take to arrive; `maxConnections`: open at once, and at most three
 *   quarters of the file descriptors that the process may have
 * - `maxToolResultBytes`: a longer result is cut and the model told; `maxModelResponseBytes`: a longer answer of a model
 *   server, as it comes over the wire, fails
 * - `shutdownGraceMs`: how long a drain may take
 *
 * @since 0.1.0
 * @category models
 */
export const Limits = Schema.Struct({
  maxIterations: positive(8),
  maxTokens: Schema.optionalWith(Schema.NullOr(Schema.Int.pipe(Schema.positive())), { default: () => null }),
  maxCostUsd: Schema.optionalWith(Schema.NullOr(Schema.Number.pipe(Schema.positive())), { default: () => null }),
  maxConcurrentRuns: positive(256),
  maxRunsPerUser: positive(32),
  maxQueuedRuns: nonNegative(1024),
  maxStoredRunsPerUser: positive(10_000),
  maxRunsPerConversation: positive(1_000),
  maxConversationsPerUser: positive(10_000),
  maxDocumentsPerUser: positive(1_000),
  maxMemoriesPerUser: positive(500),
  maxStoreBytes: Schema.optionalWith(Schema.NullOr(Schema.Int.pipe(Schema.positive())), { default: () => null }),
  maxStreamsPerUser: positive(64),
  maxToolConcurrency: positive(8),
  toolTimeoutMs: positive(180_000),
  firstChunkTimeoutMs: positive(180_000),
  chunkTimeoutMs: positive(60_000),
  runTimeoutMs: positive(900_000),
  approvalTtlMs: positive(86_400_000),
  maxBodyBytes: positive(1_048_576),
  maxMessages: positive(500),
  maxMessageChars: positive(200_000),
  maxToolResultBytes: positive(262_144),
  maxModelResponseBytes: positive(67_108_864),
  maxHeaderBytes: positive(16_384),
  maxConnections: positive(10_000),
  requestTimeoutMs: positive(60_000),
  heartbeatMs: positive(15_000),
  shutdownGraceMs: positive(10_000)
})
/**
 * @since 0.1.0
 * @category models
 */
export type Limits = typeof Limits.Type

/**
 * How runs go on after a crash. `leaseTtlMs`: after how long a silent process is taken for dead; `maxAttempts`:
 * recoveries without any progress before a run fails; `checkpointEvery`: deltas between `assistant_delta` checkpoints.
 *
 * @since 0.1.0
 * @category models
 */
export const ResumeOptions = Schema.Struct({
  policy: Schema.optionalWith(Schema.Literal("restart-iteration", "continue-draft", "manual"), {
    default: () => "restart-iteration" as const
  }),
  leaseTtlMs: positive(10_000),
  maxAttempts: positive(5),
  checkpointEvery: positive(64)
})
/**
 * @since 0.1.0
 * @category models
 */
export type ResumeOptions = typeof ResumeOptions.Type

/**
 * Every limit at its default.
 *
 * @since 0.1.0
 * @category constants
 */
export const defaults: Limits = Schema.decodeSync(Limits)({})

/**
 * Every resume option at its default.
 *
 * @since 0.1.0
 * @category constants
 */
export const resumeDefaults: ResumeOptions = Schema.decodeSync(ResumeOptions)({})
