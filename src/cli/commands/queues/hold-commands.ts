/** The commands that stop a queue or one of its groups, and let it go on: `queues pause`, `resume` and `release`. */

import type { Command } from 'commander'
import { type MillFlags, millCommand, withJson, withMill } from '../../mill-command.js'
import { counted } from '../../output/figures.js'

interface GroupFlags extends MillFlags {
  readonly group?: string
}

export function addHolds(queues: Command): void {
  const pause = millCommand(queues, 'pause <queue>', 'Start no jobs from now on; running ones go on')
    .option('--group <group>', 'only the jobs of this group; the others go on')
    .addHelpText(
      'after',
      '\nExamples:\n  $ millrace queues pause default\n  $ millrace queues pause crawl --group example.org',
    )
  withJson(pause, 'print {"queue","group","paused"}').action((name: string, { group, ...flags }: GroupFlags) =>
    withMill(flags, async (mill, terminal) => {
      await mill.queue(name).pause(group === undefined ? undefined : { group })
      const of = group === undefined ? '' : ` --group ${group}`
      terminal.print({ queue: name, ...(group !== undefined && { group }), paused: true }, () => [
        `${subjectOf(name, group)}: paused until \`millrace queues resume ${name}${of}\`.`,
      ])
    }),
  )
  const resume = millCommand(queues, 'resume <queue>', 'End a pause and a drain')
    .option('--group <group>', 'end the pause of this group alone')
    .addHelpText(
      'after',
      '\nExamples:\n  $ millrace queues resume default\n  $ millrace queues resume crawl --group example.org',
    )
  withJson(resume, 'print {"queue","paused","draining"}; with --group {"queue","group","paused"}').action(
    (name: string, { group, ...flags }: GroupFlags) =>
      withMill(flags, async (mill, terminal) => {
        await mill.queue(name).resume(group === undefined ? undefined : { group })
        const about = group === undefined ? { draining: false } : { group }
        terminal.print({ queue: name, paused: false, ...about }, () => [`${subjectOf(name, group)}: resumed.`])
      }),
  )
  const release = millCommand(queues, 'release <queue>', 'End holds before their time')
    .option('--group <group>', 'only the hold of this group (default: that of the queue, and those of all groups)')
    .addHelpText(
      'after',
      `
  A hold is what \`throttle()\` or \`ctx.hold()\` of a handler sets. \`millrace queues throttle\` lists them.
  Paused groups stay paused.

Examples:
  $ millrace queues release webhooks --group shop.example
  $ millrace queues release webhooks`,
    )
  withJson(release, 'print {"queue","group","released"}').action((name: string, { group, ...flags }: GroupFlags) =>
    withMill(flags, async (mill, terminal) => {
      const released = await mill.queue(name).throttle.release(group)
      terminal.print({ queue: name, ...(group !== undefined && { group }), released }, () => [
        released === 0
          ? `${subjectOf(name, group)}: nothing is held.`
          : `${subjectOf(name, group)}: ${counted(released, 'hold')} ended.`,
      ])
    }),
  )
}

function subjectOf(queue: string, group: string | undefined): string {
  return group === undefined ? queue : `group '${group}' of ${queue}`
}
