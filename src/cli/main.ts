#!/usr/bin/env node
/** The entry of the `millrace` command: runs its command line and ends with its exit code. */

import '../core/platform/node-version.js'
import { endProcess, watchOutput } from './process/process-output.js'
import { runCommand } from './program.js'

watchOutput()
await endProcess(await runCommand(process.argv.slice(2)))
