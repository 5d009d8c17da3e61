/** The command `queues`: the queues in the store, and an operator's actions on a whole queue. */

import type { Command } from 'commander'
import type { Mill } from '../../../mill/mill.js'
import { type MillFlags, millCommand, withJson, withMill } from '../../mill-command.js'
import { confirm } from '../../output/confirmation.js'
import { count, counted } from '../../output/figures.js'
import { queueLines, queueRows } from '../../output/queue-table.js'
import type { Terminal } from '../../output/terminal.js'
import { addHolds } from './hold-commands.js'

import { addLimits } from './limits-command.js'
import { addMove, addReshard } from './queue-moves.js'
import { addCreate } from './queues-create.js'
import { addThrottle } from './throttle-command.js'

export function addQueues(program: Command): void {
  const queues = program.command('queues').description('Look at queues, and stop or change them').helpCommand(false)
  const list = millCommand(queues, 'list', 'List the declared and stored queues').addHelpText(
    'after',
    `
  It only reads. waiting: ready or scheduled · workers: those that serve it, without dead ones of this machine
  \`millrace stats\` shows all counts of a queue, \`millrace workers\` each worker.

Example:
  $ millrace queues list`,
  )
  withJson(
    list,
    'print {"queues":[{"queue","kind","order","exclusive","shards","configuredShards","waiting","running","workers","paused","draining","resharding","declared","stored"}]}',
  ).action((flags: MillFlags) =>
    withMill(flags, async (mill, terminal) => {
      const rows = await queueRows(mill)
      terminal.print({ queues: rows }, () => queueLines(rows, terminal))
    }),
  )
  addHolds(queues)
  const drainIt = millCommand(
    queues,
    'drain <queue>',
    'Refuse new jobs, and wait until none waits or runs',
  ).addHelpText(
    'after',
    `
  After an interruption the queue still refuses new jobs, until \`millrace queues resume\`.

Example:
  $ millrace queues drain default`,
  )
  withJson(drainIt, 'print {"queue","drained"}').action((queue: string, flags: MillFlags) =>
    withMill(flags, (mill, terminal) => drain(mill, terminal, mill.queue(queue).name)),
  )
  const clear = millCommand(queues, 'clear <queue>', 'Remove the waiting and dead jobs, never running ones')
    .option('--yes', 'do not ask first (only a person at a terminal is asked)')
    .addHelpText('after', '\nExample:\n  $ millrace queues clear default --yes')
  withJson(clear, 'print {"queue","removed"}').action((name: string, flags: MillFlags & { yes?: boolean }) =>
    withMill(flags, async (mill, terminal) => {
      const queue = mill.queue(name)
      await confirm(async () => {
        const { ready, scheduled, dead } = await queue.depth()
        return `queues clear ${name}: about ${counted(ready + scheduled, 'waiting job')} and ${counted(dead, 'dead one')} would be removed. Go on?`
      }, flags)
      const removed = await queue.clear()
      terminal.print({ queue: name, removed }, () => [`${name}: ${counted(removed, 'job')} removed.`])
    }),
  )
  addCreate(queues)
  addThrottle(queues)
  addLimits(queues)
  addReshard(queues)
  addMove(queues)
}

/** The interval at which a drain reports the jobs left. */
const progressMs = 5_000

async function drain(mill: Mill, terminal: Terminal, name: string): Promise<void> {
  const queue = mill.queue(name)
  const { ready, scheduled, running, paused } = await queue.depth()
  if (paused && ready + scheduled > 0)
    process.stderr.write(
      `millrace: queue '${name}' is paused: its waiting jobs do not run, so the drain does not end. Interrupt this, run \`millrace queues resume ${name}\`, then drain again.\n`,
    )
  if (!terminal.json && ready + scheduled + running > 0)
    terminal.print({}, () => [
      `${name}: refuses new jobs; ${counted(ready + scheduled, 'job')} waiting, ${count(running)} running.`,
    ])
  let toldAt = performance.now()
  await queue.drain({
    onProgress: (left) => {
      if (terminal.json || left.waiting + left.running === 0 || performance.now() < toldAt + progressMs) return
      toldAt = performance.now()
      terminal.print({}, () => [`${name}: ${counted(left.waiting, 'job')} waiting, ${count(left.running)} running.`])
    },
  })
  terminal.print({ queue: name, drained: true }, () => [
    `${name}: drained. It refuses new jobs until \`millrace queues resume ${name}\`.`,
  ])
}
