/**
 * The operator of the joins drill: cancels, deletes, buries and revives members and joins, clears a queue of members, and
 * gives an ordered queue other shards, at random. What may end a job is in the ledger before it is done.
 */

import type { Mill } from 'millrace'
import type { Dice } from '#src/store-testing/sequences/dice.js'
import { note, type Row, resultOf } from './join-plan.js'

const verbs = ['cancel', 'delete', 'bury'] as const
const shards = [1, 2, 3, 5]

export class JoinOperator {
  readonly #mill: Mill
  readonly #dice: Dice
  readonly #folder: string
  /** How often each thing was done. */
  readonly acts: Record<string, number> = {}
  /** A reshard that was begun must come to its end before another. */
  #wanted: number | undefined

  constructor(mill: Mill, dice: Dice, folder: string) {
    this.#mill = mill
    this.#dice = dice
    this.#folder = folder
  }

  /** Does one thing, or nothing. Never rejects: the server may be away, or the job may have begun. */
  async act(): Promise<void> {
    const act = this.#dice.weighted([
      [12, () => this.#revive(this.#dice.pick(['rows', 'loose']), 0.5)],
      [10, () => this.#revive(this.#dice.pick(['sums', 'tops']), 0.3)],
      [38, () => this.#endMember()],
      [5, () => this.#endJoin()],
      [1, () => this.#clear()],
      [34, async () => undefined],
    ])
    const done = await act().catch(() => undefined)
    if (done !== undefined) this.acts[done] = (this.acts[done] ?? 0) + 1
  }

  async reshard(): Promise<void> {
    this.#wanted ??= this.#dice.pick(shards)
    await this.endReshard()
  }

  /** Goes on with a reshard that was begun, if there is one. */
  async endReshard(): Promise<void> {
    if (this.#wanted === undefined) return
    try {
      await this.#mill.queue('orders').reshard(this.#wanted, { signal: AbortSignal.timeout(5_000) })
      this.#wanted = undefined
      this.acts['reshards'] = (this.acts['reshards'] ?? 0) + 1
    } catch {
      // It goes on the next time.
    }
  }

  async #revive(queue: string, share: number): Promise<string | undefined> {
    const { jobs } = await this.#mill.queue(queue).morgue.list({ limit: 20 })
    const some = jobs.filter(() => this.#dice.chance(share)).map(({ id }) => id)
    if (some.length === 0) return undefined
    await this.#mill.queue(queue).morgue.revive(some)
    return `revives in ${queue}`
  }

  async #endMember(): Promise<string | undefined> {
    const queue = this.#mill.queue('rows')
    const state = this.#dice.pick(['ready', 'ready', 'running', 'scheduled'] as const)
    const { jobs } = await queue.jobs.list({ state, limit: 100 })
    if (jobs.length === 0) return undefined
    const { id, input } = this.#dice.pick(jobs)
    const verb = state === 'running' ? 'cancel' : this.#dice.pick(verbs)
    note(this.#folder, 'cancels', resultOf(input as Row))
    await queue.jobs[verb]([id])
    return `${verb} of a ${state} member`
  }

  async #endJoin(): Promise<string | undefined> {
    const queue = this.#mill.queue(this.#dice.pick(['sums', 'sums', 'tops']))
    const state = this.#dice.pick(['waiting', 'waiting', 'ready'] as const)
    const { jobs } = await queue.jobs.list({ state, limit: 100 })
    if (jobs.length === 0) return undefined
    const { id, input } = this.#dice.pick(jobs)
    const verb = this.#dice.pick(verbs)
    note(this.#folder, 'cancels', (input as { name: string }).name)
    await queue.jobs[verb]([id])
    return `${verb} of a ${state} join`
  }

  async #clear(): Promise<string> {
    note(this.#folder, 'clears', 'loose')
    await this.#mill.queue('loose').clear()
    return 'clears'
  }
}
