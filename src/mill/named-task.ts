/** Tasks and signals by their names, as a command line or a request over HTTP gives them. */

import { sentSignal } from '../client/jobs/sent-signal.js'
import { recordsOf } from '../client/store-facets.js'
import { InvalidArgumentError } from '../core/errors.js'
import { describe } from '../core/messages/describe.js'
import { type AnyTask, isNameOf } from '../core/task/any-task.js'
import type { AnySignal } from '../core/task/signal.js'
import type { JobKey } from '../stores/contract/job-records.js'
import type { SignalAnswer } from '../stores/contract/steps.js'
import type { Mill } from './mill.js'

/** The task of this name: see `Registry.named`. */
export function namedTask(mill: Mill, name: string, queue: string | undefined): AnyTask {
  return mill.adminParts.registry.named(name, queue)
}

/** The signals that may be sent by their names to jobs of this task: those of its `signals`. */
export function signalsOf(mill: Mill, task: string): readonly AnySignal[] {
  const declared = [...mill.tasks.values()].find((one) => isNameOf(one, task))
  return declared !== undefined && 'signals' in declared ? declared.signals : []
}

/**
 * Sends a signal of this name to a job. Throws `InvalidArgumentError` if `signals` of its task does not have it, and what
 * `mill.signal()` throws.
 */
export async function sendNamedSignal(mill: Mill, key: JobKey, name: string, data: unknown): Promise<SignalAnswer> {
  const { connect, packing } = mill.adminParts
  const job = await recordsOf(await connect()).get(key.queue, key.id)
  if (job === undefined) return 'gone'
  const signals = signalsOf(mill, job.task)
  const signal = signals.find((one) => one.name === name)
  if (signal !== undefined) {
    const { maxPayloadBytes } = mill.runParts
    return sentSignal({ connect, packing, maxPayloadBytes }, signal, data, async () => job)
  }
  const those = signals.length === 0 ? 'has none' : `has ${signals.map((one) => one.name).join(', ')}`
  throw new InvalidArgumentError(
    `signal ${describe(name)} cannot be sent by its name to a job of task '${job.task}': \`signals\` of the task, as this mill declares it, ${those}.`,
  )
}
