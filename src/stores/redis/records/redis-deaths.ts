/** The deaths of jobs in a Redis store that are not reported yet. */

import {
  type DeathBacklog,
  type DeathKey,
  type Deaths,
  tasksInBacklog,
  type UnreportedDeath,
} from '../../contract/job-records.js'
import { compareBytes } from '../../rules/byte-order.js'
import { bytesIn, listIn, numberIn, textIn } from '../client/redis-reply.js'
import type { ShardScript } from '../client/redis-script.js'
import { readNumber, readRecord, utf8 } from '../format/redis-record.js'
import { shardScript, withJobs } from '../lua/prelude.js'
import { guard } from '../lua/script-kinds.js'
import { type RedisQueue, type RedisShard, shardHolding } from '../redis-layout.js'
import { partialReplies } from '../shards/redis-damage.js'
import type { RedisQueues } from '../shards/redis-queues.js'

/** Of a death, behind its task and NUL: number 7, instant 6, attempt 3, crashes 2, lengths of reason and error + 1, or 0, 4 each. */
const headBytes = 26

/** `refuseClosed` throws `ClosedError`. */
export function redisDeaths(queues: RedisQueues, refuseClosed: () => void): Deaths {
  return {
    async unreported(names, tasks, limit, except = []) {
      refuseClosed()
      const found = await queues.find(names)
      const shards = found.flatMap((queue) =>
        queue.layout.kind === 'plain'
          ? queue.shards.map((shard) => ({ shard, passed: passedIn(queue, shard, except) }))
          : [],
      )
      const asked = [String(limit), String(tasks.length), ...tasks]
      // Deaths on a server that is away must not keep back the others.
      const oldest = await partialReplies(
        shards.map(async ({ shard, passed }) => ({
          shard,
          reply: await queues.run(shard, oldestScript, [...asked, ...passed]),
        })),
      )
      const chosen = oldest
        .flatMap(({ shard, reply }) =>
          listIn(reply).map((death) => {
            const [task, number, diedAt] = listIn(death)
            return { shard, task: textIn(task), number: numberIn(number), diedAt: numberIn(diedAt) }
          }),
        )
        .sort((a, b) => a.diedAt - b.diedAt || a.number - b.number)
        .slice(0, limit)
      // Each may be large, so no shard is asked for more of them.
      const read = await partialReplies(
        [...new Set(chosen.map(({ shard }) => shard))].map(async (shard) => {
          const named = chosen.filter((one) => one.shard === shard)
          const args = named.flatMap(({ task, number }) => [task, String(number)])
          const reply = listIn(await queues.run(shard, readScript, args))
          return named.map((one, i) => [one, reply[i]!] as const)
        }),
      )
      const bodies = new Map(read.flat())
      return chosen.flatMap((one) => {
        const death = bodies.get(one) ?? null
        return death === null ? [] : (deathIn(one.shard.queue, bytesIn(death)) ?? [])
      })
    },

    async backlog(names, most) {
      refuseClosed()
      const found = await queues.find(names)
      const shards = found.flatMap(({ layout, shards }) => (layout.kind === 'plain' ? shards : []))
      const replies = await partialReplies(
        shards.map(async (shard) => ({ shard, reply: await queues.run(shard, backlogScript, []) })),
      )
      const parts = replies.map(({ shard: { queue }, reply }) =>
        listIn(reply).map((part) => {
          const [task, count, since] = listIn(part)
          return { queue, task: textIn(task), count: numberIn(count), since: numberIn(since) }
        }),
      )
      return found.flatMap(({ name }) =>
        backlogOf(
          parts.filter(([first]) => first?.queue === name),
          most,
        ),
      )
    },

    async reported(name, deaths) {
      refuseClosed()
      const [queue] = await queues.find([name])
      await Promise.all(
        deaths.map(({ id, task, number }) =>
          queues.run(shardHolding(queue!, id), reportedScript, [task, String(number), id]),
        ),
      )
    },
  }
}

/** Of the deaths to be passed over those in this shard, as the script takes them. */
function passedIn(queue: RedisQueue, shard: RedisShard, except: readonly DeathKey[]): string[] {
  return except
    .filter((one) => one.queue === queue.name && shardHolding(queue, one.id) === shard)
    .sort((a, b) => a.number - b.number)
    .flatMap(({ task, number }) => [task, String(number)])
}

/**
 * A death is its task and NUL, its head, its id and NUL, its reason, its error, and the record of the job. As long as the job is
 * in the morgue its record is only there, and the death is read together with it. Undefined for what cannot be one.
 */
function deathIn(queue: string, death: Buffer): UnreportedDeath | undefined {
  const head = death.indexOf(0) + 1
  if (death.length < head + headBytes + 2) return undefined
  const at = (offset: number, length: number) => readNumber(death, head + offset, length)
  const [number, diedAt, attempt, crashes] = [at(0, 7), at(7, 6), at(13, 3), at(16, 2)]
  const [reasonLength, errorLength] = [at(18, 4) - 1, at(22, 4) - 1]
  const idEnd = death.indexOf(0, head + headBytes)
  const reasonEnd = idEnd + 1 + Math.max(0, reasonLength)
  const errorEnd = reasonEnd + Math.max(0, errorLength)
  const text = (from: number, to: number) => utf8(death.toString('latin1', from, to))
  // If the record was lost, it is still a death.
  const { payload, codec } = errorEnd < death.length ? readRecord(death.subarray(errorEnd)) : { payload: '' }
  return {
    ...{ queue, id: text(head + headBytes, idEnd), number, task: text(0, head - 1), payload },
    ...(codec === undefined ? {} : { codec }),
    ...{ attempt, crashes, diedAt },
    ...(errorLength < 0 ? {} : { error: text(reasonEnd, errorEnd) }),
    ...(reasonLength < 0 ? {} : { reason: text(idEnd + 1, reasonEnd) }),
  }
}

/**
 * The backlog of a queue from those of its shards, each with its first tasks in the order of their bytes. Of a task behind the last
 * one of a shard that named as many as it may, that shard may have others: it is left out.
 */
function backlogOf(shards: readonly (readonly DeathBacklog[])[], most: number): DeathBacklog[] {
  const tasks = new Map<string, DeathBacklog>()
  for (const part of shards.flat()) {
    const { count, since } = tasks.get(part.task) ?? { count: 0, since: part.since }
    tasks.set(part.task, { ...part, count: Math.min(count + part.count, most), since: Math.min(since, part.since) })
  }
  const ends = shards.flatMap((parts) => (parts.length < tasksInBacklog ? [] : [parts.at(-1)!.task]))
  return [...tasks.values()]
    .filter(({ task }) => ends.every((end) => compareBytes(task, end) <= 0))
    .sort((a, b) => compareBytes(a.task, b.task))
    .slice(0, tasksInBacklog)
}

/** KEYS: those of one shard of a plain queue. Refuses `unknown`. */
function deathScript(
  name: string,
  text: string,
  flags: { readonly readOnly: true } | { readonly whenFull: true },
): ShardScript {
  return shardScript(name, 'plain', () => withJobs(`${guard}${text}`), flags)
}

/**
 * ARGV: how many; the number of tasks, and the tasks; then of each death that is passed over the task and its number,
 * ascending. Returns the oldest deaths of jobs of these tasks, for each its task, number and instant. Of each task and each of
 * these deaths it reads one, because each may be large.
 */
const oldestScript = deathScript(
  'deaths-oldest',
  String.raw`
local found, passed, tasks, last = {}, {}, {}, 2 + ARGV[2]
for i = last + 1, #ARGV, 2 do
  passed[ARGV[i]] = passed[ARGV[i]] or {}
  table.insert(passed[ARGV[i]], tonumber(ARGV[i + 1]))
end
-- Behind its number a death has an instant, which does not begin with this byte.
local function behind(edge) return '(' .. edge .. '\255' end
-- Turns to the next death of the task. One that is damaged is passed over.
local function turn(t)
  t.number = nil
  while not t.number do
    local over = t.passed[t.at]
    local edge = over and t.head .. pack('>I7', over)
    local death = call('ZRANGE', DEATHS, t.from, '(' .. (edge or t.task .. '\1'), 'BYLEX', 'LIMIT', 0, 1)[1]
    if death and #death >= #t.head + ${headBytes + 2} then
      t.number, t.died = unpackn('>I7I6', death, #t.head + 1)
      t.from = behind(sub(death, 1, #t.head + 7))
    elseif death then t.from = '(' .. death
    elseif over then t.from, t.at = behind(edge), t.at + 1
    else return end
  end
end
for i = 3, last do
  local head = ARGV[i] .. '\0'
  local t = { task = ARGV[i], head = head, from = '[' .. head, passed = passed[ARGV[i]] or {}, at = 1 }
  turn(t)
  if t.number then tasks[#tasks + 1] = t end
end
for _ = 1, tonumber(ARGV[1]) do
  local first
  for _, t in ipairs(tasks) do
    if t.number and (not first or t.died < first.died or (t.died == first.died and t.number < first.number)) then first = t end
  end
  if not first then break end
  found[#found + 1] = { first.task, first.number, first.died }
  turn(first)
end
return found
`,
  { readOnly: true },
)

/** ARGV: of each death its task and number. Returns them, with nil for those that were reported meanwhile. */
const readScript = deathScript(
  'deaths-read',
  String.raw`
-- With the record of the job, which may still be in the morgue.
local function whole(death)
  local at = find(death, '\0', 1, true)
  local stop = at and #death >= at + ${headBytes + 2} and find(death, '\0', at + ${headBytes + 1}, true)
  if not stop then return death end
  local reason, kept = unpackn('>I4I4', death, at + 19)
  if #death > stop + math.max(0, reason - 1) + math.max(0, kept - 1) then return death end
  return death .. (call('HGET', JOBS, sub(death, at + ${headBytes + 1}, stop - 1)) or '')
end
local found = {}
for i = 1, #ARGV, 2 do
  local edge = ARGV[i] .. '\0' .. pack('>I7', ARGV[i + 1])
  local death = call('ZRANGE', DEATHS, '[' .. edge, '(' .. edge .. '\255', 'BYLEX', 'LIMIT', 0, 1)[1]
  found[#found + 1] = death and whole(death) or false
end
return found
`,
  { readOnly: true },
)

/**
 * Returns for each of the first tasks with deaths the task, how many they are, and the instant of the first. A death that is
 * damaged is passed over: `fsck` names it.
 */
const backlogScript = deathScript(
  'deaths-backlog',
  String.raw`
local found, from = {}, '-'
while #found < ${tasksInBacklog} do
  local death = call('ZRANGE', DEATHS, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  if not death then break end
  local stop = find(death, '\0', 1, true)
  if stop and #death >= stop + ${headBytes + 2} then
    local task = sub(death, 1, stop - 1)
    found[#found + 1] = { task, call('ZLEXCOUNT', DEATHS, '[' .. task .. '\0', '(' .. task .. '\1'), (unpackn('>I6', death, stop + 8)) }
    from = '[' .. task .. '\1'
  else
    from = '(' .. death
  end
end
return found
`,
  { readOnly: true },
)

/** ARGV: the task and the number of a death, and the id of its job. Removes it. */
const reportedScript = deathScript(
  'deaths-reported',
  String.raw`
local head, n = ARGV[1] .. '\0', tonumber(ARGV[2])
for _, death in ipairs(call('ZRANGE', DEATHS, '[' .. head .. pack('>I7', n), '(' .. head .. pack('>I7', n + 1), 'BYLEX')) do
  if string.match(death, '^%Z*', #head + ${headBytes + 1}) == ARGV[3] then
    call('ZREM', DEATHS, death)
    if call('HGET', NOTES, 'd' .. ARGV[3]) == pack('>I7', n) then call('HDEL', NOTES, 'd' .. ARGV[3]) end
  end
end
`,
  { whenFull: true },
)
