/** The ends and beats of claims on a Redis store: divides items among their shards, and puts answers back in order. */

import { hasCode } from '../../../core/error-codes.js'
import { PartlyAnsweredError } from '../../contract/damage.js'
import type { Beat, EndedRun } from '../../contract/job-beat.js'
import type { ClaimKey, ExtendAnswer, ExtendItem, Hold, SettleAnswer, SettleItem } from '../../contract/settle.js'
import type { RedisArgument } from '../client/redis-client.js'
import { listIn, textIn } from '../client/redis-reply.js'
import type { ShardScript } from '../client/redis-script.js'
import { resultBytes } from '../format/redis-job.js'
import { liveShards, type RedisQueue, type RedisShard, siblingKeys } from '../layout/redis-layout.js'
import type { ScriptPair } from '../lua/script-kinds.js'
import { queueStateScripts } from '../shards/queue-state-script.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { sendByShard } from '../shards/redis-shard-router.js'
import { extendScript } from './extend-script.js'
import { groupsScripts } from './groups-script.js'
import { settleScripts } from './settle-script.js'

const mostItems = 250

const settleAnswers: Record<string, SettleAnswer> = { o: 'ok', l: 'lost', g: 'gone' }
const extendAnswers: Record<string, ExtendAnswer> = { o: 'ok', l: 'lost', c: 'cancel' }

export function settleItems(queues: RedisQueues, items: readonly SettleItem[]): Promise<SettleAnswer[]> {
  const holdFirst = (shard: RedisShard, queue: RedisQueue, some: readonly SettleItem[]) => {
    const holding = some.filter(isHolding).filter((item) => firstOf(some, item) === item)
    return holding.length === 0 ? undefined : holdOthers(queues, shard, queue, holding)
  }
  return answered(queues, settleScripts, items, pushSettles, settleAnswers, holdFirst)
}

export function extendItems(queues: RedisQueues, items: readonly ExtendItem[]): Promise<ExtendAnswer[]> {
  return answered(queues, extendScript, items, pushExtends, extendAnswers)
}

type HoldingItem = SettleItem & { readonly hold: Hold }

/**
 * Holds back the other shards of the queue for claims that are about to end with a hold. The shards cannot be changed
 * in one step, so the others are held first: if a call fails, nothing has ended, and the same item sent again does it
 * all.
 */
async function holdOthers(
  queues: RedisQueues,
  shard: RedisShard,
  queue: RedisQueue,
  holding: readonly HoldingItem[],
): Promise<void> {
  const others = liveShards(queue).filter(({ tag }) => tag !== shard.tag)
  if (others.length === 0) return
  const args = holding.flatMap(({ id, fence }) => [id, String(fence)])
  const groups = listIn(await queues.run(shard, groupsScripts, args))
  for (const [i, { hold }] of holding.entries()) {
    // A lost claim holds nothing.
    if (groups[i] === null) continue
    const verb = ['hold', hold.of, whole(hold.forMs), textIn(groups[i])]
    await Promise.all(others.map((one) => queues.run(one, queueStateScripts, verb)))
  }
}

function isHolding(item: SettleItem): item is HoldingItem {
  return item.hold !== undefined
}

/** If a call names several ends for one claim, only the first counts. */
function firstOf(items: readonly SettleItem[], { id, fence }: ClaimKey): SettleItem | undefined {
  return items.find((item) => item.id === id && item.fence === fence)
}

/** `first`: does the work in other shards before the script runs; returns undefined if there is none. */
async function answered<Item extends ClaimKey, Answer extends string>(
  queues: RedisQueues,
  script: ShardScript | ScriptPair,
  items: readonly Item[],
  push: (args: RedisArgument[], items: readonly Item[], shard: RedisShard) => void,
  answersBy: Record<string, Answer>,
  first?: (shard: RedisShard, queue: RedisQueue, items: readonly Item[]) => Promise<void> | undefined,
): Promise<Answer[]> {
  const answers = new Array<Answer | undefined>(items.length).fill(undefined)
  await sendByShard(queues, items, async (shard, numbers, queue) => {
    const own = numbers.map((i) => items[i]!)
    const done = first?.(shard, queue, own)
    // Awaited only if needed: otherwise a claim made in the same tick could be sent before it.
    if (done !== undefined) await done
    const trips: Promise<void>[] = []
    for (let from = 0; from < numbers.length; from += mostItems) {
      const some = numbers.slice(from, from + mostItems)
      const args: RedisArgument[] = []
      push(
        args,
        some.map((i) => items[i]!),
        shard,
      )
      trips.push(
        queues.runOver([shard], script, args, undefined, siblingKeys(queue)).then((reply) => {
          const letters = textIn(reply)
          const ok = answersBy['o']!
          for (const [n, i] of some.entries()) answers[i] = letters === '' ? ok : answersBy[letters[n]!]!
        }),
      )
    }
    const failed = (await Promise.allSettled(trips)).find((trip) => trip.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }).catch((error: unknown) => {
    const isPart = hasCode(error, 'store-corrupt') && answers.some((answer) => answer !== undefined)
    throw isPart ? new PartlyAnsweredError(error, answers) : error
  })
  return answers as Answer[]
}

/** Items in a row that complete under one fence and keep nothing, as most do, are sent together. */
function pushSettles(args: RedisArgument[], items: readonly SettleItem[]): void {
  for (let i = 0; i < items.length; ) {
    const { fence } = items[i]!
    let end = i
    while (end < items.length && items[end]!.fence === fence && isBare(items[end]!)) end += 1
    if (end - i < 2) pushSettle(args, items[i++]!)
    else {
      args.push('', String(fence), String(end - i))
      for (; i < end; i += 1) args.push(items[i]!.id)
    }
  }
}

function isBare(item: SettleItem): boolean {
  return item.kind === 'complete' && item.result === undefined && item.hold === undefined
}

function pushSettle(args: RedisArgument[], item: SettleItem): void {
  const { hold } = item
  if (hold !== undefined) args.push(item.id, String(item.fence), 'h', hold.of, whole(hold.forMs))
  args.push(item.id, String(item.fence))
  switch (item.kind) {
    case 'complete': {
      const { result } = item
      if (result === undefined) args.push('c')
      else
        args.push('k', resultBytes(result), result.keepMs === undefined ? '' : whole(result.keepMs), runText(item.run))
      return
    }
    case 'retry':
      args.push(
        't',
        whole(item.delayMs),
        item.last ? '1' : '0',
        given(item.error),
        given(item.reason),
        runText(item.run),
        String(item.done ?? 0),
      )
      return
    case 'release':
      args.push('r', whole(item.delayMs), given(item.error), String(item.done ?? 0))
      return
    case 'bury':
      args.push('b', given(item.error), given(item.reason), runText(item.run), String(item.done ?? 0))
      return
    case 'cancel':
      args.push('x', given(item.reason), runText(item.run))
  }
}

/** Ordered queues keep neither checkpoint nor log. */
function pushExtends(args: RedisArgument[], items: readonly ExtendItem[], { kind }: RedisShard): void {
  for (const { id, fence, leaseMs, beat } of items) {
    args.push(id, String(fence), whole(leaseMs))
    if (beat === undefined) args.push('')
    else if (kind === 'ordered') args.push(beatText(beat), '', '')
    else args.push(beatText(beat), beat.checkpoint === undefined ? '' : resultBytes(beat.checkpoint), beat.log ?? '')
  }
}

/** The beginning of a note in the form that `readBeat` reads, with a duration for the start. */
function runText(run: EndedRun | undefined): string {
  return run === undefined ? '' : [Math.floor(run.startedMs), run.host, run.pid].join('\0')
}

/**
 * The form that `readBeat` reads, with a duration for the start. Rounds it down, so that no run starts before it is
 * due.
 */
function beatText({ startedMs, host, boot, pidns, pid, ticks, progress }: Beat): string {
  return [
    startedMs === undefined ? undefined : Math.floor(startedMs),
    host,
    pid,
    progress && JSON.stringify(progress),
    undefined,
    boot,
    pidns,
    ticks,
  ].join('\0')
}

/** Encodes text that may be absent or empty. */
function given(text: string | undefined): string {
  return text === undefined ? '' : `=${text}`
}

/** Rounds up, so that nothing happens early. */
function whole(ms: number): string {
  return String(Math.ceil(ms))
}
