/** The messages of the producer of the proof of enqueueIn, and the ways in which a round may end. */

import { defineTask } from 'millrace'
import { seededRandom } from '../../test/seeded-random.js'

export interface ProducerSettings {
  readonly file: string
  readonly driver: ProducerDriver
  readonly seed: number
  readonly from: number
  readonly to: number
}

export type ProducerDriver = '@photostructure/sqlite' | 'better-sqlite3'

/** `at`: the step before which the process is killed. The steps are rows, jobs, commit, and the end. */
export interface Round {
  readonly end: 'commit' | 'rollback' | 'savepoint' | 'refused' | 'alone' | 'kill'
  readonly jobs: number
  readonly at: number
}

const ends: readonly Round['end'][] = [
  'commit',
  'commit',
  'rollback',
  'rollback',
  'savepoint',
  'refused',
  'alone',
  'kill',
]

/** The round of this number. It is the same in every process. */
export function roundOf(seed: number, number: number): Round {
  const random = seededRandom(seed + number)
  const below = (most: number) => Math.floor(random() * most)
  return { end: ends[below(ends.length)]!, jobs: 1 + below(3), at: below(4) }
}

/** Sent when a round begins. The last round that a killed producer named is the one in which it died. */
export type ProducerWord = { readonly begun: number }

export const ship = defineTask({ name: 'ship', queue: 'shipments' })
