/** The ends and the beats of claims on a Redis store: items dealt out to their shards, answers put back in order. */

import type { Beat, ClaimKey, ExtendAnswer, ExtendItem, SettleAnswer, SettleItem } from '../store.js'
import { resultBytes } from './redis-job.js'
import type { RedisArgument } from './redis-port.js'
import type { RedisQueues, RedisShard } from './redis-queues.js'
import { textIn } from './redis-reply.js'
import type { RedisScript } from './redis-script.js'
import type { RedisScripts } from './redis-scripts.js'

const mostItems = 250

const settleAnswers: Record<string, SettleAnswer> = { o: 'ok', l: 'lost', g: 'gone' }
const extendAnswers: Record<string, ExtendAnswer> = { o: 'ok', l: 'lost', c: 'cancel' }

export function settleItems(
  queues: RedisQueues,
  scripts: RedisScripts,
  items: readonly SettleItem[],
): Promise<SettleAnswer[]> {
  return dealt(queues, scripts.settle, items, pushSettle, settleAnswers)
}

export function extendItems(
  queues: RedisQueues,
  scripts: RedisScripts,
  items: readonly ExtendItem[],
): Promise<ExtendAnswer[]> {
  return dealt(queues, scripts.extend, items, pushExtend, extendAnswers)
}

async function dealt<Item extends ClaimKey, Answer>(
  queues: RedisQueues,
  script: RedisScript,
  items: readonly Item[],
  push: (args: RedisArgument[], item: Item) => void,
  answersBy: Record<string, Answer>,
): Promise<Answer[]> {
  const found = await queues.find(items.map(({ queue }) => queue))
  const trips = new Map<RedisShard, { at: number[]; args: RedisArgument[] }[]>()
  for (const [i, item] of items.entries()) {
    const shard = queues.shardOf(found[i]!, item.id)
    const others = trips.get(shard) ?? []
    let trip = others.at(-1)
    if (trip === undefined || trip.at.length === mostItems) {
      trip = { at: [], args: [] }
      others.push(trip)
      trips.set(shard, others)
    }
    trip.at.push(i)
    push(trip.args, item)
  }
  const answers = new Array<Answer>(items.length)
  const sent = [...trips].flatMap(([shard, of]) =>
    of.map(async ({ at, args }) => {
      const reply = textIn(await queues.run(shard, script, args))
      for (const [n, i] of at.entries()) answers[i] = answersBy[reply[n]!]!
    }),
  )
  const ended = await Promise.allSettled(sent)
  const failed = ended.find((one) => one.status === 'rejected')
  if (failed !== undefined) throw failed.reason
  return answers
}

/** Straight into the arguments of the trip: thousands a second are. */
function pushSettle(args: RedisArgument[], item: SettleItem): void {
  args.push(item.id, String(item.fence))
  switch (item.kind) {
    case 'complete': {
      const { result } = item
      if (result === undefined) args.push('c')
      else args.push('k', resultBytes(result), result.keepMs === undefined ? '' : whole(result.keepMs))
      return
    }
    case 'retry':
      args.push('t', whole(item.delayMs), item.last ? '1' : '0', given(item.error), given(item.reason))
      return
    case 'release':
      args.push('r', whole(item.delayMs))
      return
    case 'bury':
      args.push('b', given(item.error), given(item.reason))
      return
    case 'cancel':
      args.push('x', given(item.reason))
  }
}

function pushExtend(args: RedisArgument[], { id, fence, leaseMs, beat }: ExtendItem): void {
  args.push(id, String(fence), whole(leaseMs), beat === undefined ? '' : beatText(beat))
}

function beatText({ started, host, pid, progress }: Beat): string {
  const parts = [started ? '1' : '', host ?? '', pid ?? '', progress === undefined ? '' : JSON.stringify(progress)]
  return `${parts.join('\0')}\0`
}

/** Text that may be absent, and may be empty. */
function given(text: string | undefined): string {
  return text === undefined ? '' : `=${text}`
}

/** Never early: what lasts a part of a millisecond lasts a whole one. */
function whole(ms: number): string {
  return String(Math.ceil(ms))
}
