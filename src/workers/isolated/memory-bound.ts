/**
 * The memory bound of an isolated process: how large it may be, whether it ended for want of memory, and which tasks
 * have a bound that cannot be watched here.
 */

import { readFileSync } from 'node:fs'
import { residentBytesIn } from '../../core/platform/proc-text.js'
import type { Registry } from '../../core/registry.js'

/** A process may take this much in addition to twice its heap: for code, threads and the heap of its guard. */
const baseBytes = 192 * 1_048_576

/** The most memory of a process whose heap may take `maxHeapBytes`. */
export function mostBytes(maxHeapBytes: number): number {
  return maxHeapBytes * 2 + baseBytes
}

/** Judges by `/proc/<pid>/status`; without a size there the process is not too large. */
export function isTooLarge(status: string, most: number): boolean {
  const bytes = residentBytesIn(status)
  return bytes !== undefined && bytes > most
}

interface WatchedEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** The last of its output. */
  readonly tail: string
  /** The worker has sent SIGKILL because it was too large. */
  readonly wasTooLarge: boolean
}

/**
 * V8 aborts by SIGABRT or by a trap, depending on its version; a shell in between reports the signal as 128 and its
 * number.
 */
const abortSignals: readonly (NodeJS.Signals | null)[] = ['SIGABRT', 'SIGTRAP']
const abortCodes: readonly (number | null)[] = [134, 133]

/**
 * True if the worker killed it for its size, or if V8 aborted and printed so. The words alone prove nothing, nor does a
 * signal.
 */
export function ranOutOfMemory({ code, signal, tail, wasTooLarge }: WatchedEnd): boolean {
  if (wasTooLarge && signal === 'SIGKILL') return true
  const hasAborted = abortSignals.includes(signal) || abortCodes.includes(code)
  return hasAborted && /(heap|process) out of memory/.test(tail)
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

/** The same on this system. */
export function ownUnwatchedHeaps(registry: Registry): string[] {
  try {
    return unwatchedHeaps(registry, readFileSync('/proc/self/status', 'utf8'))
  } catch {
    // The file does not exist, as on macOS.
    return unwatchedHeaps(registry, '')
  }
}
