/** Exit codes: the result that the process reports to its caller, and the errors that lead to each. */

import { constants } from 'node:os'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CommanderError } from 'commander'
import { isMillraceError } from '../../core/errors.js'
import { errorPage } from '../../core/package-files.js'
import { printable, printableLines } from '../printable.js'

export const exitCodes = { ok: 0, failed: 1, usage: 2, jobEnded: 3 } as const

export const exitCodeHelp = `Exit codes:
  0    done
  1    the operation failed: the store is unavailable, the job was not found …
  2    wrong usage or configuration; nothing was done
  3    the followed job died or was cancelled
  130  ended by SIGINT while following a job, or at once by a second SIGINT (143: SIGTERM, 129: SIGHUP)`

/** The command line does not make sense. */
export class UsageError extends Error {}

/** The requested action was not possible. */
export class OperationError extends Error {}

/** The codes of errors that another command line or configuration would avoid. */
const usageCodes = new Set([
  'config-invalid',
  'config-conflict',
  'throttle-conflict',
  'job-invalid',
  'payload-too-large',
  'codec-failed',
  'argument-invalid',
  'unsupported-by-store',
  'package-bundled',
  'queue-unknown',
  'task-unknown',
])

/** The codes of errors that report how a job ended. */
const endCodes = new Set(['job-dead', 'job-cancelled'])

export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
  if (error instanceof UsageError) return exitCodes.usage
  const code = (error as { code?: string } | null)?.code ?? ''
  if (endCodes.has(code)) return exitCodes.jobEnded
  return usageCodes.has(code) ? exitCodes.usage : exitCodes.failed
}

/** The line for stderr; undefined if commander has printed one already. */
export function errorLine(error: unknown): string | undefined {
  if (error instanceof CommanderError) return undefined
  if (!(error instanceof Error)) return `millrace: ${printable(String(error))}`
  const expected =
    isMillraceError(error) || error instanceof UsageError || error instanceof OperationError || 'code' in error
  // An unexpected error is a bug of ours: its stack says where.
  return `millrace: ${printableLines(expected ? error.message : (error.stack ?? error.message))}`
}

/** The file with the page that explains the error, from the folder of the command; undefined for errors of others. */
export function pageOf(error: unknown): string | undefined {
  if (!isMillraceError(error)) return undefined
  return relative(process.cwd(), fileURLToPath(errorPage(error.code)))
}

export const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
export type StopSignal = (typeof stopSignals)[number]

/** 128 + the number of the signal, as in shells. */
export function signalExitCode(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal]
}
