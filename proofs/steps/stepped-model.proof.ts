/**
 * Proof: over random sequences of commands on jobs that keep steps, sleep and wait for signals, SQLite and Redis answer and
 * hold the same as the memory store after every step. The comparison catches mutations of their SQL and Lua, and the
 * contract those that it reaches too seldom.
 */

import { proveKind } from '../models/model.js'
import type { Report, Summary } from '../report.js'
import { redisStepMutations } from './redis-step-mutations.js'
import { sqliteStepMutations } from './sqlite-step-mutations.js'

export const seed = 1_500_000

const counts = { many: [250, 80], long: [5, 400], onCluster: [25, 80], trial: [120, 120] } as const

export const prove = (report: Report): Promise<Summary> =>
  proveKind(report, 'stepped', seed, counts, { sqlite: sqliteStepMutations, redis: redisStepMutations })
