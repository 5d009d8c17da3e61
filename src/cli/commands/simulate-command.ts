/**
 * The command `simulate`: draws the effect of settings before anything runs with them. It reads no configuration and
 * opens no store.
 */

import { type Command, InvalidArgumentError, Option } from 'commander'
import { exactDuration } from '../../core/values/duration.js'
import { durationFlag, wholeFlag } from '../flags.js'
import { withJson } from '../mill-command.js'
import { UsageError } from '../process/exit-code.js'
import { count, counted } from '../terminal/figures.js'
import { Terminal } from '../terminal/terminal.js'
import { aboutText, type Rate, rateFlag, rulesOf, rulesText } from '../terminal/throttle-text.js'
import { plotLines } from './throttle-plot.js'
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
  const simulate = program.command('simulate').description('Draw the effect of settings').helpCommand(false)
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
    .option('--burst <n>', 'n jobs wait from the beginning, and no others', wholeFlag(1, mostStarts))
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
    arrivals: { ...(burst === undefined ? {} : { burst }), ...(arrivals === undefined ? {} : { rate: arrivals }) },
    ...(pollJitter === undefined ? {} : { polls: pollJitter }),
    random: seededRandom(seed),
  }
  refuseTooMany(scene)
  const simulation = simulated(scene)
  const { starts, arrived, worst } = simulation
  const { rules } = scene
  terminal.print(
    { rules, forMs, seed, started: starts.length, ...(arrived && { arrived: arrived.length }), worst, starts },
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
