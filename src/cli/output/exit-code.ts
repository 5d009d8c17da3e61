/** Exit codes: what the process says to its caller when it ends, and which errors lead to which. */

import { constants } from 'node:os'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CommanderError } from 'commander'
import { isMillraceError } from '../../core/errors.js'
import { printable, printableLines } from './printable.js'

export const exitCodes = { ok: 0, failed: 1, usage: 2, jobEnded: 3 } as const

export const exitCodeHelp = `Exit codes:
  0    done
  1    the operation failed: the store is unavailable, the job was not found …
  2    wrong usage or configuration; nothing was done
  3    the job that was followed died or was cancelled
  130  ended by SIGINT while it followed a job, or at once by a second SIGINT (143: SIGTERM, 129: SIGHUP)`

/** The command line asks for something that makes no sense. */
export class UsageError extends Error {}

/** What was asked could not be done. */
export class OperationError extends Error {}

/** Codes of errors that another command line or configuration would not have met. */
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

/** Codes of errors that tell how a job ended. */
const endCodes = new Set(['job-dead', 'job-cancelled'])

export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
  if (error instanceof UsageError) return exitCodes.usage
  const code = (error as { code?: string } | null)?.code ?? ''
  if (endCodes.has(code)) return exitCodes.jobEnded
  return usageCodes.has(code) ? exitCodes.usage : exitCodes.failed
}

/** What is said on stderr, or nothing where commander has said it already. */
export function errorLine(error: unknown): string | undefined {
  if (error instanceof CommanderError) return undefined
  if (!(error instanceof Error)) return `millrace: ${printable(String(error))}`
  const expected =
    isMillraceError(error) || error instanceof UsageError || error instanceof OperationError || 'code' in error
  // An error that nobody foresaw is ours: its stack says where.
  return `millrace: ${printableLines(expected ? error.message : (error.stack ?? error.message))}`
}

/** The file with the page that explains the error, from the folder of the command; undefined for errors of others. */
export function pageOf(error: unknown): string | undefined {
  if (!isMillraceError(error)) return undefined
  const docs = new URL(`../../../docs/troubleshooting/${error.code}.md`, import.meta.url)
  return relative(process.cwd(), fileURLToPath(docs))
}

export const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
export type StopSignal = (typeof stopSignals)[number]

/** 128 + the number of the signal, as shells have it. */
export function signalExitCode(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal]
}
