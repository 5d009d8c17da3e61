/**
 * The command `simulate`: draws the effect of settings before anything runs with them. It reads no configuration and
 * opens no store.
 */

import { type Command, InvalidArgumentError, Option } from 'commander'
import { defined } from '../../core/values/defined.js'
import { exactDuration } from '../../core/values/duration.js'
import { durationFlag, wholeFlag } from '../flags.js'
import { withJson } from '../mill-command.js'
import { UsageError } from '../process/exit-code.js'
import { count, counted } from '../terminal/figures.js'
import { Terminal } from '../terminal/terminal.js'
import { aboutText, type Rate, rateFlag, rulesOf, rulesText } from '../terminal/throttle-text.js'
import { mostOf, type SimulatedLoad, type Simulation, seededRandom, simulated } from './throttle-simulation.js'

/** More would be slow, and invisible in a plot. */
const [mostStarts, mostJobs, mostLooks] = [10_000, 100_000, 1_000_000]

interface SimulateFlags {
  readonly limit: number
  readonly window: number
  readonly moderate?: boolean
  readonly elastic?: number
  readonly arrivals?: Rate
  readonly burst?: number
  readonly pollJitter?: { readonly least: number; readonly most: number }
  readonly for: number
  readonly seed: number
  readonly json?: boolean
}

export function addSimulate(program: Command): void {
  const simulate = program
    .command('simulate')
    .description('Draw when jobs would start under a throttle')
    .helpCommand(false)
  const command = simulate
    .command('throttle')
    .description('Draw when jobs would start under a throttle')
    .requiredOption('--limit <n>', 'the most jobs that start in any window', wholeFlag(1, 1_000_000))
    .requiredOption('--window <duration>', 'the length of the window: 1s, 60s, 1h', durationFlag)
    .option('--moderate', 'space starts evenly')
    .option(
      '--elastic <buffer>',
      'with --moderate: catch up, but leave this many starts unused',
      wholeFlag(0, 1_000_000),
    )
    .option('--burst <n>', 'n jobs wait from the beginning; only --arrivals adds others', wholeFlag(1, mostStarts))
    .option('--arrivals <rate>', 'jobs are enqueued at random moments: 20/min, 3/s', rateFlag)
    .option('--poll-jitter <a..b>', 'a denied worker asks again a to b spacings (window / limit) later', rangeFlag)
    .addOption(new Option('--for <duration>', 'the length of time to draw').default(300_000, '5m').argParser(spanFlag))
    .addOption(new Option('--seed <n>', 'the seed of its random numbers').default(1).argParser(wholeFlag(0, 2 ** 31)))
    .addHelpText(
      'after',
      `
  Without --burst and --arrivals a job always waits. Without --poll-jitter a denied worker asks again when it may start.
  It reads no configuration and opens no store.

Examples:
  $ millrace simulate throttle --limit 10 --window 60s --moderate --elastic 2 --arrivals 12/min
  $ millrace simulate throttle --limit 10 --window 60s --burst 50`,
    )
  withJson(command, 'print {"rules","forMs","seed","started","arrived","worst","starts"}').action(
    (flags: SimulateFlags) => draw(flags, new Terminal({ json: flags.json ?? false })),
  )
}

function draw(flags: SimulateFlags, terminal: Terminal): void {
  const { limit, window, moderate = false, elastic, arrivals, burst, pollJitter, for: forMs, seed } = flags
  const options = { limit, window, moderate, ...(elastic === undefined ? {} : { elastic: { buffer: elastic } }) }
  const scene = {
    rules: rulesOf([options], 'this throttle'),
    forMs,
    arrivals: defined({ burst, rate: arrivals }),
    ...defined({ polls: pollJitter }),
    random: seededRandom(seed),
  }
  refuseTooMany(scene)
  const simulation = simulated(scene)
  const { starts, arrived, worst } = simulation
  const { rules } = scene
  terminal.print(
    { rules, forMs, seed, started: starts.length, ...defined({ arrived: arrived?.length }), worst, starts },
    () => {
      const { columns: width, colors } = terminal
      return [
        colors.bold(rulesText(rules)),
        `${demandText(flags)}, ${exactDuration(forMs)}, seed ${seed}`,
        '',
        ...plotLines(simulation, { forMs, width, dim: colors.dim }),
        '',
        ...summaryLines(simulation, forMs),
      ]
    },
  )
}

function refuseTooMany(scene: SimulatedLoad): void {
  const { starts, jobs, looks } = mostOf(scene)
  const bounds = [
    ['starts', starts, mostStarts],
    ['jobs', jobs, mostJobs],
    ['looks', looks, mostLooks],
  ] as const
  const over = bounds.find(([, might, most]) => might > most)
  if (over === undefined) return
  const [what, might, most] = over
  throw new UsageError(
    `that might be ${count(Math.round(might))} ${what}; at most ${count(most)} are drawn. Give a shorter --for, or fewer.`,
  )
}

function demandText({ burst, arrivals }: SimulateFlags): string {
  const words = [
    ...(burst === undefined ? [] : [`${counted(burst, 'job')} at once`]),
    ...(arrivals === undefined ? [] : [`about ${counted(arrivals.jobs, 'job')} in ${exactDuration(arrivals.ms)}`]),
  ]
  return words.length === 0 ? 'always a job waiting' : words.join(', then ')
}

function summaryLines({ starts, arrived, worst }: Simulation, forMs: number): string[] {
  const waits = arrived === undefined ? [] : starts.map((at, i) => at - arrived[i]!).sort((a, b) => a - b)
  const wait = (part: number) => aboutText(waits[Math.floor((waits.length - 1) * part)]!)
  return [
    `${count(starts.length)}${arrived === undefined ? '' : ` of ${count(arrived.length)}`} started in ${exactDuration(forMs)}.`,
    ...worst.map(
      (window) =>
        `Most in any ${exactDuration(window.windowMs)}, wherever it begins: ${count(window.most)} (limit ${count(window.limit)}).`,
    ),
    ...(waits.length === 0
      ? []
      : [`Waited before the start: half of them up to ${wait(0.5)}, the longest ${wait(1)}.`]),
  ]
}

/** A positive duration, in ms. */
function spanFlag(given: string): number {
  const ms = durationFlag(given)
  if (ms > 0) return ms
  throw new InvalidArgumentError('Expected more than no time, such as 5m.')
}

/** `0..3` */
function rangeFlag(given: string): { readonly least: number; readonly most: number } {
  const [, least, most] = /^(\d{1,4}(?:\.\d+)?)\.\.(\d{1,4}(?:\.\d+)?)$/.exec(given) ?? []
  if (Number(least) <= Number(most) && Number(most) > 0) return { least: Number(least), most: Number(most) }
  throw new InvalidArgumentError(
    'Expected a range such as 0..3, of which the second is above 0 and not less than the first.',
  )
}

const barRows = 6
const sumRows = 8
/** The width without a terminal. */
const usualWidth = 80
const leastWidth = 20

/** Round spans for a column, so that the axis can be read. */
const spans = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 8_000, 10_000, 12_000,
].concat(
  [15, 20, 30, 40, 60, 90, 120, 180, 300, 600, 900, 1_200, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200].map(
    (s) => s * 1_000,
  ),
)

interface PlotOptions {
  readonly forMs: number
  /** Columns of the terminal; Infinity if there is none. */
  readonly width: number
  readonly dim: (text: string) => string
}

/** The plot as lines of a terminal: the starts in each span of time, and their sum. */
export function plotLines({ starts, arrived }: Simulation, { forMs, width, dim }: PlotOptions): string[] {
  const top = Math.max(starts.length, arrived?.length ?? 0, 1)
  const gutter = count(top).length
  const room = Math.max(leastWidth, Math.min(width, usualWidth) - gutter - 3)
  const spanMs = spans.find((span) => forMs / span <= room) ?? Math.ceil(forMs / room)
  const columns = Math.max(1, Math.ceil(forMs / spanMs))
  const scale = { spanMs, columns }
  const at = counts(starts, scale)
  const perMark = Math.ceil(Math.max(1, ...at) / barRows)
  const marked = perMark === 1 ? 'a mark for each job' : `a mark for up to ${count(perMark)}`
  const row = (label: string, cells: string) => `${dim(`${label.padStart(gutter)} │`)}${cells}`.trimEnd()
  return [
    dim(`started in each ${exactDuration(spanMs)}, ${marked}`),
    ...barLines(at, perMark).map((cells, i) => row(i === 0 ? count(Math.max(...at)) : '', cells)),
    ...axisLines(scale, gutter).map(dim),
    dim(`started in all •${arrived === undefined ? '' : ', enqueued ·'}`),
    ...sumLines(at, arrived && counts(arrived, scale), top).map((cells, i) =>
      row(i === 0 ? count(top) : i === sumRows - 1 ? '0' : '', cells),
    ),
    ...axisLines(scale, gutter).map(dim),
  ]
}

interface Scale {
  readonly spanMs: number
  readonly columns: number
}

/** The number of instants in each column; the very last moment belongs to the last column. */
function counts(instants: readonly number[], { spanMs, columns }: Scale): number[] {
  const found = Array.from({ length: columns }, () => 0)
  for (const at of instants) found[Math.min(columns - 1, Math.floor(at / spanMs))]! += 1
  return found
}

function barLines(at: readonly number[], perMark: number): string[] {
  const heights = at.map((n) => Math.ceil(n / perMark))
  const rows = Math.max(1, ...heights)
  return Array.from({ length: rows }, (_, i) => heights.map((height) => (height >= rows - i ? '•' : ' ')).join(''))
}

/** `•` marks the sum of starts at the end of each column, `·` the sum of arrivals. */
function sumLines(starts: readonly number[], arrived: readonly number[] | undefined, top: number): string[] {
  const started = levels(starts, top)
  const come = arrived && levels(arrived, top)
  return Array.from({ length: sumRows }, (_, i) => {
    const level = sumRows - 1 - i
    return started.map((own, column) => (own === level ? '•' : come?.[column] === level ? '·' : ' ')).join('')
  })
}

function levels(at: readonly number[], top: number): number[] {
  let sum = 0
  return at.map((n) => {
    sum += n
    return Math.round((sum / top) * (sumRows - 1))
  })
}

/** A tick at the beginning and about every twelve columns, each with its time below it. */
function axisLines({ spanMs, columns }: Scale, gutter: number): string[] {
  const step = spans.find((span) => span % spanMs === 0 && span / spanMs >= 12) ?? spanMs * columns
  const every = step / spanMs
  const line = Array.from({ length: columns }, (_, i) => (i % every === 0 ? '┬' : '─')).join('')
  let labels = ''
  for (let i = 0; i < columns; i += every) {
    const text = i === 0 ? '0' : exactDuration(i * spanMs)
    if (i + text.length <= columns) labels = labels.padEnd(i) + text
  }
  const before = ' '.repeat(gutter + 1)
  return [`${before}└${line}`, `${before} ${labels}`]
}
