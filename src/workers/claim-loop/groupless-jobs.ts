/**
 * The jobs without a group in queues whose limits hold for each group: together they share the limit of one group. If no
 * task of the queue says a group, that is probably not meant.
 */

import type { Events } from '../../core/events.js'
import type { Registry } from '../../core/registry.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { LimitedQueues } from '../departures/limited-queues.js'

interface GrouplessJobsParts {
  readonly registry: Registry
  readonly limited: LimitedQueues
  readonly events: Events
}

export class GrouplessJobs {
  readonly #parts: GrouplessJobsParts
  readonly #toldOf = new Set<string>()

  constructor(parts: GrouplessJobsParts) {
    this.#parts = parts
  }

  /** Notes claims of one queue, and reports the first without a group. */
  note(claims: readonly Claim[]): void {
    const { registry, limited, events } = this.#parts
    const { queue } = claims[0]!
    const limit = limited.limitOfGroups(queue)
    if (limit === undefined || this.#toldOf.has(queue)) return
    const groupless = claims.find(({ group }) => group === undefined)
    if (groupless === undefined || registry.saysGroups(queue)) return
    this.#toldOf.add(queue)
    events.emit('group.missing', { queue, task: groupless.task, limit })
  }
}
