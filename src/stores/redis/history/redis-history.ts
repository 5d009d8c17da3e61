/** The history of a Redis store: the minutes of an hour in one small hash, and the hours of a day in another. */

import type { History, HistoryEntry, HistoryPoint, HistorySpan, HistoryStep } from '../../contract/history.js'
import { countNumbers, gaugeNumbers, historyKeptMs, oldestSlotAt, pointOf, stepMs } from '../../rules/history-slots.js'
import type { RedisClient } from '../client/redis-client.js'
import { listIn, numberIn, rowsIn } from '../client/redis-reply.js'
import { type HistoryKey, historyKey } from '../layout/redis-keys.js'
import { addHistoryScript, readHistoryScript } from './history-scripts.js'

const dayMs = 24 * stepMs.hour
/** For each step the key of its slots, and how long a time one key is for. */
const keysOf: Readonly<Record<HistoryStep, readonly [key: HistoryKey, spanMs: number]>> = {
  minute: ['minutes', stepMs.hour],
  hour: ['hours', dayMs],
}
/** Hashes that one script reads. */
const mostPerRead = 24

/** `refuseClosed` throws `ClosedError`. */
export function redisHistory(client: RedisClient, namespace: string, refuseClosed: () => void): History {
  /** Of the hour for which the latest counts were taken: mostly the next are too. */
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
