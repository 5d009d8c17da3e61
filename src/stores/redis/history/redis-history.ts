/** The history of a Redis store: one small hash for the minutes of an hour, and one for the hours of a day. */

import type { History, HistoryEntry, HistoryPoint, HistorySpan, HistoryStep } from '../../contract/history.js'
import { countNumbers, gaugeNumbers, historyKeptMs, oldestSlotAt, pointOf, stepMs } from '../../rules/history-slots.js'
import type { RedisClient } from '../client/redis-client.js'
import { listIn, numberIn, rowsIn } from '../client/redis-reply.js'
import { type HistoryKey, historyKey } from '../layout/redis-keys.js'
import { addHistoryScript, readHistoryScript } from './history-scripts.js'

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
