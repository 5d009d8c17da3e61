/**
 * Proof: over random sequences of commands on queues with throttles, bounds, holds and groups, and with a restart of
 * the store, SQLite and Redis answer and hold the same as the memory store after every step. The comparison catches
 * mutations of their SQL and Lua.
 */

import type { Report, Summary } from '../report.js'
import { proveKind } from './model.js'
import { redisLimitedMutations } from './redis-limited-mutations.js'
import { sqliteLimitedMutations } from './sqlite-limited-mutations.js'

export const seed = 900_000

const counts = { many: [1_000, 80], long: [10, 600], onCluster: [60, 80], trial: [200, 120] } as const

export const prove = (report: Report): Promise<Summary> =>
  proveKind(report, 'limited', seed, counts, { sqlite: sqliteLimitedMutations, redis: redisLimitedMutations })
