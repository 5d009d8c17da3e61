/**
 * Proof: over random sequences of commands on ordered queues, with every rule of merging and everything that may happen
 * between commands, SQLite and Redis answer and hold the same as the memory store after every step. The comparison
 * catches mutations of their SQL and Lua.
 */

import type { Report, Summary } from '../report.js'
import { proveKind } from './model.js'
import { redisOrderedMutations } from './redis-ordered-mutations.js'
import { sqliteOrderedMutations } from './sqlite-ordered-mutations.js'

export const seed = 700_000

const counts = { many: [2_000, 60], long: [20, 600], onCluster: [120, 60], trial: [80, 300] } as const

export const prove = (report: Report): Promise<Summary> =>
  proveKind(report, 'ordered', seed, counts, { sqlite: sqliteOrderedMutations, redis: redisOrderedMutations })
