/** The ends and beats of claims on a Redis store: divides items among their shards, and puts answers back in order. */

import { hasCode } from '../../../core/errors.js'
import { mostLogBytes } from '../../../core/job/job-log.js'
import { PartlyAnsweredError } from '../../contract/damage.js'
import type { Beat, EndedRun } from '../../contract/job-beat.js'
import type { ClaimKey, ExtendAnswer, ExtendItem, Hold, SettleAnswer, SettleItem } from '../../contract/settle.js'
import type { RedisArgument } from '../client/redis-client.js'
import { listIn, textIn } from '../client/redis-reply.js'
import { refuse, type ShardScript } from '../client/redis-script.js'
import { resultBytes } from '../format/redis-job.js'
import { renewal } from '../lua/lease-lua.js'
import { shardScript, withJobs } from '../lua/prelude.js'
import { readerPair, type ScriptPair } from '../lua/script-kinds.js'
import { isSetBack, setBack } from '../lua/set-back-lua.js'
import { liveShards, type RedisQueue, type RedisShard, siblingKeys } from '../redis-layout.js'
import { queueStateScripts } from '../shards/queue-state-script.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { sendByShard } from '../shards/redis-shard-router.js'
import { beatNotes, settleScripts } from './settle-script.js'

const mostItems = 250

const settleAnswers: Record<string, SettleAnswer> = { o: 'ok', l: 'lost', g: 'gone' }

const extendAnswers: Record<string, ExtendAnswer> = { o: 'ok', l: 'lost', c: 'cancel' }

export function settleItems(queues: RedisQueues, items: readonly SettleItem[]): Promise<SettleAnswer[]> {
  const first = (shard: RedisShard, queue: RedisQueue, some: readonly SettleItem[]) => {
    const holding = some.filter(isHolding).filter((item) => firstOf(some, item) === item)
    const isSwept = some.some((item) => item.kind === 'wait' && item.withinMs !== undefined)
    if (holding.length === 0 && !isSwept) return undefined
    return Promise.all([
      holding.length > 0 && holdOthers(queues, shard, queue, holding),
      isSwept && queues.registerSwept([queue.name]),
    ])
  }
  return answered(queues, settleScripts, items, pushSettles, settleAnswers, first)
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

/**
 * KEYS: those of one shard. ARGV: for each claim its id and fence.
 * Returns for each the group of its job, '' for none, or nil if the claim is not the current one.
 */
const groupsLua = `
local groups = {}
for n = 1, #ARGV, 2 do
  local claim, group = call('HGET', CLAIMS, ARGV[n]), false
  if claim and sub(claim, 1, 7) == pack('>I7', tonumber(ARGV[n + 1])) then group = select(4, written(call('HGET', JOBS, ARGV[n]))) end
  groups[#groups + 1] = group
end
return groups
`

/** The groups script: the groups of running jobs. */
const groupsScripts = readerPair('groups', groupsLua)

function isHolding(item: SettleItem): item is HoldingItem {
  return item.hold !== undefined
}

/** If a call names several ends for one claim, only the first counts. */
function firstOf(items: readonly SettleItem[], { id, fence }: ClaimKey): SettleItem | undefined {
  return items.find((item) => item.id === id && item.fence === fence)
}

/** `first`: does what is to be done elsewhere before the script runs; returns undefined if that is nothing. */
async function answered<Item extends ClaimKey, Answer extends string>(
  queues: RedisQueues,
  script: ShardScript | ScriptPair,
  items: readonly Item[],
  push: (args: RedisArgument[], items: readonly Item[], shard: RedisShard) => void,
  answersBy: Record<string, Answer>,
  first?: (shard: RedisShard, queue: RedisQueue, items: readonly Item[]) => Promise<unknown> | undefined,
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
          const text = textIn(reply)
          const tells = text.endsWith('!')
          const letters = tells ? text.slice(0, -1) : text
          const ok = answersBy['o']!
          for (const [n, i] of some.entries()) answers[i] = letters === '' ? ok : answersBy[letters[n]!]!
          return tells ? queues.reports.deliver(shard) : undefined
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

/** Items in a row that complete under one fence and leave nothing, as most do, or leave results to joins, are sent together. */
function pushSettles(args: RedisArgument[], items: readonly SettleItem[]): void {
  for (let i = 0; i < items.length; ) {
    const { fence } = items[i]!
    const run = runOf(items[i]!)
    let end = i + 1
    while (run !== undefined && end < items.length && items[end]!.fence === fence && runOf(items[end]!) === run)
      end += 1
    if (end - i < 2) pushSettle(args, items[i++]!)
    else {
      args.push('', String(fence), String(run === 'bare' ? end - i : i - end))
      for (; i < end; i += 1) {
        args.push(items[i]!.id)
        if (run === 'joined') args.push(resultBytes((items[i] as Extract<SettleItem, { kind: 'complete' }>).result!))
      }
    }
  }
}

/** The kind of items that are settled in one run with this one; undefined: it is settled by itself. */
function runOf(item: SettleItem): 'bare' | 'joined' | undefined {
  if (item.kind !== 'complete' || item.hold !== undefined) return undefined
  return item.result === undefined ? 'bare' : item.result.onlyForJoins ? 'joined' : undefined
}

function pushSettle(args: RedisArgument[], item: SettleItem): void {
  const { hold } = item
  if (hold !== undefined) args.push(item.id, String(item.fence), 'h', hold.of, whole(hold.forMs))
  args.push(item.id, String(item.fence))
  switch (item.kind) {
    case 'complete': {
      const { result } = item
      if (result === undefined) args.push('c')
      else if (result.onlyForJoins) args.push('j', resultBytes(result))
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
    case 'wait':
      args.push('w', item.signal, item.withinMs === undefined ? '' : whole(item.withinMs))
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

/**
 * KEYS: those of one shard, plain or ordered: it uses only keys that both have.
 * ARGV: for each item id, fence, lease in ms, and its beat or ''. A beat is, with NUL between the parts: how many ms
 * ago the run started, host, pid, progress, an empty part, boot, pidns and ticks. After a beat come the checkpoint in
 * its stored form and the text to add to the log. Empty parts leave the stored ones unchanged.
 * The note `b` has the same parts, but the instant of the first start, and in the fifth place that of the last beat.
 * Returns one letter per item: o ok, l lost, c cancel. Refuses `unknown`. Never shortens a lease.
 */
const extendLua = String.raw`
local form = call('HMGET', META, 'kind', 'seenAt')
if not form[1] then ${refuse('unknown')} end
if ${isSetBack('form[2]')} then turn_back(form[2]) end
call('HSET', META, 'seenAt', now)
local answers = {}
${renewal}
local n = 1
while n <= #ARGV do
  local id, beat = ARGV[n], ARGV[n + 3]
  local claim = call('HGET', CLAIMS, id)
  if not claim or sub(claim, 1, 7) ~= pack('>I7', tonumber(ARGV[n + 1])) then
    answers[#answers + 1] = 'l'
  else
    local was, flags = byte(claim, 14) - 64, renew(id, claim, now + tonumber(ARGV[n + 2]))
    if beat ~= '' then
      local said, before = read_beat(beat), read_beat(call('HGET', NOTES, 'b' .. id) or '')
      if said[1] ~= '' then said[1] = before[1] ~= '' and before[1] or started_at(said[1]) end
      for i = 1, 8 do
        if said[i] == '' then said[i] = before[i] end
      end
      said[5] = started_at(0)
      call('HSET', NOTES, 'b' .. id, table.concat(said, '\0'))
      if ARGV[n + 4] ~= '' then call('HSET', NOTES, 'k' .. id, ARGV[n + 4]) end
      if ARGV[n + 5] ~= '' then write_log(id, ARGV[n + 5]) end
      if not has(flags, BEATEN) then flags = flags + BEATEN end
    end
    if flags ~= was then call('HSET', CLAIMS, id, with_flags(claim, flags)) end
    answers[#answers + 1] = has(flags, CANCEL) and 'c' or 'o'
  end
  n = n + (beat == '' and 4 or 6)
end
return table.concat(answers)
`

/** The translation of `core/job/job-log`. */
const log = String.raw`
local function write_log(id, more)
  local log = (call('HGET', NOTES, 'l' .. id) or '') .. more
  -- Keeps the end of the log, from the start of a character on: other bytes of a character are 10xxxxxx.
  if #log > ${mostLogBytes} then log = sub(log, find(log, '[^\128-\191]', -${mostLogBytes}) or #log + 1) end
  call('HSET', NOTES, 'l' .. id, log)
end
`

/** The extend script: renews leases of one shard, and stores what beats report. */
const extendScript = shardScript('extend', 'plain', () => withJobs(extendLua, beatNotes + log + setBack), {
  whenFull: true,
})
