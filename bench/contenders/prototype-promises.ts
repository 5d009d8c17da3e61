/**
 * The prototype with the least that some promises of Millrace need on a server, each step with those before it. It says
 * how much of the distance to the prototype is their price, whoever writes the scripts.
 */

import { type OpenContender, type PromiseStep, promiseSteps } from './contender.js'
import { type PrototypeForm, prototypeOf } from './prototype-redis.js'

export const promiseTitles: Readonly<Record<PromiseStep, string>> = {
  ids: 'ids that no other process makes, of 26 characters',
  order: 'a job knows its place, its moment and its task, whatever the clock does',
  fences: 'a claim has a fence, its time and its worker; ended leases are looked for, completed jobs counted',
  calls: 'a call that is sent again changes nothing',
}

const keys = ['order', 'text', 'leases', 'claims', 'calls', 'call order', 'state'] as const
const [order, text, leases, claims, calls, callOrder, state] = keys.map((_, i) => `KEYS[${i + 1}]`)
const worker = 'worker-on-a-host-with-a-name'
const task = '@blank'
/** Trips whose calls are remembered. */
const remembered = 40

const clock = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`

const placed = `
local last = redis.call('HMGET', ${state}, 'seq', 'stamp')
local seq, stamp = tonumber(last[1] or 0), math.max(tonumber(last[2] or 0), now * 1000)
for i = 2, #ARGV, 2 do
  local n = i / 2
  local place = struct.pack('>I7I6', stamp + n, seq + n)
  ids[n], listed[n] = ARGV[i], place .. ARGV[i]
  records[i - 1], records[i] = ARGV[i], 'l' .. place .. '${task}\\0' .. ARGV[i + 1]
end
redis.call('HSET', ${state}, 'seq', seq + #ids, 'stamp', stamp + #ids)
redis.call('RPUSH', ${order}, unpack(listed))
redis.call('HSET', ${text}, unpack(records))`

const unplaced = `
for i = 2, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
redis.call('RPUSH', ${order}, unpack(ids))
redis.call('HSET', ${text}, unpack(ARGV, 2))`

/** The calls of a trip are one entry, under the id of the first. */
const rememberedCalls = `
local told = struct.pack('>I6I2', now, ARGV[1]) .. string.rep('a,', #ids)
if tonumber(ARGV[1]) > 1 then told = told .. '\\0' .. table.concat(ids, '\\0') end
redis.call('HSET', ${calls}, ids[1], told)
if redis.call('RPUSH', ${callOrder}, ids[1]) > ${remembered} then
  redis.call('HDEL', ${calls}, redis.call('LPOP', ${callOrder}))
end`

const acked = `
if #ARGV > 3 then
  redis.call('HDEL', ${text}, unpack(ARGV, 4))
  redis.call('ZREM', ${leases}, unpack(ARGV, 4))
end`

const ackedByFence = `
if #ARGV > 3 then
  local held, ended = redis.call('HMGET', ${claims}, unpack(ARGV, 4)), {}
  for i = 4, #ARGV do
    local claim = held[i - 3]
    if claim and string.sub(claim, 1, 7) == ARGV[3] then ended[#ended + 1] = ARGV[i] end
  end
  if #ended > 0 then
    redis.call('HDEL', ${text}, unpack(ended))
    redis.call('HDEL', ${claims}, unpack(ended))
    redis.call('HINCRBY', ${state}, 'completed', #ended)
  end
  if #ended == #ARGV - 3 then redis.call('ZREM', ${leases}, ARGV[3]) end
end
if redis.call('ZRANGEBYSCORE', ${leases}, '-inf', now, 'LIMIT', 0, 1)[1] then return redis.error_reply('ERR a lease has ended') end`

/** `idOf`: the id in an entry of the order. */
const taken = (idOf: string) => `
local entries = redis.call('LPOP', ${order}, ARGV[1])
if not entries then return {} end
local count, answer = #entries, {}
for i = 1, count do answer[i] = ${idOf} end
local texts = redis.call('HMGET', ${text}, unpack(answer))`

const leased = `
local leases = {}
for i = 1, count do leases[2 * i - 1], leases[2 * i] = ARGV[2], answer[i] end
redis.call('ZADD', ${leases}, unpack(leases))
local token = ''`

/** All jobs of a fetch share a fence and a lease. */
const fenced = `
local token = struct.pack('>I7', redis.call('HINCRBY', ${state}, 'fence', 1))
local head = token .. struct.pack('>I6', now) .. string.char(${worker.length}) .. '${worker}'
local made = {}
for i = 1, count do made[2 * i - 1], made[2 * i] = answer[i], head .. entries[i] end
redis.call('HSET', ${claims}, unpack(made))
redis.call('ZADD', ${leases}, ARGV[2], token)`

const answered = (textOf: string) => `
for i = 1, count do answer[count + i] = ${textOf} end
answer[2 * count + 1] = token
return answer`

/** A random beginning, as ids of Millrace have one for each process, and a number. */
function ids(): (n: number) => string {
  const beginning = `01${Math.random().toString(36).slice(2).padEnd(16, '0').slice(0, 16)}`
  return (n) => beginning + String(n).padStart(8, '0')
}

function formOf(steps: ReadonlySet<PromiseStep>): PrototypeForm {
  const [hasOrder, hasFences, hasCalls] = (['order', 'fences', 'calls'] as const).map((step) => steps.has(step))
  return {
    keys,
    add: [
      hasOrder ? clock : '',
      'local ids, listed, records = {}, {}, {}',
      hasOrder ? placed : unplaced,
      hasCalls ? rememberedCalls : '',
      'return #ids',
    ].join('\n'),
    fetch: [
      hasOrder ? clock : '',
      hasFences ? ackedByFence : acked,
      taken(hasOrder ? 'string.sub(entries[i], 14)' : 'entries[i]'),
      hasFences ? fenced : leased,
      answered(hasOrder ? `string.match(texts[i], '%z(.*)', 15)` : 'texts[i]'),
    ].join('\n'),
    id: ids(),
  }
}

/** The prototype with this step and all before it. */
export function openStep(step: PromiseStep): OpenContender {
  return prototypeOf(formOf(new Set(promiseSteps.slice(0, promiseSteps.indexOf(step) + 1))))
}
