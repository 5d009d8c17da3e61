/** The ends and the beats of claims on a Redis store: items dealt out to their shards, answers put back in order. */

import { StoreCorruptError } from '../../core/errors.js'
import { PartlyAnsweredError } from '../damage.js'
import type { Beat } from '../job-beat.js'
import type { ClaimKey, ExtendAnswer, ExtendItem, Hold, SettleAnswer, SettleItem } from '../store.js'
import { dealt } from './redis-deal.js'
import { resultBytes } from './redis-job.js'
import { liveShards, type RedisShard, siblingKeys } from './redis-layout.js'
import type { RedisArgument, RedisReply } from './redis-port.js'
import type { RedisQueues } from './redis-queues.js'
import { listIn, textIn } from './redis-reply.js'
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
  const scriptFor = ({ kind }: RedisShard) => (kind === 'plain' ? scripts.settle : scripts.settleOrdered)
  return answered(queues, scripts, scriptFor, items, pushSettle, settleAnswers)
}

export function extendItems(
  queues: RedisQueues,
  scripts: RedisScripts,
  items: readonly ExtendItem[],
): Promise<ExtendAnswer[]> {
  return answered(queues, scripts, () => scripts.extend, items, pushExtend, extendAnswers)
}

/** What other shards of the queue must hold back with the one in which the claim ended. */
interface HeldBack {
  readonly hold: Hold
  readonly group: string
}

function heldIn(items: readonly ClaimKey[], letters: string, groups: readonly RedisReply[]): HeldBack[] {
  let next = 0
  return items.flatMap((item, i) => {
    const hold = 'hold' in item ? (item.hold as Hold | undefined) : undefined
    if (hold === undefined || letters[i] !== 'o') return []
    return [{ hold, group: hold.of === 'group' && groups.length > 0 ? textIn(groups[next++]) : '' }]
  })
}

/** Limits are those of the queue, and its shards cannot be changed in one step: a moment later for the others. */
async function holdBack(
  queues: RedisQueues,
  scripts: RedisScripts,
  others: readonly RedisShard[],
  held: readonly HeldBack[],
): Promise<void> {
  for (const { hold, group } of held)
    await Promise.all(others.map((one) => queues.run(one, scripts.switch, ['hold', hold.of, whole(hold.forMs), group])))
}

async function answered<Item extends ClaimKey, Answer extends string>(
  queues: RedisQueues,
  scripts: RedisScripts,
  scriptFor: (shard: RedisShard) => RedisScript,
  items: readonly Item[],
  push: (args: RedisArgument[], item: Item, shard: RedisShard) => void,
  answersBy: Record<string, Answer>,
): Promise<Answer[]> {
  const answers = new Array<Answer | undefined>(items.length).fill(undefined)
  await dealt(queues, items, async (shard, numbers, queue) => {
    const trips: Promise<void>[] = []
    for (let from = 0; from < numbers.length; from += mostItems) {
      const some = numbers.slice(from, from + mostItems)
      const args: RedisArgument[] = []
      for (const i of some) push(args, items[i]!, shard)
      trips.push(
        queues.runOver([shard], scriptFor(shard), args, undefined, siblingKeys(queue)).then(async (reply) => {
          const [letters, groups] = Array.isArray(reply) ? [textIn(reply[0]), listIn(reply[1])] : [textIn(reply), []]
          const others = liveShards(queue).filter(({ tag }) => tag !== shard.tag)
          if (others.length > 0) {
            const settled = some.map((i) => items[i]!)
            await holdBack(queues, scripts, others, heldIn(settled, letters, groups))
          }
          for (const [n, i] of some.entries()) answers[i] = answersBy[letters[n]!]!
        }),
      )
    }
    const failed = (await Promise.allSettled(trips)).find((trip) => trip.status === 'rejected')
    if (failed !== undefined) throw failed.reason
  }).catch((error: unknown) => {
    const isPart = error instanceof StoreCorruptError && answers.some((answer) => answer !== undefined)
    throw isPart ? new PartlyAnsweredError(error, answers) : error
  })
  return answers as Answer[]
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
      args.push('r', whole(item.delayMs), item.hold?.of ?? '', whole(item.hold?.forMs ?? 0))
      return
    case 'bury':
      args.push('b', given(item.error), given(item.reason))
      return
    case 'cancel':
      args.push('x', given(item.reason))
  }
}

/** Ordered queues keep neither checkpoint nor log. */
function pushExtend(args: RedisArgument[], { id, fence, leaseMs, beat }: ExtendItem, { kind }: RedisShard): void {
  args.push(id, String(fence), whole(leaseMs))
  if (beat === undefined) args.push('')
  else if (kind === 'ordered') args.push(beatText(beat), '', '')
  else args.push(beatText(beat), beat.checkpoint === undefined ? '' : resultBytes(beat.checkpoint), beat.log ?? '')
}

/** As `readBeat` reads it. */
function beatText({ started, host, boot, pidns, pid, ticks, progress }: Beat): string {
  return [started && 1, host, pid, progress && JSON.stringify(progress), undefined, boot, pidns, ticks].join('\0')
}

/** Text that may be absent, and may be empty. */
function given(text: string | undefined): string {
  return text === undefined ? '' : `=${text}`
}

/** Never early: what lasts a part of a millisecond lasts a whole one. */
function whole(ms: number): string {
  return String(Math.ceil(ms))
}
