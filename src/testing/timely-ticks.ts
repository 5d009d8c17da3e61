/**
 * Timely ticks: the ticks of schedules, enqueued as by a worker that was there at each instant, however far a test has
 * moved its clock. So no tick is missed, and each is made by the same code as in a worker.
 */

import { createIdSource } from '../core/values/ids.js'
import type { DueSchedules, Schedules, StoredSchedule } from '../stores/contract/schedules.js'
import type { RunParts } from '../workers/assemble-worker.js'
import { ScheduleLead } from '../workers/schedules/schedule-lead.js'

const mostDue = 1_000

export class TimelyTicks {
  readonly #schedules: Schedules
  readonly #worker: string
  readonly #lead: ScheduleLead
  /** The due schedules that the lead is given. */
  #due: Pick<DueSchedules, 'due' | 'now'> | undefined

  constructor({ packing, events, clock }: RunParts, schedules: Schedules, worker: string) {
    this.#schedules = schedules
    this.#worker = worker
    this.#lead = new ScheduleLead({
      ...{ packing, events, worker, newId: createIdSource(clock), mono: () => clock.mono() },
      schedules: {
        due: async (...asked) => ({ ...(await schedules.due(...asked)), ...this.#due }),
        tick: (tick) => schedules.tick(tick),
        list: (after, limit) => schedules.list(after, limit),
      },
    })
  }

  /** Enqueues the earliest due tick into these queues. False if none is due, or its queue refuses it. */
  async next(queues: readonly string[]): Promise<boolean> {
    const first = await this.#first(queues)
    if (first === undefined) return false
    this.#due = { due: [first], now: first.nextAt! }
    try {
      await this.#lead.look()
    } finally {
      this.#due = undefined
    }
    const after = await this.#schedules.get(first.definition.name)
    return after?.nextAt !== first.nextAt
  }

  async #first(queues: readonly string[]): Promise<StoredSchedule | undefined> {
    const { due } = await this.#schedules.due(this.#worker, 1, mostDue)
    return due.find(({ definition }) => queues.includes(definition.queue))
  }
}
