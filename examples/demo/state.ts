/** The state of an id: what its changes have made of it, one after another. */

import { createHash } from 'node:crypto'
import type { Change } from './history.js'

export interface State {
  /** How many have been applied. */
  readonly changes: number
  /** The place of the last of them. */
  readonly place: number
  /** What the last of them made of it. */
  readonly to: string
  /** Over all of them: it tells any two orders apart. */
  readonly digest: string
}

export const blank: State = { changes: 0, place: -1, to: '', digest: '' }

export function after(state: State, { place, by, to }: Change): State {
  const digest = createHash('sha256')
    .update(JSON.stringify([state.digest, place, by, to]))
    .digest('hex')
  return { changes: state.changes + 1, place, to, digest }
}
