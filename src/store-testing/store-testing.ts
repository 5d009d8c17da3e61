/** `millrace/store-testing`: tools for the author of a store, and for the tests of an application. */

export type { ContractCase, ContractConcern } from './contract/scenes/contract-case.js'
export { runContractCase } from './contract/scenes/contract-case.js'
export { storeContract } from './contract/store-contract.js'
export { ManualClock } from './harness/manual-clock.js'
export { memoryHarness, modelOf } from './harness/memory-harness.js'
export type { AuditEntry, AuditKind } from './harness/store-audit.js'
export { auditBreaches, auditKind } from './harness/store-audit.js'
export type { HarnessMaker, StoreHarness } from './harness/store-harness.js'
export { defaultStartAt, UnseenError } from './harness/store-harness.js'
export type { Command } from './sequences/command.js'
export { commandSequence } from './sequences/command-sequence.js'
export type { Comparison, SequenceKind } from './sequences/compare-stores.js'
export { compareStores, StoresDifferError } from './sequences/compare-stores.js'
export { joinedSequence } from './sequences/joined-sequence.js'
export { limitedSequence } from './sequences/limited-sequence.js'
export { orderedSequence } from './sequences/ordered-sequence.js'
export { scheduledSequence } from './sequences/scheduled-sequence.js'
export { steppedSequence } from './sequences/stepped-sequence.js'
export type { ClusterOptions, ClusterServers, MoveOptions } from './servers/cluster-servers.js'
export type { FaultProxy, ProxyFault, ProxyTarget } from './servers/fault-proxy.js'
export { faultProxy } from './servers/fault-proxy.js'
export { RedisServerMissingError } from './servers/redis-server-binary.js'
export type { RedisServer, RedisServerOptions } from './servers/redis-server-process.js'
export type { RespReply } from './servers/resp-client.js'
export { RespError } from './servers/resp-client.js'
export type { SentinelServers } from './servers/sentinel-servers.js'
export type { RedisMode, StartedRedis } from './servers/start-redis.js'
export { startRedis } from './servers/start-redis.js'
export type {
  CanonicalCall,
  CanonicalClaim,
  CanonicalCounter,
  CanonicalEntry,
  CanonicalJob,
  CanonicalLanes,
  CanonicalLead,
  CanonicalMemory,
  CanonicalPayload,
  CanonicalQueue,
  CanonicalState,
  CanonicalThrottle,
} from './state/canonical-state.js'
export { canonicalPayload } from './state/canonical-state.js'
