/** Mutations of the proofs: each still finds in what is built the text that it changes. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { storeContract } from 'millrace/store-testing'
import { expect, it } from 'vitest'
import { memoryJoinMutations, memoryRepeats } from '../../proofs/joins/memory-join-mutations.js'
import { redisJoinMutations, redisRepeats } from '../../proofs/joins/redis-join-mutations.js'
import { sqliteJoinMutations, sqliteRepeats } from '../../proofs/joins/sqlite-join-mutations.js'
import type { Mutation } from '../../proofs/models/mutants.js'
import { postgresMutations } from '../../proofs/models/postgres-mutations.js'
import { redisLimitedMutations } from '../../proofs/models/redis-limited-mutations.js'
import { redisMutations } from '../../proofs/models/redis-mutations.js'
import { redisOrderedMutations } from '../../proofs/models/redis-ordered-mutations.js'
import { sqliteLimitedMutations } from '../../proofs/models/sqlite-limited-mutations.js'
import { sqliteMutations } from '../../proofs/models/sqlite-mutations.js'
import { sqliteOrderedMutations } from '../../proofs/models/sqlite-ordered-mutations.js'
import { simulationFaults } from '../../proofs/simulation/simulation-faults.js'
import { redisStepMutations } from '../../proofs/steps/redis-step-mutations.js'
import { sqliteStepMutations } from '../../proofs/steps/sqlite-step-mutations.js'

const concerns = new Set(storeContract.map(({ concern }) => concern))
const stores = join(import.meta.dirname, '../../dist/stores')
type MutationRow = readonly [what: string, mutations: readonly Mutation[]]

it.each<MutationRow>([
  ['the simulation', simulationFaults],
  ['plain queues on Redis', redisMutations],
  ['ordered queues and merging on Redis', redisOrderedMutations],
  ['limits on Redis', redisLimitedMutations],
  ['plain queues on SQLite', sqliteMutations],
  ['ordered queues on SQLite', sqliteOrderedMutations],
  ['limits on SQLite', sqliteLimitedMutations],
  ['the reports of members in the memory store', [...memoryJoinMutations, ...memoryRepeats]],
  ['the reports of members on SQLite', [...sqliteJoinMutations, ...sqliteRepeats]],
  ['the reports of members on Redis', [...redisJoinMutations, ...redisRepeats]],
  ...[...postgresMutations].map(([kind, mutations]): MutationRow => [`the ${kind} sequences on Postgres`, mutations]),
  ['steps and signals on SQLite', sqliteStepMutations],
  ['steps and signals on Redis', redisStepMutations],
])('every mutation of %s changes existing code, and names an existing concern that should catch it', (_, mutations) => {
  const missing = mutations.filter(({ file, from }) => !readFileSync(join(stores, file), 'utf8').includes(from))

  expect(missing.map(({ what }) => what)).toEqual([])
  expect(mutations.filter(({ concern }) => concern !== undefined && !concerns.has(concern))).toEqual([])
})
