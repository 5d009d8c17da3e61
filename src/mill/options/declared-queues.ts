/**
 * The declared queues: those of the configuration and those that only tasks name. A queue that an ordered task names is
 * ordered.
 */

import type { ConfigIssue } from '../../core/errors.js'
import { longestTimerMs } from '../../core/platform/timer.js'
import { type CheckedQueueOptions, type Queue, queueOf, queueOptionsSchema } from '../../core/queue/queue.js'
import { sameThrottle, type Throttle, throttleText } from '../../core/queue/throttle.js'
import type { Registry } from '../../core/registry.js'
import type { AnyTask } from '../../core/task/any-task.js'
import type { AnyOrderedTask } from '../../core/task/ordered-task.js'
import { formatDuration } from '../../core/values/duration.js'
import { parsed } from '../../core/values/option-check.js'

/** The options by the name of their queue. */
type GivenQueues = ReadonlyMap<string, CheckedQueueOptions>

/** The queues in the order of the options, then in that of their tasks. */
export function declaredQueues(given: GivenQueues, tasks: readonly AnyTask[]): Queue[] {
  const owners = ownersAmong(tasks)
  const defaults = parsed(queueOptionsSchema, {}, 'a queue')
  const names = new Set([...given.keys(), ...tasks.map(({ queue }) => queue)])
  const isolated = new Set(
    tasks.filter((task) => task.kind === 'plain' && task.isolation !== undefined).map(({ queue }) => queue),
  )
  return [...names].map((name) =>
    queueOf(name, given.get(name) ?? defaults, { ordered: owners.has(name), isolated: isolated.has(name) }),
  )
}

/** The contradictions between queues and their tasks, and between the options of ordered and plain queues. */
export function queueClashes(given: GivenQueues, tasks: readonly AnyTask[]): ConfigIssue[] {
  const owners = ownersAmong(tasks)
  return [
    ...[...given].flatMap(([name, options]) => optionClashes(name, options, owners.get(name))),
    ...tasks.flatMap((task) => ownerClashes(task, owners.get(task.queue), given.get(task.queue)?.ordered)),
    ...limitClashes(declaredQueues(given, tasks)),
  ]
}

/** The first ordered task on each queue. */
function ownersAmong(tasks: readonly AnyTask[]): Map<string, AnyOrderedTask> {
  const owners = new Map<string, AnyOrderedTask>()
  for (const task of tasks) if (task.kind === 'ordered' && !owners.has(task.queue)) owners.set(task.queue, task)
  return owners
}

function optionClashes(name: string, options: CheckedQueueOptions, owner: AnyOrderedTask | undefined): ConfigIssue[] {
  const { ordered = owner !== undefined, order, fifo, exclusive, shardOrder, retention } = options
  const issue = (option: string, message: string) => ({ path: `queues.${name}.${option}`, message })
  if (!ordered && owner !== undefined) {
    const message = `must not be false: the ordered task '${owner.name}' uses this queue; leave it out, or give the task another queue`
    return [issue('ordered', message)]
  }
  if (!ordered) {
    const message = 'is for ordered queues only; set `ordered: true`, or leave it out'
    return Object.entries({ exclusive, shardOrder }).flatMap(([option, value]) =>
      value === undefined ? [] : [issue(option, message)],
    )
  }
  const { results = 'none' } = retention
  return [
    ...(fifo ? [issue('fifo', 'must be left out: an ordered queue keeps the order of each id')] : []),
    ...(order === 'fifo' ? [] : [issue('order', "must be 'fifo' or left out: an ordered queue goes by time")]),
    ...(results === 'none'
      ? []
      : [issue('retention.results', 'must be left out: jobs of an ordered queue have no results')]),
  ]
}

function ownerClashes(
  { name, queue, kind }: AnyTask,
  owner: AnyOrderedTask | undefined,
  ordered: boolean | undefined,
): ConfigIssue[] {
  const path = `tasks.${name}.queue`
  if (owner !== undefined && owner.name !== name) {
    const message = `must be another: '${queue}' belongs to the ordered task '${owner.name}', and an ordered queue has one task`
    return [{ path, message }]
  }
  if (kind === 'plain' && ordered === true) {
    const message = `must be another: '${queue}' is ordered, and only a task made by defineOrderedTask() can use it`
    return [{ path, message }]
  }
  return []
}

/** The contradictions between the throttles and bounds of declared queues. */
function limitClashes(queues: readonly Queue[]): ConfigIssue[] {
  return [...queues.flatMap(spreadGroups), ...unlikeScopes(queues)]
}

/** The running jobs of a group are counted in one place, so their queue must have one shard. */
function spreadGroups({ name, maxRunning, shards, ordered }: Queue): ConfigIssue[] {
  if (typeof maxRunning !== 'object' || shards === 1) return []
  const many = ordered ? `its ${shards} shards (5 if an ordered queue has no \`shards\`)` : `its ${shards} shards`
  const message = `cannot be \`{ perGroup }\` over ${many}: set \`shards: 1\`, or give a number for all groups together`
  return [{ path: `queues.${name}.maxRunning`, message }]
}

/** Compares each queue with the first one of its scope. */
function unlikeScopes(queues: readonly Queue[]): ConfigIssue[] {
  const firsts = new Map<string, { readonly queue: string; readonly throttle: Throttle }>()
  return queues.flatMap(({ name, throttle }) => {
    if (throttle === undefined) return []
    const first = firsts.get(throttle.scope)
    if (first === undefined) firsts.set(throttle.scope, { queue: name, throttle })
    if (first === undefined || sameThrottle(first.throttle, throttle)) return []
    const message = `must be the same as that of queue '${first.queue}', as the two share the scope '${throttle.scope}': ${throttleText(first.queue, first.throttle)}; got ${throttleText(name, throttle)}`
    return [{ path: `queues.${name}.throttle`, message }]
  })
}

/** The contradictions between tasks and the leases of their queues. */
export function taskClashes(registry: Registry): ConfigIssue[] {
  return [...registry.tasks.values()].flatMap((task) => {
    const { name, queue, timeLimitMs } = task
    const path = `tasks.${name}.timeLimit`
    const isIsolated = task.kind === 'plain' && task.isolation !== undefined
    if (timeLimitMs > longestTimerMs && !isIsolated)
      return [{ path, message: 'must be at most 24 days for a task that runs inside its worker' }]
    const { renewLease, leaseMs } = registry.queue(queue)
    if (!renewLease && isIsolated)
      return [
        {
          path: `tasks.${name}.isolate`,
          message: `needs a queue whose leases are renewed; '${queue}' has renewLease: false`,
        },
      ]
    if (!renewLease && timeLimitMs >= leaseMs)
      return [
        {
          path,
          message: `must be less than the lease of queue '${queue}' (${formatDuration(leaseMs)}), which is not renewed: its jobs would never be run`,
        },
      ]
    return []
  })
}
