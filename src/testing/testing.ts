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
export type { Command } from './command.js'
export { commandSequence } from './command-sequence.js'
export { compareStores, StoresDifferError } from './compare-stores.js'
export type { ContractCase, ContractConcern } from './contract/contract-case.js'
export { runContractCase } from './contract/contract-case.js'
export { storeContract } from './contract/store-contract.js'
export { ManualClock } from './manual-clock.js'
export { memoryHarness } from './memory-harness.js'
export type { SqliteHarness } from './sqlite-harness.js'
export { sqliteHarness } from './sqlite-harness.js'
export type { HarnessMaker, StoreHarness } from './store-harness.js'
export { defaultStartAt } from './store-harness.js'
