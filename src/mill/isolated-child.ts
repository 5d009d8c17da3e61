/** The child of an isolated job, made from the mill that its process has loaded. */

import { ConfigError } from '../core/errors.js'
import type { Surroundings } from '../core/surroundings.js'
import { endedRunOf, settlementRules } from '../runtime/run/settlement.js'
import { endsWithin } from '../runtime/with-timeout.js'
import { ChildRun, type ChildRunParts } from '../workers/isolated/child-run.js'
import { type IsolatedFrom, withCommand } from './isolated-from.js'
import type { CheckedOptions } from './options/mill-options.js'
import { secretsOf } from './store-source.js'
import type { WorkerLife } from './worker-life.js'

export interface IsolatedParts
  extends Pick<ChildRunParts, 'assignment' | 'store' | 'guard' | 'settling' | 'tell' | 'finished'> {
  /** Whether the process need not begin any more. */
  readonly isOver: () => boolean
}

/** The time limit of closing the context and of `onWorkerStop`. */
const hookMs = 5_000

/** Calls `onWorkerStart` and opens the context, and rejects if that fails. */
export async function isolatedChild(
  options: CheckedOptions,
  life: WorkerLife,
  surroundings: Surroundings & Pick<ChildRunParts, 'children'>,
  parts: IsolatedParts,
  from: IsolatedFrom,
): Promise<ChildRun> {
  const { registry, namespace, packing, middleware, history } = options
  if (packing.demand !== from.packing) {
    const message = `must do as the worker does, '${from.packing}'; got '${packing.demand}'. Export the mill itself from the module`
    throw new ConfigError('the process of an isolated job', [{ path: 'codec, seal', message }])
  }
  // A command needs nothing of the kind.
  await life.begin(from.command === undefined ? parts.isOver : undefined)
  return new ChildRun({
    ...{
      ...parts,
      ...surroundings,
      registry: withCommand({ registry, namespace }, from.command, [
        ...secretsOf(from.descriptor),
        ...packing.secrets(),
      ]),
      ...{ middleware, history },
    },
    rules: settlementRules(surroundings, options, parts.store.traits, {
      // Its worker and its guard have already reported where it runs.
      endedRun: ({ begunAt }) => endedRunOf(begunAt, surroundings.clock.mono()),
    }),
    finished: async () => {
      await endsWithin(hookMs, life.end(undefined))
      return parts.finished()
    },
  })
}
