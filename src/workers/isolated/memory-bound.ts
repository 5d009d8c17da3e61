/** The memory bound of an isolated process: how large it may be, and whether it has ended for want of memory. Pure. */

import { residentBytesIn } from '../../core/platform/proc-text.js'

/** Next to twice its heap a process may take so much: for code, threads and the heap of its guard. */
const baseBytes = 192 * 1_048_576

/** What a process whose heap may take `maxHeapBytes` may take in all. */
export function mostBytes(maxHeapBytes: number): number {
  return maxHeapBytes * 2 + baseBytes
}

/** By its `/proc/<pid>/status`; one that does not tell is not too large. */
export function isTooLarge(status: string, most: number): boolean {
  const bytes = residentBytesIn(status)
  return bytes !== undefined && bytes > most
}

interface Death {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** The last that it printed. */
  readonly tail: string
  /** We have sent SIGKILL because it was too large. */
  readonly wasTooLarge: boolean
}

/** V8 aborts, by SIGABRT or by a trap, as its version has it; a shell in between tells the signal as 128 and its number. */
const abortSignals: readonly (NodeJS.Signals | null)[] = ['SIGABRT', 'SIGTRAP']
const abortCodes: readonly (number | null)[] = [134, 133]

/** Either we killed it for its size, or V8 aborted and said so: anybody can print the words, or be killed. */
export function ranOutOfMemory({ code, signal, tail, wasTooLarge }: Death): boolean {
  if (wasTooLarge && signal === 'SIGKILL') return true
  const hasAborted = abortSignals.includes(signal) || abortCodes.includes(code)
  return hasAborted && /(heap|process) out of memory/.test(tail)
}
