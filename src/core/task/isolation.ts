/** The isolation of a task: whether its jobs run in processes of their own, and the settings of these processes. */

import * as v from 'valibot'
import type { ConfigIssue } from '../errors.js'
import { byteSize } from '../values/option-check.js'

export interface IsolationOptions {
  /**
   * `'process'`: each job runs in a process of its own, which outlives its worker if possible. Default: jobs run in the
   * worker.
   */
  readonly isolate?: 'process' | undefined
  /**
   * The module that exports the task, as `import.meta.url`; the process loads the task from it. Needed unless `millrace
   * work` starts the worker, because that command knows its configuration.
   */
  readonly module?: string | undefined
  /**
   * Names of environment variables that the process gets, besides PATH, HOME, the locale, `NODE_*` and `MILLRACE_*`.
   * Default: none, with a warning at the first run that names what is withheld (event `env.withheld`); `[]` is none
   * without it.
   */
  readonly env?: readonly string[] | undefined
  /**
   * The largest JavaScript heap of the process, such as `'512MB'`. Millrace also kills the process if it takes more
   * than twice as much and 192 MB in all. Default: Node's own limit.
   */
  readonly maxHeap?: number | string | undefined
  /**
   * What happens to the process when its worker dies or stops. `'detach'`: it goes on. `'exit'`: it ends and its job
   * goes back. Default `'detach'` if the time limit is `'none'` or at least 10 minutes, otherwise `'exit'`.
   */
  readonly onSupervisorLoss?: 'detach' | 'exit' | undefined
}

/** The isolation options with every default filled in. */
export interface Isolation {
  readonly module: string | undefined
  /** Undefined: the task does not say which variables it needs, and gets none. */
  readonly env: readonly string[] | undefined
  readonly maxHeapBytes: number | undefined
  readonly onSupervisorLoss: 'detach' | 'exit'
}

/** A job with this time limit or a longer one is worth more than a restart of its worker. */
const longMs = 600_000
/** The smallest heap with which V8 starts. */
const leastHeapBytes = 16 * 1_048_576

/** @internal */
export const isolationOptions = {
  isolate: v.optional(v.literal('process', "must be 'process'")),
  module: v.optional(
    v.pipe(
      v.string(),
      v.check((url) => URL.canParse(url) && new URL(url).protocol === 'file:', 'must be a file URL: `import.meta.url`'),
    ),
  ),
  env: v.optional(
    v.array(v.pipe(v.string(), v.regex(/^[A-Za-z_]\w*$/, 'must be the name of an environment variable'))),
  ),
  maxHeap: v.optional(v.pipe(byteSize(), v.minValue(leastHeapBytes, 'must be at least 16 MB'))),
  onSupervisorLoss: v.optional(v.picklist(['detach', 'exit'], "must be 'detach' or 'exit'")),
}

type GivenIsolation = v.InferOutput<v.ObjectSchema<typeof isolationOptions, undefined>>

/**
 * The isolation of a task; undefined if its jobs run in the worker.
 * @internal
 */
export function isolationOf(options: GivenIsolation, timeLimitMs: number): Isolation | undefined {
  const { isolate, module, env, maxHeap, onSupervisorLoss } = options
  if (isolate === undefined) return undefined
  return {
    module,
    env,
    maxHeapBytes: maxHeap,
    onSupervisorLoss: onSupervisorLoss ?? (timeLimitMs >= longMs ? 'detach' : 'exit'),
  }
}

/**
 * The mistakes in options that only isolated tasks may have.
 * @internal
 */
export function isolationMistakes(options: GivenIsolation, timeLimit: number): ConfigIssue[] {
  if (options.isolate !== undefined) return []
  const idle = (['module', 'env', 'maxHeap', 'onSupervisorLoss'] as const).filter((name) => options[name] !== undefined)
  const issues = idle.map((path) => ({ path, message: "needs isolate: 'process'" }))
  if (timeLimit !== Number.POSITIVE_INFINITY) return issues
  const message = "must be a duration: only a process can be ended that never ends by itself. Add isolate: 'process'"
  return [{ path: 'timeLimit', message: `${message}; got 'none'` }, ...issues]
}
