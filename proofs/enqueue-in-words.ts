/** What the producer of the proof of enqueueIn says to its parent, and how a round may end. */

import { defineTask } from 'millrace'
import { seededRandom } from '../test/seeded-random.js'

export interface ProducerSettings {
  readonly file: string
  readonly driver: ProducerDriver
  readonly seed: number
  readonly from: number
  readonly to: number
}

export type ProducerDriver = '@photostructure/sqlite' | 'better-sqlite3'

/** `at`: before which of its steps the process is killed; one after the other: rows, jobs, commit, and what follows. */
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

/** What a round does; the same for the same number, whichever process comes to it. */
export function roundOf(seed: number, number: number): Round {
  const random = seededRandom(seed + number)
  const below = (most: number) => Math.floor(random() * most)
  return { end: ends[below(ends.length)]!, jobs: 1 + below(3), at: below(4) }
}

/** Of each round: that it has begun. The last one a killed producer named is the one in which it died. */
export type ProducerWord = { readonly begun: number }

export const ship = defineTask({ name: 'ship', queue: 'shipments' })
