/**
 * The output of this process: how the process ends when all of it has been read, and what it does when nobody reads it
 * or nothing can be written. Every end of a command passes here, so none cuts its output off.
 */

import { Socket } from 'node:net'
import { endsWithin } from '../../runtime/with-timeout.js'
import { printable } from '../printable.js'
import { exitCodes } from './exit-code.js'

/** How long a process that outlives its readers waits for them when it ends. */
const readingMs = 1_000

let isOptional = false

/** Goes on from now on if nobody reads the output, or nothing can be written, and leaves it out. For workers. */
export function outliveReaders(): void {
  isOptional = true
}

/** Listens for output that cannot be written. Call it once for each process, before anything is printed. */
export function watchOutput(): void {
  // If nobody reads the errors, that is no reason to fail.
  process.stderr.on('error', () => {})
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (isOptional) return
    // The reader has seen enough, as `head` has: there is nobody left to work for.
    if (code === 'EPIPE') process.exit(exitCodes.ok)
    process.stderr.write(`millrace: the output could not be written: ${printable(message)}\n`)
    endProcess(exitCodes.failed).catch(() => process.exit(exitCodes.failed))
  })
}

/**
 * Ends the process once its output has been read, however slow its reader is, or can be read by nobody. Handles that
 * the user's modules left open do not hold it up.
 */
export async function endProcess(code: number): Promise<never> {
  const written = Promise.all([process.stdout, process.stderr].map(isWritten))
  await (isOptional ? endsWithin(readingMs, written) : written)
  process.exit(code)
}

/** A write is answered after all writes before it, if only by an error. What goes to a file is written at once. */
async function isWritten(stream: NodeJS.WritableStream): Promise<void> {
  if (stream instanceof Socket) await new Promise<void>((resolve) => stream.write('', () => resolve()))
}
