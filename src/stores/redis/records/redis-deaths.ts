/** The deaths of jobs in a Redis store that nobody was told of. */

import type { Deaths, UntoldDeath } from '../../contract/job-records.js'
import { bytesIn, listIn } from '../client/redis-reply.js'
import type { ShardScript } from '../client/redis-script.js'
import { readNumber, readRecord, utf8 } from '../format/redis-record.js'
import { shardScript, withJobs } from '../lua/prelude.js'
import { guard } from '../lua/script-kinds.js'
import { shardHolding } from '../redis-layout.js'
import { partialReplies } from '../shards/redis-damage.js'
import type { RedisQueues } from '../shards/redis-queues.js'

/** Of a death, before its task: number 7, instant 6, attempt 3, crashes 2, lengths of reason and error + 1, or 0, 4 each. */
const headBytes = 26

/** `refuseClosed` throws `ClosedError`. */
export function redisDeaths(queues: RedisQueues, refuseClosed: () => void): Deaths {
  return {
    async untold(names, tasks, limit) {
      refuseClosed()
      const found = await queues.find(names)
      const shards = found.flatMap(({ layout, shards }) => (layout.kind === 'plain' ? shards : []))
      const args = [String(limit), ...tasks]
      // Deaths on a server that is away must not keep back the others.
      const replies = await partialReplies(
        shards.map(async (shard) => ({ shard, reply: await queues.run(shard, untoldScript, args) })),
      )
      const deaths = replies.flatMap(({ shard, reply }) =>
        listIn(reply).map((death) => deathIn(shard.queue, bytesIn(death))),
      )
      return deaths.sort((a, b) => a.diedAt - b.diedAt || a.number - b.number).slice(0, limit)
    },

    async told(name, deaths) {
      refuseClosed()
      const [queue] = await queues.find([name])
      await Promise.all(
        deaths.map(({ id, number }) => queues.run(shardHolding(queue!, id), toldScript, [String(number), id])),
      )
    },
  }
}

/** A death is its head, its task and NUL, its id and NUL, its reason, its error, and the record of the job. */
export function deathIn(queue: string, death: Buffer): UntoldDeath {
  const number = readNumber(death, 0, 7)
  const [diedAt, attempt, crashes] = [readNumber(death, 7, 6), readNumber(death, 13, 3), readNumber(death, 16, 2)]
  const [reasonLength, errorLength] = [readNumber(death, 18, 4) - 1, readNumber(death, 22, 4) - 1]
  const taskEnd = death.indexOf(0, headBytes)
  const idEnd = death.indexOf(0, taskEnd + 1)
  const reasonEnd = idEnd + 1 + Math.max(0, reasonLength)
  const errorEnd = reasonEnd + Math.max(0, errorLength)
  const text = (from: number, to: number) => utf8(death.toString('latin1', from, to))
  const { payload, codec } = readRecord(death.subarray(errorEnd))
  return {
    ...{ queue, id: text(taskEnd + 1, idEnd), number, task: text(headBytes, taskEnd), payload },
    ...(codec === undefined ? {} : { codec }),
    ...{ attempt, crashes, diedAt },
    ...(errorLength < 0 ? {} : { error: text(reasonEnd, errorEnd) }),
    ...(reasonLength < 0 ? {} : { reason: text(idEnd + 1, reasonEnd) }),
  }
}

/** KEYS: those of one shard of a plain queue. Refuses `unknown`. */
function deathScript(
  name: string,
  text: string,
  flags: { readonly readOnly: true } | { readonly whenFull: true },
): ShardScript {
  return shardScript(name, 'plain', () => withJobs(`${guard}${text}`), flags)
}

/** ARGV: how many, then the tasks. Returns deaths of jobs of these tasks, the oldest first. */
const untoldScript = deathScript(
  'deaths-untold',
  `
local most, tasks, found, from, some = tonumber(ARGV[1]), {}, {}, '-inf', nil
for i = 2, #ARGV do tasks[ARGV[i]] = true end
repeat
  some = call('ZRANGE', DEATHS, from, '+inf', 'BYSCORE', 'LIMIT', 0, 20)
  for _, death in ipairs(some) do
    from = '(' .. string.format('%d', (unpackn('>I7', death)))
    if tasks[string.match(death, '^%Z*', ${headBytes + 1})] and #found < most then found[#found + 1] = death end
  end
until #some < 20 or #found >= most
return found
`,
  { readOnly: true },
)

/** ARGV: the number of a death, and the id of its job. Removes it. */
const toldScript = deathScript(
  'deaths-told',
  `
for _, death in ipairs(call('ZRANGE', DEATHS, ARGV[1], ARGV[1], 'BYSCORE')) do
  if string.match(death, '^%Z*%z(%Z*)', ${headBytes + 1}) == ARGV[2] then call('ZREM', DEATHS, death) end
end
`,
  { whenFull: true },
)
