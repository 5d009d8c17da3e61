/** Refusals of options that need a trait which the store lacks, each with a remedy. */

import { withoutDeaths, withoutSchedules } from '../../client/store-facets.js'
import { UnsupportedByStoreError } from '../../core/errors.js'
import type { Queue } from '../../core/queue/queue.js'
import type { Registry } from '../../core/registry.js'
import type { AnyTask } from '../../core/task/any-task.js'
import type { AnyOrderedTask } from '../../core/task/ordered-task.js'
import { formatDuration } from '../../core/values/duration.js'
import type { StoreTraits } from '../../stores/contract/store.js'

/** The refused feature, and its remedy. */
type Refusal = readonly [feature: string, remedy: string]

/** The part of a store's hold time on a job that is kept for the end of its run. */
const leastLeftMs = 15 * 60_000

/**
 * Throws for the first option that needs a trait which the store lacks.
 * @internal
 */
export function refuseUnsupported(
  registry: Registry,
  traits: StoreTraits,
  schedules: ReadonlyMap<string, unknown> = new Map(),
): void {
  const refusals = [
    ...[...registry.queues.values()].flatMap((queue) => queueRefusals(queue, registry.orderedTask(queue.name), traits)),
    ...[...registry.tasks.values()].flatMap((task) => taskRefusals(task, registry.queue(task.queue), traits)),
  ]
  if (!traits.scheduled)
    refusals.push(...[...schedules.keys()].map((name): Refusal => [`schedule '${name}'`, withoutSchedules]))
  for (const [feature, remedy] of refusals) throw new UnsupportedByStoreError(traits.name, feature, remedy)
}

function queueRefusals(queue: Queue, task: AnyOrderedTask | undefined, traits: StoreTraits): Refusal[] {
  const { name, ordered, order, fifo, throttle, maxRunning, maxPending, leaseMs, groupWeights } = queue
  const refusals: Refusal[] = []
  const refuse = (isAsked: boolean, ...refusal: Refusal) => {
    if (isAsked) refusals.push(refusal)
  }
  const without = task === undefined ? 'Leave `ordered` out' : `Make '${task.name}' by defineTask()`
  refuse(ordered && !traits.ordered, `ordered queue '${name}'`, `${without}, or use a store with ordered queues.`)
  if (ordered && !traits.merges) refusals.push(...mergeRefusals(queue, task))
  refuse(
    fifo && !traits.fifo,
    `\`fifo\` of queue '${name}'`,
    'Leave `fifo` out: with `maxRunning: { perGroup: 1 }` jobs of a group run one after the other, in order.',
  )
  refuse(
    throttle !== undefined && !traits.throttled,
    `the throttle of queue '${name}'`,
    'Leave `throttle` out, or use a store with throttles.',
  )
  refuse(
    maxRunning !== undefined && !traits.limited,
    `maxRunning of queue '${name}'`,
    'Leave `maxRunning` out, or use a store with limits.',
  )
  refuse(
    groupWeights !== undefined && !traits.inTurns,
    `groupWeights of queue '${name}'`,
    'Leave `groupWeights` out, or use a store in which groups take turns.',
  )
  refuse(
    maxPending !== undefined && !traits.exactEnqueue,
    `maxPending of queue '${name}'`,
    'Leave `maxPending` out, or use a store that counts at each enqueue.',
  )
  refuse(
    order === 'lifo' && !traits.inOrder,
    `the order 'lifo' of queue '${name}'`,
    'Leave `order` out, or use a store that keeps jobs in order.',
  )
  refuse(
    leaseMs > traits.maxLeaseMs,
    `a lease of ${leaseMs} ms on queue '${name}'`,
    `Set \`lease\` to at most ${traits.maxLeaseMs} ms.`,
  )
  return refusals
}

/** The refusals for an ordered queue on a store whose payloads do not merge. */
function mergeRefusals({ name, exclusive }: Queue, task: AnyOrderedTask | undefined): Refusal[] {
  const asked = {
    "exclusive: 'shard'": exclusive === 'shard',
    score: task?.score !== undefined,
    [`merge: '${task?.merge}'`]: task !== undefined && task.merge !== 'all',
    group: task?.group !== undefined,
  }
  return Object.entries(asked).flatMap(([option, isAsked]): Refusal[] =>
    isAsked
      ? [
          [
            `\`${option}\` of ordered queue '${name}'`,
            `Leave \`${option}\` out: payloads of an id come in the order in which they were enqueued. Or use a store that merges them.`,
          ],
        ]
      : [],
  )
}

function taskRefusals(task: AnyTask, { name, leaseMs }: Queue, traits: StoreTraits): Refusal[] {
  const refusals: Refusal[] = []
  const longestMs = traits.maxHoldMs - Math.max(leastLeftMs, leaseMs / 2)
  if (task.timeLimitMs > longestMs)
    refusals.push([
      `the time limit of task '${task.name}'`,
      `A job of queue '${name}' is held for ${formatDuration(traits.maxHoldMs)} at most: set \`timeLimit\` to at most ${formatDuration(longestMs)}, or use another store.`,
    ])
  if (task.kind === 'plain' && task.expiresInMs !== undefined && !traits.expires)
    refusals.push([
      `\`expiresIn\` of task '${task.name}'`,
      'Leave `expiresIn` out and let the handler compare `ctx.job.createdAt` with the time, or use a store that cancels such jobs.',
    ])
  if (task.onDead !== undefined && !traits.deaths) refusals.push([`\`onDead\` of task '${task.name}'`, withoutDeaths])
  if (task.group !== undefined && !traits.groups)
    refusals.push([`the groups of task '${task.name}'`, 'Leave `group` out, or use a store with groups.'])
  return refusals
}
