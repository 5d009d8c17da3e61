/** The facet `steps` of a Redis store: what running jobs have reached, and the signals that are sent to jobs. */

import type { JobKey } from '../../contract/job-records.js'
import type { ClaimKey } from '../../contract/settle.js'
import type { EntryKind, NewSignal, NewStep, SignalAnswer, StepList, Steps, StoredStep } from '../../contract/steps.js'
import { upkeepLimit } from '../../rules/bounds.js'
import type { RedisArgument, RedisClient, RedisReply } from '../client/redis-client.js'
import { bytesIn, listIn, numberIn, textIn } from '../client/redis-reply.js'
import { refuse, type ScriptFlags, type ShardScript } from '../client/redis-script.js'
import { readPayload, resultBytes } from '../format/redis-job.js'
import { readNumber } from '../format/redis-record.js'
import { sweptQueues } from '../joins/redis-joins.js'
import { renewal } from '../lua/lease-lua.js'
import { shardScript, withJobs } from '../lua/prelude.js'
import { guard } from '../lua/script-kinds.js'
import { isSetBack, setBack } from '../lua/set-back-lua.js'
import { newEntry } from '../lua/steps-lua.js'
import { shardHolding } from '../redis-layout.js'
import { partialReplies } from '../shards/redis-damage.js'
import { type RedisQueues, unlessUnknown } from '../shards/redis-queues.js'

const kinds: Readonly<Record<string, StoredStep['kind']>> = { p: 'step', z: 'sleep', s: 'signal', t: 'timeout' }
const keepAnswers: Readonly<Record<string, 'ok' | 'lost' | 'cancel'>> = { o: 'ok', l: 'lost', c: 'cancel' }
const signalAnswers: Readonly<Record<string, SignalAnswer>> = {
  d: 'delivered',
  k: 'kept',
  s: 'duplicate',
  f: 'full',
  g: 'gone',
}

/** `refuseClosed` throws `ClosedError`. */
export function redisSteps(
  client: RedisClient,
  queues: RedisQueues,
  namespace: string,
  refuseClosed: () => void,
): Steps {
  /** Runs the script on the shard of a job. Undefined for a job of an ordered queue, which has no steps. */
  async function ask(
    { queue: name, id }: JobKey,
    script: ShardScript,
    args: readonly RedisArgument[] = [],
  ): Promise<RedisReply | undefined> {
    refuseClosed()
    const [queue] = await queues.find([name])
    if (queue!.layout.kind !== 'plain') return undefined
    return queues.run(shardHolding(queue!, id), script, [id, ...args])
  }

  return {
    async keep(claim: ClaimKey, step: NewStep, leaseMs: number) {
      const value = step.kind === 'step' ? [resultBytes(step)] : ['', String(Math.ceil(step.forMs))]
      const args = [String(claim.fence), String(Math.ceil(leaseMs)), step.kind === 'step' ? 'p' : 'z', step.name]
      const answer = await ask(claim, keepScript, [...args, ...value])
      return answer === undefined ? 'lost' : keepAnswers[textIn(answer)]!
    },

    async read(job: JobKey): Promise<StepList | undefined> {
      const reply = await ask(job, readScript)
      if (reply === undefined || reply === null) return undefined
      const [now, ...rows] = listIn(reply)
      const steps: StoredStep[] = []
      for (let i = 0; i < rows.length; i += 2) steps.push(stepIn(textIn(rows[i]).slice(1), bytesIn(rows[i + 1])))
      return { now: numberIn(now), steps }
    },

    forget: async (job: JobKey, name: string, of: EntryKind) =>
      (await ask(job, forgetScript, [`${of === 'signal' ? 'g' : 'n'}${name}`])) === 1,

    async signal(job: JobKey, { name, ...data }: NewSignal): Promise<SignalAnswer> {
      const answer = await ask(job, signalScript, [name, resultBytes(data)])
      return answer === undefined ? 'gone' : signalAnswers[textIn(answer)]!
    },

    async sweep(worker: string) {
      refuseClosed()
      const swept = await sweptQueues(client, namespace, worker)
      const found = await Promise.all((swept?.names ?? []).map((name) => unlessUnknown(queues.find([name]))))
      const shards = found.flatMap((queue) => queue?.[0]?.shards ?? []).filter(({ kind }) => kind === 'plain')
      // Jobs on a server that is away must not stop the others.
      const replies = await partialReplies(shards.map((shard) => queues.run(shard, wakeScript, [String(upkeepLimit)])))
      const rows = replies.map((reply) => listIn(reply).map(numberIn))
      return {
        woken: rows.reduce((sum, [woken]) => sum + woken!, 0),
        more: rows.some(([, more]) => more === 1),
      }
    },
  }
}

/** `steps-lua.ts` describes the form of an entry. */
export function stepIn(name: string, entry: Buffer): StoredStep {
  const [at, until] = [readNumber(entry, 5, 6), readNumber(entry, 11, 6)]
  return {
    name,
    kind: kinds[String.fromCharCode(entry[0]!)]!,
    at,
    ...(until === 0 ? {} : { until }),
    ...(entry.length === 17 ? {} : readPayload(entry.subarray(17))),
  }
}

/** KEYS: those of one shard of a plain queue. Refuses `unknown`. */
function stepScript(name: string, text: string, flags?: ScriptFlags): ShardScript {
  return shardScript(name, 'plain', () => withJobs(text, setBack), flags)
}

/**
 * ARGV: id, fence, lease in ms, kind (p step, z sleep), name, value in its stored form; for a sleep its ms.
 * Keeps it unless its name is kept, and renews the lease, which it never shortens. Returns o ok, l lost, c cancel.
 */
const keepScript = stepScript(
  'step-keep',
  `
local form, id, name = call('HMGET', META, 'kind', 'seenAt'), ARGV[1], ARGV[5]
if not form[1] then ${refuse('unknown')} end
if ${isSetBack('form[2]')} then turn_back(form[2]) end
local claim = call('HGET', CLAIMS, id)
if not claim or sub(claim, 1, 7) ~= pack('>I7', tonumber(ARGV[2])) or call('HEXISTS', JOBS, id) == 0 then return 'l' end
call('HSET', META, 'seenAt', now)
${renewal}${newEntry}
local flags = renew(id, claim, now + tonumber(ARGV[3]))
if flags ~= byte(claim, 14) - 64 then call('HSET', CLAIMS, id, with_flags(claim, flags)) end
-- It does not expire any more.
if has(flags, BEATEN) then call('HDEL', NOTES, 'x' .. id) end
local totals, kept = unpack(call('HMGET', STEPS, id, id .. '\\0n' .. name))
if not kept then
  -- A job that has entries is marked.
  if not totals then entries().mark(job(id), true) end
  write_entry(id, totals, ARGV[4], name, ARGV[6], ARGV[7])
end
return has(flags, CANCEL) and 'c' or 'o'
`,
)

/** ARGV: id. Returns now, then of each entry where it is, which has its name behind the first letter, and the entry; nil if the job is gone. */
const readScript = stepScript(
  'step-read',
  `${guard}
local id = ARGV[1]
local j = job(id)
if not j or is_hidden(j) then return false end
local rows = { now }
if not j.steps then return rows end
entries().each(id, function(places)
  local fields = {}
  for i, place in ipairs(places) do fields[i] = id .. '\\0' .. place end
  for i, entry in ipairs(#fields > 0 and call('HMGET', STEPS, unpack(fields)) or {}) do
    if entry then rows[#rows + 1], rows[#rows + 2] = places[i], entry end
  end
end)
return rows
`,
  { readOnly: true },
)

/** ARGV: id, where the entry is. Removes it. Returns 1, or 0 if there is none. */
const forgetScript = stepScript(
  'step-forget',
  `${guard}
local j = job(ARGV[1])
return j and j.steps and not is_hidden(j) and entries().remove(j, ARGV[2]) and 1 or 0
`,
  { whenFull: true },
)

/**
 * ARGV: id, name of the signal, its data in the stored form.
 * Returns d delivered: the job waited for it, and is ready · k kept · s it has one of this name · f full · g gone.
 */
const signalScript = stepScript(
  'signal',
  `${guard}
local j, name, value = job(ARGV[1]), ARGV[2], ARGV[3]
if not j or (j.state == 'c' and not j.claim) or is_hidden(j) then return 'g' end
local before = j.steps and entries().kind(j.id, name)
if before then return before == 's' and 's' or 'g' end
local is_awaited = entries().awaited(j) == name
-- The signal that a job waits for always has room.
if not is_awaited and not entries().has_room(j.id, value) then return 'f' end
entries().add(j, 's', name, value)
if not is_awaited then return 'k' end
entries().wake(j)
return 'd'
`,
)

/**
 * ARGV: the most jobs.
 * Jobs whose wait is over in vain are ready, the oldest first. Returns { how many, whether there are more (1 or 0) }.
 */
const wakeScript = stepScript(
  'signal-sweep',
  `${guard}
local most, woken = tonumber(ARGV[1]), 0
local due = call('ZRANGE', SIGNAL_WAITS, '-inf', now, 'BYSCORE', 'LIMIT', 0, most + 1)
for i = 1, math.min(#due, most) do
  local j = job(sub(due[i], 7))
  local signal = j and j.seq == sub(due[i], 1, 6) and entries().awaited(j)
  if signal then
    entries().add(j, 't', signal, '')
    entries().wake(j)
    woken = woken + 1
  else call('ZREM', SIGNAL_WAITS, due[i]) end
end
return { woken, #due > most and 1 or 0 }
`,
  { whenFull: true },
)
