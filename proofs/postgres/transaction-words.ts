/** What the processes of `postgres-transactions` share: how a round of a producer ends, and errors that say to begin anew. */

import { defineTask } from 'millrace'
import { seededRandom } from '../../test/seeded-random.js'
import type { Isolation } from '../../test/stores/postgres/user/postgres-clients.js'

/** `client`: a name in `test/stores/postgres/user/postgres-clients`. */
export interface TransactionSite {
  readonly store: string
  readonly client: string
}

export interface ProducerSettings extends TransactionSite {
  readonly seed: number
  readonly from: number
  readonly to: number
}

/** `at`: where the process dies: after a row, after a job, around the commit, and after it. */
export interface Round {
  readonly isolation: Isolation
  readonly end: 'commit' | 'rollback' | 'refused' | 'kill'
  readonly jobs: number
  readonly at: number
}

const ends = ['commit', 'commit', 'commit', 'rollback', 'rollback', 'refused'] as const
/** A new process takes a second to start. */
const killShare = 0.02

/** The round of this number. It is the same in every process. */
export function roundOf(seed: number, number: number): Round {
  const random = seededRandom(seed + number)
  const below = (most: number) => Math.floor(random() * most)
  const isolation = number % 2 === 0 ? 'read committed' : 'serializable'
  const end = random() < killShare ? 'kill' : ends[below(ends.length)]!
  return { isolation, end, jobs: 1 + below(3), at: below(4) }
}

/** `begun`: a round; `repeated`: how many transactions the process has begun anew, as Postgres asks. */
export interface ProducerWord {
  readonly begun: number
  readonly repeated: number
}

export const ship = defineTask({ name: 'ship', queue: 'shipments' })
/** A transaction that has to begin anew fails its handler, and the next run begins it. */
export const pay = defineTask({ name: 'pay', queue: 'payments', retry: { max: 1_000, backoff: () => 0 } })

/** A serialization failure or a deadlock. Clients wrap the server's error, each in its own way. */
export function saysBeginAnew(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false
  const { code, cause, driverError } = error as Record<string, unknown>
  return code === '40001' || code === '40P01' || saysBeginAnew(cause) || saysBeginAnew(driverError)
}

export function die(): never {
  process.kill(process.pid, 'SIGKILL')
  for (;;);
}
