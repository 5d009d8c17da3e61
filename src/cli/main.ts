#!/usr/bin/env node
/** The entry of the `millrace` command: reads the command line, runs it, and ends with its exit code. */

import '../core/platform/node-version.js'
import { addWorkProcess } from './commands/work-command.js'
import { errorLine, exitCodeOf } from './output/exit-code.js'
import { createProgram } from './program.js'

// Nobody reads the errors any more: that is no reason to fail.
process.stderr.on('error', () => {})
try {
  await addWorkProcess(createProgram()).parseAsync()
} catch (error) {
  const line = errorLine(error)
  if (line !== undefined) process.stderr.write(`${line}\n`)
  process.exitCode = exitCodeOf(error)
}
// What the user's modules left open must not hold a finished command.
process.exit()
