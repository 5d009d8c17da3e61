/** The command `queues limits`: shows the stored limits of a queue, and changes them while everything runs. */

import { type Command, InvalidArgumentError } from 'commander'
import type { LimitChange, MaxRunning, StandingLimits } from '../../../core/queue/queue-limits.js'
import { defined } from '../../../core/values/defined.js'
import { exactDuration, parseDuration } from '../../../core/values/duration.js'
import type { Mill } from '../../../mill/mill.js'
import { wholeFlag } from '../../flags.js'
import { type MillFlags, millCommand, withJson, withMill } from '../../mill-command.js'
import { count } from '../../terminal/figures.js'
import type { Terminal } from '../../terminal/terminal.js'

type Dead = StandingLimits['retention']['dead']

interface LimitFlags extends MillFlags {
  readonly maxRunning?: MaxRunning | 'none'
  readonly maxPending?: number | 'none'
  readonly maxCrashes?: number
  readonly results?: number | 'none'
  readonly dead?: Dead
}

const most = 1_000_000_000

export function addLimits(queues: Command): void {
  const command = millCommand(
    queues,
    'limits <queue>',
    'Show the limits that the store has for a queue, or change them',
  )
    .option('--max-running <n>', 'jobs at once: 20, 1/group, 20,1/group or none', maxRunningFlag)
    .option('--max-pending <n>', 'waiting jobs, or none', orNone(1))
    .option('--max-crashes <n>', 'crashes after which a job is buried', wholeFlag(1, most))
    .option('--results <n>', 'results that are kept, or none for no limit', orNone(0))
    .option('--dead <n>', 'dead jobs that are kept: 1000, 30d, 1000,30d, or none for no limit', deadFlag)
    .addHelpText(
      'after',
      `
  New limits hold at once, in every process; those that are not named stay. none lifts a limit.
  Then set the same ones in the configuration, or none: a worker that starts with others is refused as config-conflict.

Examples:
  $ millrace queues limits default
  $ millrace queues limits default --max-running 4
  $ millrace queues limits imports --max-running 20,1/group --max-pending none`,
    )
  withJson(
    command,
    'print {"queue","maxRunning","maxPending","maxCrashes","retention"}; with flags also "before"',
  ).action((queue: string, flags: LimitFlags) =>
    withMill(flags, (mill, terminal) => limits(mill, terminal, queue, flags)),
  )
}

async function limits(mill: Mill, terminal: Terminal, name: string, flags: LimitFlags): Promise<void> {
  const queue = mill.queue(name)
  const change = changeOf(flags)
  if (Object.keys(change).length === 0) {
    const now = await queue.limits.get()
    return terminal.print({ queue: name, ...now }, () => lines(name, now))
  }
  const isStored = (await mill.storedQueues())?.some((stored) => stored.name === name)
  const before = isStored ? await queue.limits.get() : undefined
  await queue.limits.set(change)
  const now = await queue.limits.get()
  terminal.print({ queue: name, ...now, ...defined({ before }) }, () => [
    ...lines(name, now, before),
    'Give the configuration the same limits, or none: a worker that starts with others is refused as config-conflict.',
  ])
}

function changeOf({ maxRunning, maxPending, maxCrashes, results, dead }: LimitFlags): LimitChange {
  const retention = {
    ...(results !== undefined && { results: results === 'none' ? ('untilDeleted' as const) : { count: results } }),
    ...defined({ dead }),
  }
  return { ...defined({ maxRunning, maxPending, maxCrashes }), ...(Object.keys(retention).length > 0 && { retention }) }
}

/** One line for each limit, with its former value if that was another. */
function lines(queue: string, now: StandingLimits, before?: StandingLimits): string[] {
  const were = before && texts(before)
  return [
    `${queue}:`,
    ...Object.entries(texts(now)).map(([name, text]) => {
      const was = were?.[name]
      return `  ${name.padEnd(12)} ${text}${was === undefined || was === text ? '' : `; before: ${was}`}`
    }),
  ]
}

function texts({ maxRunning, maxPending, maxCrashes, retention }: StandingLimits): Record<string, string> {
  const { results } = retention
  return {
    'max running': runningText(maxRunning),
    'max pending': maxPending === 'none' ? 'none' : count(maxPending),
    'max crashes': count(maxCrashes),
    results: results === 'untilDeleted' ? 'none' : count(results.count),
    dead: deadText(retention.dead),
  }
}

function runningText(maxRunning: MaxRunning | 'none'): string {
  if (maxRunning === 'none') return 'none'
  if (typeof maxRunning === 'number') return count(maxRunning)
  const { total, perGroup } = maxRunning
  return `${total === undefined ? '' : `${count(total)}, and `}${count(perGroup)} a group`
}

function deadText(dead: Dead): string {
  if (dead === 'untilDeleted') return 'none'
  const { age, count: number } = dead
  return [number === undefined ? [] : count(number), age === undefined ? [] : `for ${exactDuration(age)}`]
    .flat()
    .join(', ')
}

function maxRunningFlag(given: string): MaxRunning | 'none' {
  if (given === 'none') return 'none'
  const [, total, , perGroup] = /^(\d{1,9})?((?:^|,)(\d{1,9})\/group)?$/.exec(given) ?? []
  if (Number(total ?? 1) < 1 || Number(perGroup ?? 1) < 1 || (total ?? perGroup) === undefined)
    throw new InvalidArgumentError('Expected 20, 1/group, 20,1/group or none, with numbers of at least 1.')
  if (perGroup === undefined) return Number(total)
  return { perGroup: Number(perGroup), ...(total !== undefined && { total: Number(total) }) }
}

function orNone(least: number): (given: string) => number | 'none' {
  return (given) => (given === 'none' ? 'none' : wholeFlag(least, most)(given))
}

function deadFlag(given: string): Dead {
  if (given === 'none') return 'untilDeleted'
  const parts = given.split(',')
  const counts = parts.filter((part) => /^\d{1,9}$/.test(part)).map(Number)
  const ages = parts.filter((part) => !/^\d+$/.test(part)).map((part) => parseDuration(part))
  const [age] = ages
  if (
    counts.length > 1 ||
    ages.length > 1 ||
    counts.length + ages.length !== parts.length ||
    (ages.length === 1 && !age)
  )
    throw new InvalidArgumentError('Expected a number, an age such as 30d, both with a comma between them, or none.')
  return { ...defined({ age }), ...(counts.length === 1 && { count: counts[0]! }) }
}
