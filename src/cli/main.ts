#!/usr/bin/env node
/** The entry of the `millrace` command: runs its command line and ends with its exit code. */

import '../core/platform/node-version.js'
import { runCommand } from './run-command.js'

// If nobody reads the errors, that is no reason to fail.
process.stderr.on('error', () => {})
// Handles that the user's modules left open must not hold up a finished command.
process.exit(await runCommand(process.argv.slice(2)))
