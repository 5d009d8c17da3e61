/** A Blueque task as an envelope: the line from which `enqueue - --envelope` makes a job. Pure. */

import { messageOf } from '../../core/values/describe.js'
import { exactJson } from '../../core/values/exact-json.js'
import { isJobId, jobIdForm } from '../../core/values/ids.js'
import { packedInput } from '../streaming/envelopes.js'
import type { BluequeTask } from './blueque-server.js'

/** The target of one Blueque queue: the queue, the task and the form of the input for its jobs. */
interface BluequeTarget {
  readonly queue: string
  readonly task: string
  /** Whether parameters are always text; otherwise they are JSON. */
  readonly isText: boolean
}

/** The envelope, or the reason why there is none. */
export function bluequeEnvelope(
  { id, record, eta }: BluequeTask,
  { queue, task, isText }: BluequeTarget,
): { readonly envelope: object } | { readonly mistake: string } {
  if (record === undefined) return { mistake: `task '${id}' has no record: its key blueque_task_${id} is not there` }
  if (!isJobId(id)) return { mistake: `task '${id}': its id must be ${jobIdForm}` }
  const { parameters = '' } = record
  try {
    const input = packedInput(isText ? parameters : exactJson(parameters))
    const due =
      eta === undefined ? { state: 'ready' } : { state: 'scheduled', runAt: new Date(eta * 1_000).toISOString() }
    return { envelope: { task, queue, id, ...due, input } }
  } catch (error) {
    // The message does not show the parameters, which may be secret.
    const why =
      error instanceof SyntaxError ? 'its parameters are no JSON; --text takes them as they are' : messageOf(error)
    return { mistake: `task '${id}': ${why}` }
  }
}
