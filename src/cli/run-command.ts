/** Running a command: one command line, from its words to its exit code. */

import { errorLine, exitCodeOf, exitCodes, pageOf } from './output/exit-code.js'
import { programFor } from './program.js'

/**
 * Runs the command that these words name and resolves with its exit code. Prints the reason of a failure on stderr;
 * throws nothing.
 */
export async function runCommand(words: readonly string[]): Promise<number> {
  try {
    const program = await programFor(words)
    await program.parseAsync(words, { from: 'user' })
    return Number(process.exitCode ?? exitCodes.ok)
  } catch (error) {
    const line = errorLine(error)
    if (line !== undefined) process.stderr.write(`${line}\n`)
    const page = process.stderr.isTTY ? pageOf(error) : undefined
    if (page !== undefined) process.stderr.write(`See ${page}\n`)
    return exitCodeOf(error)
  }
}
