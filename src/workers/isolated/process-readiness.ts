/**
 * The readiness of a worker for isolated jobs: a fault that would affect all its processes is reported when the worker
 * starts.
 */

import { readFileSync } from 'node:fs'
import type { Events } from '../../core/events.js'
import { residentBytesIn } from '../../core/platform/proc-text.js'
import type { Registry } from '../../core/registry.js'
import { openCapture } from './capture.js'

/** Rejects with `ConfigError` if no process could be started: each job would be put back again and again. */
export async function readyForProcesses(worker: string, registry: Registry, events: Events): Promise<void> {
  const { printing, reading } = await openCapture()
  for (const socket of [printing, reading]) socket.destroy()
  const tasks = ownUnwatchedHeaps(registry)
  if (tasks.length > 0) events.emit('heap.unwatched', { worker, tasks })
}

/**
 * The tasks whose `maxHeap` bounds only the heap, on a system whose `/proc/self/status` (given as `status`) does not
 * show the size of a process. Pure.
 */
export function unwatchedHeaps(registry: Registry, status: string): string[] {
  if (residentBytesIn(status) !== undefined) return []
  return [...registry.tasks.values()]
    .filter((task) => task.kind === 'plain' && task.isolation?.maxHeapBytes !== undefined)
    .map(({ name }) => name)
}

function ownUnwatchedHeaps(registry: Registry): string[] {
  try {
    return unwatchedHeaps(registry, readFileSync('/proc/self/status', 'utf8'))
  } catch {
    // The file does not exist, as on macOS.
    return unwatchedHeaps(registry, '')
  }
}
