/**
 * A line stream: lines of standard input that are enqueued batch by batch, with one batch in hand, until one is refused
 * or a signal comes.
 */

import type { EnqueueResult } from '../../client/enqueue/client.js'
import { hasCode } from '../../core/errors.js'
import type { JobHandle } from '../../core/job/job.js'
import { messageOf } from '../../core/messages/describe.js'
import type { AnyTask } from '../../core/task/any-task.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import type { Mill } from '../../mill/mill.js'
import { exitCodeOf, exitCodes } from '../process/exit-code.js'
import { type NumberedLine, numberedLines } from './input-text.js'
import type { LineJob } from './job-line.js'

interface StreamCounts {
  readonly added: number
  readonly merged: number
  readonly replaced: number
  readonly duplicate: number
  /** Wrong lines that were left out. */
  readonly skipped: number
  /** Jobs of an envelope that were not waiting. */
  readonly left: number
}

export interface LineMistake {
  readonly line: number
  readonly message: string
}

/** The end of a stream. */
export interface StreamEnd extends StreamCounts {
  /** Every line before this one is enqueued, or was left out. */
  readonly nextLine: number
  /** Wrong lines of the last batch, of which nothing was sent. */
  readonly mistakes: readonly LineMistake[]
  /** The reason why the store did not take the next line. */
  readonly refusal: unknown
  /** Lines behind the next one that are enqueued: a store may take a part of a call. */
  readonly beyond: readonly number[]
}

interface StreamOptions {
  readonly mill: Mill
  readonly taskOf: (job: LineJob) => AnyTask
  /** Throws an error whose message describes the mistake in the line. */
  readonly jobsOf: (line: NumberedLine) => readonly LineJob[]
  readonly fromLine: number
  readonly skipInvalid: boolean
  /** Nothing is sent behind a refused line: whoever goes on there would add it twice. */
  readonly inOrder: boolean
  readonly isStopped: () => boolean
  readonly onSkipped: (mistakes: readonly LineMistake[]) => void
  readonly onProgress: (lines: number) => void
}

export class LineStream {
  readonly #options: StreamOptions
  readonly #counts = { added: 0, merged: 0, replaced: 0, duplicate: 0, skipped: 0, left: 0 }
  #nextLine: number

  constructor(options: StreamOptions) {
    this.#options = options
    this.#nextLine = options.fromLine
  }

  /** Resolves with the outcome of the lines. Rejects if the input is not text. */
  async run(bytes: AsyncIterable<Uint8Array>): Promise<StreamEnd> {
    const { fromLine, isStopped, onProgress } = this.#options
    for await (const all of numberedLines(bytes)) {
      if (isStopped()) break
      const lines = all.filter(({ number }) => number >= fromLine)
      if (lines.length === 0) continue
      const end = await this.#batch(lines)
      if (end !== undefined) return end
      this.#nextLine = lines.at(-1)!.number + 1
      onProgress(this.#nextLine - 1)
    }
    return this.#end()
  }

  /** Undefined: all lines are enqueued or left out. */
  async #batch(lines: readonly NumberedLine[]): Promise<StreamEnd | undefined> {
    const mistakes: LineMistake[] = []
    const jobs: LineJob[] = []
    for (const line of lines) {
      try {
        const found = this.#options.jobsOf(line)
        if (found.length === 0) this.#counts.left += 1
        jobs.push(...found)
      } catch (error) {
        mistakes.push({ line: line.number, message: messageOf(error) })
      }
    }
    if (mistakes.length > 0 && !this.#options.skipInvalid) return this.#end({ mistakes })
    this.#skip(mistakes)
    const parts = this.#options.inOrder ? await this.#callsOf(jobs) : [jobs]
    for (const part of parts) {
      if (part.length > 0) this.#nextLine = part[0]!.line
      const end = await this.#send(part)
      if (end !== undefined) return end
    }
    return undefined
  }

  /** The jobs in parts, each for one call of the store: of one queue, as many as it takes, and whole lines. */
  async #callsOf(jobs: readonly LineJob[]): Promise<LineJob[][]> {
    const { mill, taskOf } = this.#options
    const { maxBatch } = (await mill.adminParts.connect()).traits
    const parts: LineJob[][] = []
    let before: string | undefined
    for (const line of linesOf(jobs)) {
      const queue = queueOf(line[0]!, taskOf)
      const part = parts.at(-1)
      if (part !== undefined && queue === before && part.length + line.length <= maxBatch) part.push(...line)
      else parts.push(line)
      before = queue
    }
    return parts
  }

  /** Sends the jobs if all are valid; otherwise none. */
  async #send(jobs: readonly LineJob[]): Promise<StreamEnd | undefined> {
    if (jobs.length === 0) return undefined
    const { mill, taskOf, skipInvalid } = this.#options
    const results = await resultsOf(mill, taskOf, jobs)
    const invalid = results.flatMap((result, i) =>
      'error' in result && exitCodeOf(result.error) === exitCodes.usage
        ? [{ line: jobs[i]!.line, message: messageOf(result.error) }]
        : [],
    )
    if (invalid.length > 0) {
      if (!skipInvalid) return this.#end({ mistakes: invalid })
      const wrong = new Set(invalid.map(({ line }) => line))
      this.#skip(invalid.filter(({ line }, i) => invalid.findIndex((one) => one.line === line) === i))
      return this.#send(jobs.filter(({ line }) => !wrong.has(line)))
    }
    for (const result of results) if ('job' in result) this.#counts[result.job.outcome!] += 1
    const refused = results.findIndex((result) => 'error' in result)
    if (refused === -1) return undefined
    this.#nextLine = jobs[refused]!.line
    const taken = jobs.slice(refused + 1).filter((_, i) => 'job' in results[refused + 1 + i]!)
    return this.#end({
      refusal: (results[refused] as { error: unknown }).error,
      beyond: [...new Set(taken.map(({ line }) => line))],
    })
  }

  #skip(mistakes: readonly LineMistake[]): void {
    if (mistakes.length === 0) return
    this.#counts.skipped += mistakes.length
    this.#options.onSkipped(mistakes)
  }

  #end({ mistakes = [], refusal, beyond = [] }: Partial<StreamEnd> = {}): StreamEnd {
    return { ...this.#counts, nextLine: this.#nextLine, mistakes, refusal, beyond }
  }
}

/** The jobs line by line. */
function linesOf(jobs: readonly LineJob[]): LineJob[][] {
  const lines = new Map<number, LineJob[]>()
  for (const job of jobs) lines.set(job.line, [...(lines.get(job.line) ?? []), job])
  return [...lines.values()]
}

/** Undefined: the job names no task, and is refused when it is sent. */
function queueOf(job: LineJob, taskOf: StreamOptions['taskOf']): string | undefined {
  try {
    return job.options.queue ?? taskOf(job).queue
  } catch {
    return undefined
  }
}

/** The outcome of each job. Nothing is sent if one of them names no task. */
async function resultsOf(
  mill: Mill,
  taskOf: StreamOptions['taskOf'],
  jobs: readonly LineJob[],
): Promise<readonly EnqueueResult[]> {
  const tasks = await Promise.allSettled(jobs.map(async (job) => taskOf(job)))
  if (tasks.some(({ status }) => status === 'rejected'))
    return tasks.map((task) => ({ error: task.status === 'rejected' ? task.reason : new Error('not sent') }))
  try {
    const items = jobs.map((job, i) => itemOf((tasks[i] as PromiseFulfilledResult<AnyTask>).value, job))
    const handles: readonly JobHandle[] = await mill.runParts.children.enqueueItems(items)
    return handles.map((job) => ({ job }))
  } catch (error) {
    if (hasCode(error, 'enqueue-many-refused')) return error.results as readonly EnqueueResult[]
    return jobs.map(() => ({ error: error as Error }))
  }
}

/** The ids of an ordered task have a meaning of their own. Its payloads are known by their lines. */
function itemOf(task: AnyTask, { input, options, lineId }: LineJob): EnqueueItem {
  if (task.kind === 'plain')
    return { task, input, options: lineId === undefined ? options : { id: lineId, ...options } }
  const { queue, ...rest } = options
  const given = { task, input, options: queue === undefined || queue === task.queue ? rest : options }
  return lineId === undefined ? given : { ...given, child: lineId }
}
