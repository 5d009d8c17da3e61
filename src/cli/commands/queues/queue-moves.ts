/** Queue moves: the commands that move every job of an ordered queue to other shards or another queue. */

import type { Command } from 'commander'
import { mostShards } from '../../../client/admin/queue-admin.js'
import type { LongActionOptions } from '../../../client/admin/step-loop.js'
import { hasCode } from '../../../core/error-codes.js'
import { wholeFlag } from '../../flags.js'
import { type MillFlags, millCommand, withJson, withMill } from '../../mill-command.js'
import { OperationError, type StopSignal, stopSignals } from '../../output/exit-code.js'
import { counted } from '../../output/figures.js'
import type { Terminal } from '../../output/terminal.js'

export function addReshard(queues: Command): void {
  const command = millCommand(queues, 'reshard', 'Spread an ordered queue over another number of shards')
    .argument('<queue>')
    .argument('<shards>', `1 to ${mostShards}`, wholeFlag(1, mostShards))
    .addHelpText(
      'after',
      `
  Until it is done no job of the queue is started. It waits for running jobs; new ones are accepted. After an interruption
  run the same command again to go on. Then set the same number in the configuration.

Example:
  $ millrace queues reshard orders 24`,
    )
  withJson(command, 'print {"queue","shards","moved"}').action((name: string, shards: number, flags: MillFlags) =>
    withMill(flags, async (mill, terminal) => {
      const queue = mill.queue(name)
      const again = `millrace queues reshard ${name} ${shards}`
      const stays = `no job of queue '${name}' is started until \`${again}\` has been run to its end.`
      const moved = await interruptible(stays, (options) => queue.reshard(shards, options), {
        terminal,
        waits: `${name}: waits for its running jobs to end; no others are started meanwhile.`,
      })
      terminal.print({ queue: name, shards, moved }, () => [
        `${name}: has ${counted(shards, 'shard')}; ${counted(moved, 'job')} moved.`,
      ])
    }),
  )
}

export function addMove(queues: Command): void {
  const command = millCommand(queues, 'move', 'Move the waiting and dead jobs of an ordered queue to another')
    .argument('<old>')
    .argument('<new>')
    .addHelpText(
      'after',
      `
  Both must be declared, and ordered. Jobs keep their payloads, scores, times and attempts. If an id is in the new queue
  already, the payloads join it. Running jobs, and jobs still enqueued in the old queue, are left: move again.

Example:
  $ millrace queues move sync-order orders`,
    )
  withJson(command, 'print {"from","to","moved","left"}').action((from: string, to: string, flags: MillFlags) =>
    withMill(flags, async (mill, terminal) => {
      const [queue, { name }] = [mill.queue(from), mill.queue(to)]
      const again = `millrace queues move ${from} ${to}`
      const stays = `the other jobs are still in queue '${from}'; \`${again}\` goes on.`
      const moved = await interruptible(stays, (options) => queue.move(name, options), {
        terminal,
        waits: `${from}: waits for its other jobs.`,
      })
      const { ready, scheduled, running, dead } = await queue.depth()
      const left = ready + scheduled + running + dead
      terminal.print({ from, to, moved, left }, () => [
        `${from}: ${counted(moved, 'job')} moved to ${to}.`,
        ...(left === 0
          ? []
          : [
              `${from}: ${counted(left, 'job')} left, ${running} of them running. Move again when producers use ${to} and the running ones have ended.`,
            ]),
      ])
    }),
  )
}

/** A signal ends it between two steps; the error then says what `stays`. A second signal ends the process at once. */
async function interruptible<T>(
  stays: string,
  act: (options: LongActionOptions) => Promise<T>,
  { terminal, waits }: { readonly terminal: Terminal; readonly waits: string },
): Promise<T> {
  const over = new AbortController()
  const stop = (signal: StopSignal) => over.abort(new OperationError(`ended by ${signal}: ${stays}`))
  for (const signal of stopSignals) process.once(signal, stop)
  let told = false
  const onProgress: LongActionOptions['onProgress'] = ({ isWaiting }) => {
    if (!isWaiting || told || terminal.json) return
    told = true
    terminal.print({}, () => [waits])
  }
  try {
    return await act({ signal: over.signal, onProgress })
  } catch (error) {
    if (!hasCode(error, 'store-unavailable')) throw error
    throw new OperationError(`${error.message} It may be half done: then ${stays}`, { cause: error })
  } finally {
    for (const signal of stopSignals) process.off(signal, stop)
  }
}
