/** The options of a worker: those of users, those that the command line adds, and their check. */

import * as v from 'valibot'
import type { Registry } from '../../core/registry.js'
import type { Duration } from '../../core/values/duration.js'
import { byteSize, callable, duration, exactly, parsed, whole } from '../../core/values/option-check.js'
import { type SelectorName, selectorNamed } from '../../selectors/named-selectors.js'
import type { Selector } from '../../selectors/selector.js'
import type { WorkerSettings } from '../../workers/assemble-worker.js'
import type { ShardChoice, ShardsOf } from '../../workers/claims/shard-owners.js'
import { affinityOf } from '../../workers/isolated/child-environment.js'
import type { CommandLine } from '../../workers/isolated/command-task.js'

export interface WorkerOptions<QueueName extends string = string> {
  /** The queues to serve. Default: all. */
  readonly queues?: readonly QueueName[] | undefined
  /** The most jobs at once. Default 10. */
  readonly concurrency?: number | undefined
  /** The rule that picks the queue the next claim asks first. Default `'reduced-lottery'`. */
  readonly selector?: SelectorName | Selector | undefined
  /** How long a stop waits for running handlers. Default `'30s'`; `'none'` waits until they end. */
  readonly grace?: Duration | 'none' | undefined
  /** A handler that blocks the event loop for longer loses its lease, and its process is replaced. Default `'30s'`. */
  readonly maxBlock?: Duration | undefined
  /**
   * The worker stops, to be replaced, when its process exceeds this size: `'512MB'`, or a number of bytes. Default: no
   * limit.
   */
  readonly maxRss?: number | string | undefined
  /** The worker stops, to be replaced, after it has taken this many jobs. Default: no limit. */
  readonly maxJobs?: number | undefined
  /**
   * The shards of ordered queues that the worker asks first; it asks others when these are empty. `{ member, members
   * }`, numbered from 0, deals all shards of all ordered queues in turn, in the order of declaration. A function picks
   * from all shards. Default: the live workers share the shards.
   */
  readonly shardsOf?: ShardsOf | undefined
  /**
   * What this worker has and others on its machine lack, such as a device: `'gpu-0'`. It adopts processes of isolated
   * jobs that a worker of the same affinity has started; others only if no other worker has adopted them within a
   * minute. Default: the devices of its environment (`CUDA_VISIBLE_DEVICES` and other `…_VISIBLE_DEVICES`).
   */
  readonly affinity?: string | undefined
}

/**
 * The worker options that a configuration may set for its mill. `grace` and `maxBlock` are excluded, because the
 * supervisor of `millrace work` needs them and loads no configuration.
 */
export type WorkerDefaults<QueueName extends string = string> = Omit<WorkerOptions<QueueName>, 'grace' | 'maxBlock'>

/** The settings for a worker that the command line starts. */
export interface Launch {
  /** A supervisor replaces its process on request. */
  readonly isSupervised: boolean
  /** The file descriptor to which a blocked event loop is reported while it is blocked. */
  readonly blockedTo: number
  /** The files that the mill was loaded from; the processes of isolated jobs load them too. */
  readonly files: readonly string[]
  /** The command that runs for every job, instead of tasks. */
  readonly command?: CommandLine
}

const dealing = v.pipe(
  exactly({ member: whole(0), members: whole(1) }),
  v.check(
    ({ member, members }) => member < members,
    'must have a `member` less than `members`: they are numbered from 0',
  ),
)

const queues = v.pipe(v.array(v.string()), v.minLength(1, 'must name at least one queue'))
const selector = v.union([v.string(), callable<Selector>()], 'must be the name of a selector or a function')
const maxRss = v.pipe(byteSize(), v.minValue(1, 'must be at least 1 byte'))
// Not a union: each mistake in a dealing would be reported as one in a function.
const shardsOf = v.lazy((given) => (typeof given === 'function' ? callable<ShardChoice>() : dealing))
const affinity = v.pipe(v.string(), v.maxLength(256, 'must be at most 256 characters'))

/** @internal */
export const workerDefaults = exactly({
  queues: v.optional(queues),
  concurrency: v.optional(whole(1, 100_000)),
  selector: v.optional(selector),
  maxRss: v.optional(maxRss),
  maxJobs: v.optional(whole(1)),
  shardsOf: v.optional(shardsOf),
  affinity: v.optional(affinity),
})

const workerOptions = exactly({
  queues: v.optional(queues),
  concurrency: v.optional(whole(1, 100_000), 10),
  selector: v.optional(selector, 'reduced-lottery'),
  grace: v.optional(v.union([v.literal('none'), duration(0)], "must be a duration such as '30s', or 'none'"), '30s'),
  maxBlock: v.optional(duration(1_000), '30s'),
  maxRss: v.optional(maxRss),
  maxJobs: v.optional(whole(1)),
  shardsOf: v.optional(shardsOf),
  affinity: v.optional(affinity),
})

/**
 * The settings of a worker. Throws `ConfigError`, or `UnknownQueueError` for a queue that is not declared.
 *
 * @internal
 */
export function workerSettings(options: WorkerOptions, registry: Registry, isSupervised: boolean): WorkerSettings {
  const given = parsed(workerOptions, options, 'the worker')
  const {
    queues = [...registry.queues.keys()],
    concurrency,
    selector,
    grace,
    maxBlock,
    maxRss,
    maxJobs,
    shardsOf,
    affinity = affinityOf(process.env),
  } = given
  return {
    queues: queues.map((name) => registry.queue(name)),
    concurrency,
    selector: typeof selector === 'function' ? selector : selectorNamed(selector as SelectorName),
    selectorName: typeof selector === 'function' ? 'custom' : selector,
    ...{ shardsOf, affinity },
    graceMs: grace === 'none' ? Number.POSITIVE_INFINITY : grace,
    maxBlockMs: maxBlock,
    maxJobs,
    maxRssBytes: maxRss,
    isSupervised,
  }
}

/**
 * The options, with the configuration's defaults for absent ones. A value that is not an object is left to the check.
 */
export function withDefaults(options: WorkerOptions, defaults: WorkerDefaults): WorkerOptions {
  if (typeof options !== 'object' || options === null) return options
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  return { ...defaults, ...Object.fromEntries(given) }
}
