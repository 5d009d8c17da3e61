/** The deaths of jobs in a Redis store that are not reported yet. */

import {
  type DeathBacklog,
  type DeathKey,
  type Deaths,
  tasksInBacklog,
  type UnreportedDeath,
} from '../../contract/job-records.js'
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
      const replies = await partialReplies(
        shards.map(async ({ shard, passed }) => ({
          shard,
          reply: await queues.run(shard, unreportedScript, [...asked, ...passed]),
        })),
      )
      const deaths = replies.flatMap(({ shard, reply }) =>
        listIn(reply).flatMap((death) => deathIn(shard.queue, bytesIn(death)) ?? []),
      )
      return deaths.sort((a, b) => a.diedAt - b.diedAt || a.number - b.number).slice(0, limit)
    },

    async backlog(names, most) {
      refuseClosed()
      const found = await queues.find(names)
      const shards = found.flatMap(({ layout, shards }) => (layout.kind === 'plain' ? shards : []))
      const replies = await partialReplies(
        shards.map(async (shard) => ({ shard, reply: await queues.run(shard, backlogScript, []) })),
      )
      const parts = replies.flatMap(({ shard: { queue }, reply }) =>
        listIn(reply).map((part) => {
          const [task, count, since] = listIn(part)
          return { queue, task: textIn(task), count: numberIn(count), since: numberIn(since) }
        }),
      )
      return backlogOf(parts, most)
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
 * A death is its task and NUL, its head, its id and NUL, its reason, its error, and the record of the job. Undefined for what
 * cannot be one.
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
  const { payload, codec } = readRecord(death.subarray(errorEnd))
  return {
    ...{ queue, id: text(head + headBytes, idEnd), number, task: text(0, head - 1), payload },
    ...(codec === undefined ? {} : { codec }),
    ...{ attempt, crashes, diedAt },
    ...(errorLength < 0 ? {} : { error: text(reasonEnd, errorEnd) }),
    ...(reasonLength < 0 ? {} : { reason: text(idEnd + 1, reasonEnd) }),
  }
}

/** The backlogs of whole queues, from those of their shards. */
function backlogOf(parts: readonly DeathBacklog[], most: number): DeathBacklog[] {
  const tasks = new Map<string, DeathBacklog>()
  for (const part of parts) {
    const key = `${part.queue} ${part.task}`
    const { count, since } = tasks.get(key) ?? { count: 0, since: part.since }
    tasks.set(key, { ...part, count: Math.min(count + part.count, most), since: Math.min(since, part.since) })
  }
  return [...tasks.values()]
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
 * ascending. Returns deaths of jobs of these tasks, for each the oldest first.
 */
const unreportedScript = deathScript(
  'deaths-unreported',
  String.raw`
local found, passed, last = {}, {}, 2 + ARGV[2]
for i = last + 1, #ARGV, 2 do
  passed[ARGV[i]] = passed[ARGV[i]] or {}
  table.insert(passed[ARGV[i]], tonumber(ARGV[i + 1]))
end
for i = 3, last do
  local head, left = ARGV[i] .. '\0', tonumber(ARGV[1])
  local function take(from, to)
    if left == 0 then return end
    for _, death in ipairs(call('ZRANGE', DEATHS, from, to, 'BYLEX', 'LIMIT', 0, left)) do
      found[#found + 1], left = death, left - 1
    end
  end
  local from = '[' .. head
  for _, n in ipairs(passed[ARGV[i]] or {}) do
    take(from, '(' .. head .. pack('>I7', n))
    from = '[' .. head .. pack('>I7', n + 1)
  end
  take(from, '(' .. ARGV[i] .. '\1')
end
return found
`,
  { readOnly: true },
)

/**
 * Returns for each task with deaths the task, how many they are, and the instant of the first. A death that is damaged is
 * passed over: `fsck` names it.
 */
const backlogScript = deathScript(
  'deaths-backlog',
  String.raw`
local found, from = {}, '-'
for _ = 1, ${tasksInBacklog} do
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
  if string.match(death, '^%Z*', #head + ${headBytes + 1}) == ARGV[3] then call('ZREM', DEATHS, death) end
end
`,
  { whenFull: true },
)
