/** Enqueued lines: the stream of `enqueue -`, and its reports. */

import { fstatSync } from 'node:fs'
import picocolors from 'picocolors'
import type { AnyTask } from '../../core/task/any-task.js'
import type { Mill } from '../../mill/mill.js'
import { namedTask } from '../../mill/named-task.js'
import { printable } from '../printable.js'
import { exitCodeOf, exitCodes, signalExitCode } from '../process/exit-code.js'
import { type StopCause, stopRequest } from '../process/stop-request.js'
import { count, counted, rate } from '../terminal/figures.js'
import type { Terminal } from '../terminal/terminal.js'
import { envelopeJobs, type LineRules, plainJob } from './job-line.js'
import { type LineMistake, LineStream, type StreamEnd } from './line-stream.js'

interface LineRequest extends Omit<LineRules, 'hash'> {
  readonly fromLine: number
  readonly skipInvalid: boolean
}

const mostShown = 20

/**
 * Enqueues the lines of standard input and sets the exit code. After a first signal the batch in hand is still stored.
 */
export async function enqueueLines(mill: Mill, request: LineRequest, terminal: Terminal): Promise<void> {
  let stopped: StopCause | undefined
  let bytes = 0
  const bar = new ProgressBar(inputSize(), terminal.json)
  const say = (text: string) => {
    bar.clear()
    process.stderr.write(`${text}\n`)
  }
  void stopRequest().then((cause) => {
    stopped = cause
    process.stdin.destroy()
  })
  const tasks = new Map<string, AnyTask>()
  const { task } = request
  const hash = () => mill.adminParts.packing.contentHash()
  const stream = new LineStream({
    mill,
    taskOf: ({ task: name, options: { queue } }) => {
      const key = JSON.stringify([name, queue])
      const task = tasks.get(key) ?? namedTask(mill, name, queue)
      tasks.set(key, task)
      return task
    },
    jobsOf:
      task === undefined
        ? (line) => envelopeJobs(line, { ...request, hash }, Date.now())
        : (line) => [plainJob(line, { ...request, task, hash })],
    fromLine: request.fromLine,
    skipInvalid: request.skipInvalid,
    inOrder: request.newIds,
    isStopped: () => stopped !== undefined,
    onSkipped: (mistakes) => say(mistakeLines(mistakes, 'left out ').join('\n')),
    onProgress: (lines) => bar.show(lines, bytes),
  })
  const end = await stream.run(
    untilStopped(
      () => stopped !== undefined,
      (length) => (bytes += length),
    ),
  )
  bar.clear()
  const { mistakes, refusal, beyond, ...counts } = end
  terminal.print({ ...(task !== undefined && { task }), ...counts }, () => [countsText(end, terminal)])
  for (const line of troubleLines(end, request, stopped)) say(line)
  process.exitCode = exitCode(end, stopped)
}

/** Standard input, until it ends or a signal has ended it. */
async function* untilStopped(isStopped: () => boolean, onBytes: (length: number) => void): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of process.stdin as AsyncIterable<Uint8Array>) {
      onBytes(chunk.length)
      yield chunk
    }
  } catch (error) {
    if (!isStopped()) throw error
  }
}

function countsText({ added, merged, replaced, duplicate, skipped, left }: StreamEnd, { colors }: Terminal): string {
  return [
    `${colors.green('added')} ${counted(added, 'job')}`,
    ...(merged > 0 ? [`merged ${counted(merged, 'payload')}`] : []),
    ...(replaced > 0 ? [`replaced ${counted(replaced, 'job')} that waited`] : []),
    ...(duplicate > 0 ? [`${colors.yellow('duplicate')} ${count(duplicate)}, which changed nothing`] : []),
    ...(skipped > 0 ? [`${colors.red('left out')} ${counted(skipped, 'wrong line')}`] : []),
    ...(left > 0 ? [`left ${counted(left, 'job')} that ran or had ended`] : []),
  ].join('; ')
}

/** The lines that a user needs to go on after a failure. */
function troubleLines(end: StreamEnd, { newIds }: LineRequest, stopped: StopCause | undefined): string[] {
  const { mistakes, refusal, nextLine, beyond } = end
  const isNothing = nextLine === 1 && end.added + end.merged + end.replaced + end.duplicate === 0
  const before = isNothing
    ? 'Nothing was enqueued.'
    : `Every line before line ${count(nextLine)} is enqueued, or was left out.`
  const alsoTaken =
    beyond.length === 0
      ? ''
      : ` Leave out ${rangesOf(beyond)}, which ${beyond.length === 1 ? 'is' : 'are'} enqueued too.`
  const again = newIds
    ? `Go on there with --from-line ${nextLine}: lines before it would be added again.${alsoTaken}`
    : `Send the same lines again: enqueued ones are not added twice. Or continue with --from-line ${nextLine}.`
  const goOn = isNothing ? 'Then send all of it again.' : again
  if (mistakes.length > 0)
    return [
      ...mistakeLines(mistakes, ''),
      `millrace: ${counted(mistakes.length, 'line is wrong', 'lines are wrong')}. ${before} Mend ${mistakes.length === 1 ? 'it' : 'them'}, or leave such lines out with --skip-invalid. ${goOn}`,
    ]
  if (refusal !== undefined)
    return [
      `millrace: line ${count(nextLine)} was not taken: ${printable((refusal as Error).message)} ${before} ${goOn}`,
    ]
  return stopped === undefined ? [] : [`millrace: stopped. ${before} ${goOn}`]
}

/** Line numbers in their order as text: `lines 4–7, 9`. Pure. */
function rangesOf(lines: readonly number[]): string {
  const ranges: [from: number, to: number][] = []
  for (const line of lines) {
    const last = ranges.at(-1)
    if (last?.[1] === line - 1) last[1] = line
    else ranges.push([line, line])
  }
  const texts = ranges.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`))
  return `${lines.length === 1 ? 'line' : 'lines'} ${texts.join(', ')}`
}

function mistakeLines(mistakes: readonly LineMistake[], what: string): string[] {
  const shown = mistakes.slice(0, mostShown)
  const more = mistakes.length - shown.length
  return [
    ...shown.map(({ line, message }) => `millrace: ${what}line ${count(line)}: ${printable(message)}`),
    ...(more > 0 ? [`millrace: and ${count(more)} more`] : []),
  ]
}

function exitCode({ mistakes, refusal, nextLine, skipped }: StreamEnd, stopped: StopCause | undefined): number {
  if (mistakes.length > 0) return nextLine === 1 ? exitCodes.usage : exitCodes.failed
  if (refusal !== undefined) return nextLine === 1 ? exitCodeOf(refusal) : exitCodes.failed
  if (stopped !== undefined) return signalExitCode(stopped === 'disconnect' ? 'SIGTERM' : stopped)
  return skipped > 0 ? exitCodes.failed : exitCodes.ok
}

const drawnEveryMs = 100
const barWidth = 24

/** A progress bar: one line on standard error that is redrawn on a terminal. */
class ProgressBar {
  readonly #begunAt = performance.now()
  readonly #total: number | undefined
  readonly #colors: ReturnType<typeof picocolors.createColors>
  readonly #live: boolean
  #drawnAt = Number.NEGATIVE_INFINITY

  /** `total`: the number of bytes, if it is known. */
  constructor(total: number | undefined, isQuiet: boolean) {
    const { NO_COLOR, TERM } = process.env
    this.#total = total
    this.#live = process.stderr.isTTY === true && !isQuiet && TERM !== 'dumb'
    this.#colors = picocolors.createColors(this.#live && !NO_COLOR)
  }

  show(lines: number, bytes: number): void {
    const now = performance.now()
    if (!this.#live || now - this.#drawnAt < drawnEveryMs) return
    this.#drawnAt = now
    process.stderr.write(
      `\r\u001b[K${progressText({ lines, bytes, total: this.#total, ms: now - this.#begunAt }, this.#colors.green)}`,
    )
  }

  clear(): void {
    if (this.#live) process.stderr.write('\r\u001b[K')
  }
}

/** Pure. `paint`: colours the part that is done. */
export function progressText(
  { lines, bytes, total, ms }: { lines: number; bytes: number; total: number | undefined; ms: number },
  paint: (text: string) => string = (text) => text,
): string {
  const figures = `${count(lines)} lines, ${rate(lines, ms)}/s`
  if (total === undefined || total === 0) return figures
  const done = Math.min(1, bytes / total)
  const full = Math.round(done * barWidth)
  return `${paint('█'.repeat(full))}${'░'.repeat(barWidth - full)} ${Math.floor(done * 100)} %  ${figures}`
}

/** The size of standard input if it is a file. */
function inputSize(): number | undefined {
  try {
    const stat = fstatSync(0)
    return stat.isFile() ? stat.size : undefined
  } catch {
    return undefined
  }
}
