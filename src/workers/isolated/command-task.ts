/** The task of `millrace exec`: runs a command for each job, no matter which task the job names. */

import { ProcessDiedError } from '../../core/errors.js'
import { lastText, mostLogBytes } from '../../core/job/job-log.js'
import type { JobContext } from '../../core/task/contexts.js'
import { type AnySingleTask, defineTask } from '../../core/task/task.js'
import type { RetryOptions } from '../../core/task/task-definition.js'
import { tokenOf } from '../claim-token.js'
import { withoutSecrets } from './child-environment.js'

/** The command to run; it can be copied to another process. */
export interface CommandLine {
  readonly file: string
  readonly args: readonly string[]
  readonly timeLimit: number | 'none'
  readonly retries: number
  /** Names of variables that it receives although they hold secrets of the mill. */
  readonly env: readonly string[]
}

/** The most characters of the end of standard error that an error message holds. */
const mostTold = 2_000

/**
 * The input is JSON on the standard input of the command. The last 64 KiB of its standard output are the result; its
 * output is also the log. Exit code 0 is success. Id, attempt, fence and token are in its environment; the `secrets` of
 * the mill are not.
 */
export function commandTask(
  { file, args, timeLimit, retries, env: named }: CommandLine,
  env: readonly string[],
  namespace: string,
  secrets: readonly string[] = [],
): AnySingleTask {
  const retry: RetryOptions = { max: retries }
  return defineTask({
    name: 'exec',
    ...{ isolate: 'process', timeLimit, env, retry },
    run: (input: unknown, ctx) => {
      const variables = { ...withoutSecrets(process.env, secrets, named), ...jobVariables(ctx, namespace) }
      return runCommand(file, args, input, ctx, variables)
    },
  })
}

async function runCommand(
  file: string,
  args: readonly string[],
  input: unknown,
  ctx: JobContext,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const { spawn } = await import('node:child_process')
  ctx.signal.throwIfAborted()
  const child = spawn(file, args, { env, stdio: 'pipe' })
  // Its group is told to end later, and killed after that: see the guard.
  ctx.signal.addEventListener('abort', () => child.kill('SIGTERM'))
  const [out, err] = [new LastBytes(mostLogBytes), new LastBytes(mostTold)]
  child.stdout.on('data', (bytes: Buffer) => {
    out.push(bytes)
    process.stdout.write(bytes)
  })
  child.stderr.on('data', (bytes: Buffer) => {
    err.push(bytes)
    process.stderr.write(bytes)
  })
  // A command need not read its input.
  child.stdin.on('error', () => {})
  child.stdin.end(`${JSON.stringify(input ?? null)}\n`)
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve([code, signal]))
  })
  if (code === 0) return out.text
  ctx.signal.throwIfAborted()
  throw new ProcessDiedError(`'${file}'`, { code, signal, tail: err.text.trimEnd() })
}

function jobVariables({ job }: JobContext, namespace: string): Record<string, string> {
  return {
    MILLRACE_JOB_ID: job.id,
    MILLRACE_QUEUE: job.queue,
    MILLRACE_TASK: job.task,
    MILLRACE_ATTEMPT: String(job.attempt),
    MILLRACE_FENCE: String(job.fence),
    MILLRACE_TOKEN: tokenOf(namespace, job),
  }
}

/** The last bytes of a stream, up to a limit. */
class LastBytes {
  readonly #most: number
  #chunks: Buffer[] = []
  #bytes = 0

  constructor(most: number) {
    this.#most = most
  }

  push(bytes: Buffer): void {
    this.#chunks.push(bytes)
    this.#bytes += bytes.length
    while (this.#bytes - this.#chunks[0]!.length >= this.#most) this.#bytes -= this.#chunks.shift()!.length
  }

  get text(): string {
    return lastText(Buffer.concat(this.#chunks), this.#most)
  }
}
