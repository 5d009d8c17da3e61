/** The command `schedules`: lists schedules and their ticks, and runs, pauses, resumes, clears and removes them. */

import type { Command } from 'commander'
import type { ScheduleRecord } from '../../client/schedules/schedule-view.js'
import { exactDuration } from '../../core/values/duration.js'
import { pagesOf } from '../../core/values/pages.js'
import type { Mill } from '../../mill/mill.js'
import { wholeFlag } from '../flags.js'
import { type MillFlags, millCommand, withJson, withMill } from '../mill-command.js'
import { printable } from '../printable.js'
import { OperationError } from '../process/exit-code.js'
import { count, counted, fromNow } from '../terminal/figures.js'
import { fieldLines } from '../terminal/record-lines.js'
import { type Column, table } from '../terminal/table.js'
import type { Terminal } from '../terminal/terminal.js'

export function addSchedules(program: Command): void {
  const schedules = program
    .command('schedules')
    .description('Look at schedules, run, pause, resume, clear or remove them')
    .helpCommand(false)
  const list = millCommand(schedules, 'list', 'List the stored schedules by name').addHelpText(
    'after',
    '\nExample:\n  $ millrace schedules list',
  )
  withJson(list, 'print {"schedules":[…]}, each a schedule record').action((flags: MillFlags) =>
    withMill(flags, async (mill, terminal) => {
      const all = await allOf(mill)
      terminal.print({ schedules: all }, () => listLines(all, terminal))
    }),
  )
  const show = millCommand(schedules, 'show <name>', 'Show everything that is known of a schedule').addHelpText(
    'after',
    '\nExample:\n  $ millrace schedules show nightly',
  )
  withJson(show, 'print the schedule record').action((name: string, flags: MillFlags) =>
    withMill(flags, async (mill, terminal) => {
      const schedule = await mill.schedules.get(name)
      if (schedule === undefined) throw new OperationError(`there is no schedule '${name}'.`)
      terminal.print(schedule, () => fieldLines(schedule, { nextAt: whenOf(schedule) }, terminal))
    }),
  )
  const next = millCommand(schedules, 'next <name>', 'Show when a schedule ticks next')
    .option('--count <n>', 'the number of ticks', wholeFlag(1, 1_000), 5)
    .addHelpText(
      'after',
      `
  For a paused schedule it shows when it would tick. Instants are in UTC.

Example:
  $ millrace schedules next nightly --count 10`,
    )
  withJson(next, 'print {"schedule","ticks":[…]}').action((name: string, { count: most, ...flags }: NextFlags) =>
    withMill(flags, async (mill, terminal) => {
      const ticks = await mill.schedules.next(name, most)
      terminal.print({ schedule: name, ticks }, () =>
        ticks.length === 0 ? [`${name}: it ticks no more.`] : ticks.map((at) => `${at.toISOString()}  ${since(at)}`),
      )
    }),
  )
  const run = millCommand(
    schedules,
    'run <name>',
    'Enqueue the job of a schedule now; its next tick stays',
  ).addHelpText('after', '\nExample:\n  $ millrace schedules run nightly')
  withJson(run, 'print {"schedule","queue","id","outcome"}').action((name: string, flags: MillFlags) =>
    withMill(flags, async (mill, terminal) => {
      const { id, outcome, queue } = await mill.schedules.runNow(name)
      terminal.print({ schedule: name, queue, id, outcome }, () => [`${name}: job ${printable(id)} is ${outcome}.`])
    }),
  )
  addSwitch(schedules, 'pause', 'Stop its ticks until it is resumed', async (mill, terminal, name) => {
    const waiting = await mill.schedules.pause(name)
    terminal.print({ schedule: name, paused: true, waiting }, () => [
      `${name}: paused until \`millrace schedules resume ${name}\`.`,
      ...(waiting === 0
        ? []
        : [
            `${counted(waiting, 'job')} of it that no worker has begun will still run: \`millrace schedules clear ${name}\` deletes them.`,
          ]),
    ])
  })
  addSwitch(schedules, 'resume', 'End a pause; missed ticks are not made up for', async (mill, terminal, name) => {
    await mill.schedules.resume(name)
    const nextAt = (await mill.schedules.get(name))?.nextAt
    terminal.print({ schedule: name, paused: false, nextAt }, () => [
      `${name}: resumed${nextAt === undefined ? '; it ticks no more' : `, next ${nextAt.toISOString()}`}.`,
    ])
  })
  addSwitch(schedules, 'clear', 'Delete its jobs that no worker has begun', async (mill, terminal, name) => {
    const deleted = await mill.schedules.clear(name)
    terminal.print({ schedule: name, deleted }, () => [`${name}: ${counted(deleted, 'job')} deleted.`])
  })
  addSwitch(schedules, 'remove', 'Remove it, with its jobs that no worker has begun', async (mill, terminal, name) => {
    if (!(await mill.schedules.remove(name))) throw new OperationError(`there is no schedule '${name}'.`)
    terminal.print({ schedule: name, removed: true }, () => [`${name}: removed.`])
  })
  const reconcile = millCommand(
    schedules,
    'reconcile',
    'Change the stored schedules to match the configuration',
  ).addHelpText(
    'after',
    `
  Each worker does so when it starts. Schedules that were set at run time, or declared by another configuration
  (schedulesOf), are left alone.

Example:
  $ millrace schedules reconcile`,
  )
  withJson(reconcile, 'print {"changes":[{"schedule","change"}]}').action((flags: MillFlags) =>
    withMill(flags, async (mill, terminal) => {
      const changes = await mill.schedules.reconcile()
      terminal.print({ changes }, () =>
        changes.length === 0
          ? ['Nothing differs.']
          : changes.map(({ schedule, change }) => `${printable(schedule)}: ${change}.`),
      )
    }),
  )
}

interface NextFlags extends MillFlags {
  readonly count: number
}

const printed = {
  pause: '{"schedule","paused","waiting"}',
  resume: '{"schedule","paused","nextAt"}',
  clear: '{"schedule","deleted"}',
  remove: '{"schedule","removed"}',
}

function addSwitch(
  schedules: Command,
  verb: keyof typeof printed,
  summary: string,
  act: (mill: Mill, terminal: Terminal, name: string) => Promise<void>,
): void {
  const command = millCommand(schedules, `${verb} <name>`, summary).addHelpText(
    'after',
    `\nExample:\n  $ millrace schedules ${verb} nightly`,
  )
  withJson(command, `print ${printed[verb]}`).action((name: string, flags: MillFlags) =>
    withMill(flags, (mill, terminal) => act(mill, terminal, name)),
  )
}

async function allOf(mill: Mill): Promise<ScheduleRecord[]> {
  const all: ScheduleRecord[] = []
  for await (const { schedules } of pagesOf((from) => mill.schedules.list({ limit: 200, ...from })))
    all.push(...schedules)
  return all
}

function listLines(all: readonly ScheduleRecord[], { colors, columns }: Terminal): string[] {
  if (all.length === 0) return ['no schedule is stored; a worker that starts stores the declared ones']
  const shown: Column<ScheduleRecord>[] = [
    { title: 'schedule', most: 40, cell: ({ name }) => name },
    { title: 'ticks', most: 40, cell: timesOf },
    { title: 'next', cell: whenOf },
    { title: 'ticked', align: 'right', cell: ({ ticked }) => count(ticked) },
    { title: 'skipped', align: 'right', cell: ({ skipped }) => count(skipped) },
    { title: 'missed', align: 'right', cell: ({ missed }) => count(missed) },
    { title: 'declared', cell: ({ isDeclared }) => (isDeclared ? 'yes' : 'no') },
    { title: 'task', cell: ({ task }) => task },
  ]
  return [counted(all.length, 'schedule'), ...table(shown, all, { width: columns, paintTitle: colors.dim })]
}

function timesOf({ cron, everyMs, timeZone }: ScheduleRecord): string {
  if (cron === undefined) return `every ${exactDuration(everyMs ?? 0)}`
  return timeZone === 'UTC' ? cron : `${cron} ${timeZone}`
}

function whenOf({ isPaused, nextAt }: ScheduleRecord): string {
  if (isPaused) return 'paused'
  return nextAt === undefined ? 'ended' : since(nextAt)
}

function since(at: Date): string {
  return fromNow(at, Date.now())
}
