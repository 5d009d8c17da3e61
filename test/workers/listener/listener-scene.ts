/** A queue of long work on a store, for tests of its listeners: who enqueues into it, and what lies in it. */

import { type Duration, defineTask, type JobHandle, type Mill, type QueueListener } from 'millrace'
import { onTestFinished } from 'vitest'

export const video = defineTask({ name: 'encode', queue: 'video' })
export const queues = { video: {} }

/** Listeners do not know the task; who enqueues does. */
export function enqueue(
  mill: Mill,
  input: unknown,
  options: { id?: string; delay?: Duration } = {},
): Promise<JobHandle> {
  return mill.enqueue(video, input, options)
}

/** Closed at once when the test is over. */
export function listenerOn(mill: Mill, options: Parameters<Mill['listener']>[1] = {}): QueueListener {
  const listener = mill.listener('video', options)
  onTestFinished(() => listener.close({ grace: 0 }))
  return listener
}

export function jobOf(mill: Mill, id: string) {
  return mill.queue('video').jobs.get(id)
}
