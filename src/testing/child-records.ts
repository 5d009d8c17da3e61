/**
 * The records of children: the jobs that a handler enqueues in a test context. They are checked and recorded, but not
 * sent.
 */

import { InvalidArgumentError } from '../core/errors.js'
import { checkFields } from '../core/job-fields.js'
import type { JobHandle } from '../core/job-handle.js'
import type { BatchChildOptions } from '../core/task/child-options.js'
import type { EnqueueItem } from '../core/task/middleware.js'
import { validated } from '../core/task/schema.js'
import { jsonCodec, type Payload } from '../core/values/codec.js'
import type { ChildClient } from '../runtime/run/child-calls.js'

/** A job that a handler has enqueued, with the options that it gave. */
export interface ChildRecord extends Pick<EnqueueItem, 'task' | 'input'> {
  readonly options: EnqueueItem['options'] & BatchChildOptions
}

export class ChildRecords implements ChildClient {
  readonly items: ChildRecord[] = []

  encode(value: unknown): Payload {
    return jsonCodec.encode(value)
  }

  async enqueueItem(item: EnqueueItem): Promise<JobHandle> {
    const { task, input, options, child, asked = options } = item
    if (task.input !== undefined) await validated(task.input, input, `the input of a job of task '${task.name}'`)
    this.items.push({ task, input, options: asked })
    return unsentJob(options.queue ?? task.queue, String(options.id ?? child ?? `child-${this.items.length}`))
  }

  async enqueueItems(items: EnqueueItem[]): Promise<JobHandle[]> {
    return Promise.all(items.map((item) => this.enqueueItem(item)))
  }
}

/** The handle to a job that never runs. */
function unsentJob(queue: string, id: string): JobHandle {
  return {
    ...{ id, queue, outcome: 'added' },
    record: async () => undefined,
    status: async () => 'ready',
    cancel: async () => true,
    fields: {
      async set(changes) {
        checkFields(changes)
        return true
      },
    },
    result() {
      const message = `job '${id}' was enqueued in a test context, which runs no jobs: it has no result. Use testMill() for handlers that wait for other jobs.`
      return Promise.reject(new InvalidArgumentError(message))
    },
  }
}
