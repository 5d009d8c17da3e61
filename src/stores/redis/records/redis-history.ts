/** The history of a Redis store: one small hash for the minutes of an hour, and one for the hours of a day. */

import type { History, HistoryEntry, HistoryPoint, HistorySpan, HistoryStep } from '../../contract/history.js'
import {
  countNumbers,
  countsLength,
  gaugeNumbers,
  historyKeptMs,
  oldestSlotAt,
  pointOf,
  stepMs,
} from '../../rules/history-slots.js'
import type { RedisClient } from '../client/redis-client.js'
import { listIn, numberIn, rowsIn } from '../client/redis-reply.js'
import { redisScript } from '../client/redis-script.js'
import { type HistoryKey, historyKey } from '../redis-keys.js'

const dayMs = 24 * stepMs.hour
/** For each step the key of its slots, and the length of time that one key covers. */
const keysOf: Readonly<Record<HistoryStep, readonly [key: HistoryKey, spanMs: number]>> = {
  minute: ['minutes', stepMs.hour],
  hour: ['hours', dayMs],
}
/** The most hashes that one script call reads. */
const mostPerRead = 24

/** `refuseClosed` throws `ClosedError`. */
export function redisHistory(client: RedisClient, namespace: string, refuseClosed: () => void): History {
  /** The hour of the latest counts. The next ones are usually of the same hour. */
  let lastHour = 0

  async function add({ queue, agoMs, counts, gauges }: HistoryEntry): Promise<void> {
    const numbers = [...countNumbers(counts), ...gaugeNumbers(gauges)]
    const kept = [historyKeptMs.minute, historyKeptMs.hour]
    for (let hour: number | undefined = lastHour; hour !== undefined; ) {
      const keys = [historyKey(namespace, queue, 'minutes', hour), historyKey(namespace, queue, 'hours', dayOf(hour))]
      const args = [hour, Math.round(agoMs), ...kept, ...numbers].map(String)
      const other = await client.run(addHistoryScript, keys, args)
      hour = other === null ? undefined : numberIn(other)
      if (hour !== undefined) lastHour = hour
    }
  }

  async function read(queue: string, { step, fromAt, toAt }: HistorySpan): Promise<HistoryPoint[]> {
    const [key, spanMs] = keysOf[step]
    const first = Math.floor(fromAt / spanMs)
    const numbers = Array.from({ length: Math.max(0, Math.ceil(toAt / spanMs) - first) }, (_, i) => first + i)
    const parts = Array.from({ length: Math.ceil(numbers.length / mostPerRead) }, (_, i) =>
      numbers.slice(i * mostPerRead, (i + 1) * mostPerRead),
    )
    const points = await Promise.all(
      parts.map(async (part) => {
        const keys = part.map((number) => historyKey(namespace, queue, key, number))
        const [now, ...hashes] = listIn(await client.run(readHistoryScript, keys, []))
        const oldest = Math.max(fromAt, oldestSlotAt(step, numberIn(now)))
        return hashes.flatMap((slots, i) =>
          rowsIn(slots, 2)
            .map(([field, values]) => {
              return pointOf(part[i]! * spanMs + numberIn(field) * stepMs[step], listIn(values).map(numberIn))
            })
            .filter(({ at }) => at >= oldest && at < toAt),
        )
      }),
    )
    return points.flat().sort((a, b) => a.at - b.at)
  }

  return {
    async add(entries) {
      refuseClosed()
      await Promise.all(entries.map(add))
    },
    async read(queues, span) {
      refuseClosed()
      return Promise.all(queues.map((queue) => read(queue, span)))
    },
  }
}

function dayOf(hour: number): number {
  return Math.floor(hour / 24)
}

const clockLua = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`

/**
 * KEYS: the minutes of one hour, the hours of its day.
 * ARGV: that hour, counted since 1970; ms since the counts were taken; for minutes and for hours, how many ms they are
 * kept; counts, and gauges or none.
 * Returns nil, or the hour in which the counts were taken if that is another: call again with its keys. A field is a
 * minute or an hour within its key. Its value is counts and gauges in msgpack, one after the other. A key expires when
 * the last of its slots is too old.
 */
const addLua = `${clockLua}
local at = math.floor((now - ARGV[2]) / 60000)
local hour = math.floor(at / 60)
if hour ~= tonumber(ARGV[1]) then return hour end
local function add(key, field, span, from, kept)
  local left = math.ceil((from * span + kept - now) / 1000)
  if left <= 0 then return end
  local before = redis.call('HGET', key, field)
  local sums = before and { cmsgpack.unpack(before) } or {}
  for i = 5, #ARGV do
    local n = i - 4
    sums[n] = (n <= ${countsLength} and sums[n] or 0) + ARGV[i]
  end
  redis.call('HSET', key, field, cmsgpack.pack(unpack(sums)))
  redis.call('EXPIRE', key, left)
end
add(KEYS[1], at % 60, 60000, (hour + 1) * 60, tonumber(ARGV[3]))
add(KEYS[2], hour % 24, 3600000, (math.floor(hour / 24) + 1) * 24, tonumber(ARGV[4]))
return false
`

/**
 * KEYS: hashes of one queue, as above. Returns the instant in ms, and for each hash its fields, each followed by a list
 * of its numbers.
 */
const readLua = `${clockLua}
local found = { now }
for i = 1, #KEYS do
  local slots = redis.call('HGETALL', KEYS[i])
  for n = 2, #slots, 2 do slots[n] = { cmsgpack.unpack(slots[n]) } end
  found[i + 1] = slots
end
return found
`

/** The scripts of a queue's history: one adds counts to a minute and its hour, one reads points. */
// Counts take hardly any memory, and calls that free memory are counted too.
const addHistoryScript = redisScript('add-history', addLua, { whenFull: true })
const readHistoryScript = redisScript('read-history', readLua, { readOnly: true })
