/** `millrace/testing`: what the author of a store, and the tests of an application, need. */

export type { AuditEntry, AuditKind } from './audit-entry.js'
export { auditKind } from './audit-entry.js'
export { auditBreaches } from './audit-rules.js'
export type {
  CanonicalCall,
  CanonicalClaim,
  CanonicalJob,
  CanonicalLead,
  CanonicalMemory,
  CanonicalPayload,
  CanonicalQueue,
  CanonicalState,
} from './canonical-state.js'
export { canonicalPayload, compareBytes } from './canonical-state.js'
export type { ClusterOptions, ClusterServers, MoveOptions } from './cluster-servers.js'
export type { Command } from './command.js'
export { commandSequence } from './command-sequence.js'
export type { SequenceKind } from './compare-stores.js'
export { compareStores, StoresDifferError } from './compare-stores.js'
export type { ContractCase, ContractConcern } from './contract/contract-case.js'
export { runContractCase } from './contract/contract-case.js'
export { storeContract } from './contract/store-contract.js'
export type { FaultProxy, ProxyFault, ProxyTarget } from './fault-proxy.js'
export { faultProxy } from './fault-proxy.js'
export { limitedSequence } from './limited-sequence.js'
export { ManualClock } from './manual-clock.js'
export { memoryHarness, modelOf } from './memory-harness.js'
export { orderedSequence } from './ordered-sequence.js'
export { redisHarness } from './redis-harness.js'
export { RedisServerMissingError } from './redis-server-binary.js'
export type { RedisServer, RedisServerOptions } from './redis-server-process.js'
export type { RespReply } from './resp-client.js'
export { RespError } from './resp-client.js'
export type { SentinelServers } from './sentinel-servers.js'
export type { SqliteHarness } from './sqlite-harness.js'
export { sqliteHarness } from './sqlite-harness.js'
export type { RedisMode, StartedRedis } from './start-redis.js'
export { startRedis } from './start-redis.js'
export type { HarnessMaker, StoreHarness } from './store-harness.js'
export { defaultStartAt } from './store-harness.js'
