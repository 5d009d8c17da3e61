/** The commands of a sequence as a store can carry them out: what it would refuse by its traits is left out of them. */

import type { StoreTraits } from '../../stores/contract/store.js'
import type { Command, PlannedCall, PlannedJob } from './command.js'

/**
 * `byClock`: only the last job of an enqueue may take the place of another, as it comes behind all those that need not look at
 * what has their ids, and a call that is sent again has the jobs that it had. Listings are whole, so that those of
 * a queue of several shards can be compared shard by shard.
 */
export function possibleCommands(
  commands: readonly Command[],
  { groups, limited }: StoreTraits,
  byClock: boolean,
): Command[] {
  const left = [...(groups ? [] : ['group']), ...(limited ? [] : ['maxRunning'])]
  const sent = new Map<string, PlannedCall['jobs']>()
  return commands.map((command) => {
    const possible = left.length === 0 ? command : (without(command, left) as Command)
    if (byClock && (possible.verb === 'list' || possible.verb === 'list dead'))
      return { ...possible, query: { ...possible.query, limit: wholeList } } as Command
    return byClock && possible.verb === 'enqueue'
      ? { ...possible, calls: asSentFirst(lastReplacing(possible.calls), sent) }
      : possible
  })
}

/** More than any queue of a sequence has. */
const wholeList = 200

function lastReplacing(calls: readonly PlannedCall[]): PlannedCall[] {
  return calls.map((call, n) => ({
    ...call,
    jobs: call.jobs.map((job, i) =>
      n === calls.length - 1 && i === call.jobs.length - 1
        ? job
        : (without(job, ['ifWaiting', 'atMostMs']) as PlannedJob),
    ),
  }))
}

/** `sent`: the jobs of the calls so far, by their queue and id. */
function asSentFirst(calls: readonly PlannedCall[], sent: Map<string, PlannedCall['jobs']>): PlannedCall[] {
  return calls.map((call) => {
    const key = `${call.queue} ${call.callId}`
    const jobs = sent.get(key) ?? call.jobs
    sent.set(key, jobs)
    return { ...call, jobs }
  })
}

function without(value: unknown, fields: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((one) => without(one, fields))
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  const left = Object.entries(value).filter(([name]) => !fields.includes(name))
  return Object.fromEntries(left.map(([name, field]) => [name, without(field, fields)]))
}
