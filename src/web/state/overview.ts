/** The overview: every queue, the sums over them, and the workers. */

import type { Mill } from '../../mill/mill.js'
import { attendanceOf } from '../../runtime/process/process-peers.js'
import { type QueueCounts, summed } from '../../stores/rules/queue-counts.js'
import { type OverviewRow, queuesAndWorkers } from './queue-rows.js'
import type { SparkReader } from './sparks.js'

interface Overview {
  readonly at: Date
  readonly store: string
  readonly queues: readonly OverviewRow[]
  /** Sums; for lags the longest. */
  readonly totals: QueueCounts
  /** Null if the store keeps no registry of workers. */
  readonly workers: {
    readonly count: number
    readonly slots: number
    readonly running: number
    /** Those of other machines that have not reported for 30 s; the others do not include them. */
    readonly silent: number
  } | null
}

export async function overviewOf(mill: Mill, readSparks: SparkReader): Promise<Overview> {
  const { queues, workers: registered } = await queuesAndWorkers(mill, readSparks)
  const sum = (numbers: readonly number[]) => numbers.reduce((total, n) => total + n, 0)
  const attendance = registered && attendanceOf(registered)
  return {
    at: new Date(),
    store: mill.store.text,
    queues,
    totals: summed(queues),
    workers:
      attendance === undefined
        ? null
        : {
            count: attendance.serving.length,
            slots: sum(attendance.serving.map(({ concurrency }) => concurrency)),
            running: sum(attendance.serving.map(({ running }) => running)),
            silent: attendance.silent.length,
          },
  }
}

interface LowkiqStats {
  readonly length: number
  readonly morgue_length: number
  readonly lag: number
}

/** The same in the shape of Lowkiq's `/api/v1/stats`; lags are in seconds. */
export function lowkiqStats(queues: readonly OverviewRow[]): {
  readonly total: LowkiqStats
  readonly by_worker: Readonly<Record<string, LowkiqStats>>
} {
  const rows = queues.map(({ name, fresh, retries, dead, lagMs }): [string, LowkiqStats] => [
    name,
    { length: fresh + retries, morgue_length: dead, lag: lagMs / 1_000 },
  ])
  const all = rows.map(([, stats]) => stats)
  const sum = (of: 'length' | 'morgue_length') => all.reduce((total, stats) => total + stats[of], 0)
  const total = {
    length: sum('length'),
    morgue_length: sum('morgue_length'),
    lag: Math.max(0, ...all.map(({ lag }) => lag)),
  }
  return { total, by_worker: Object.fromEntries(rows) }
}
