/** The history of queues for users: the counts of their jobs in each minute or hour. */

import { InvalidArgumentError, UnsupportedByStoreError } from '../../core/errors.js'
import { describe } from '../../core/messages/describe.js'
import { callForms, callOptions } from '../../core/values/call-check.js'
import { instantMistake, parseInstant } from '../../core/values/instant.js'
import type { HistoryPoint, HistorySpan, HistoryStep } from '../../stores/contract/history.js'
import type { Store } from '../../stores/contract/store.js'
import { countsLength, historyKeptMs, historySteps, pointOf, slotAt, stepMs } from '../../stores/rules/history-slots.js'

export interface HistoryOptions {
  /** The length of a point. Default `'minute'`. */
  readonly step?: HistoryStep | undefined
  /** A moment within the first point. Default: 60 points. Minutes are kept for a week, hours for 366 days. */
  readonly from?: Date | string | undefined
  /** The end: the last point begins before this moment. Default: now. */
  readonly to?: Date | string | undefined
}

/** One minute or hour. */
interface QueuePoint extends Omit<HistoryPoint, 'at'> {
  /** When the minute or hour began. */
  readonly at: Date
}

export interface QueueHistory {
  readonly queue: string
  readonly step: HistoryStep
  /** One point for each minute or hour, oldest first, even if nothing happened. */
  readonly points: readonly QueuePoint[]
}

const defaultPoints = 60
const nothing = new Array<number>(countsLength).fill(0)

/**
 * The histories. `now`: of this process, the default for omitted times. Throws `InvalidArgumentError` or
 * `UnsupportedByStoreError`.
 */
export async function queueHistories(
  store: Store,
  queues: readonly string[],
  options: HistoryOptions,
  now: number,
): Promise<QueueHistory[]> {
  const span = spanOf(options, now)
  if (store.history === undefined)
    throw new UnsupportedByStoreError(
      store.traits.name,
      'a history of queues',
      'Use sqlite: or redis:, or a system of your own that hears the events of the mill.',
    )
  const histories = await store.history.read(queues, span)
  return queues.map((queue, i) => ({ queue, step: span.step, points: withoutGaps(histories[i]!, span) }))
}

const checkHistory = callOptions('history', { step: callForms.own, from: callForms.own, to: callForms.own })

function spanOf(options: HistoryOptions, now: number): HistorySpan {
  checkHistory(options)
  const { step = 'minute', from, to } = options
  if (!historySteps.includes(step))
    throw new InvalidArgumentError(
      `history({ step }) must be ${historySteps.map((one) => `'${one}'`).join(' or ')}; got ${describe(step)}.`,
    )
  const toAt = to === undefined ? now + 1 : momentIn(to, 'to')
  const fromAt =
    from === undefined ? slotAt(step, toAt - 1) - (defaultPoints - 1) * stepMs[step] : momentIn(from, 'from')
  if (fromAt >= toAt)
    throw new InvalidArgumentError(
      `history({ from, to }) must name a span of time; from ${new Date(fromAt).toISOString()} to ${new Date(toAt).toISOString()} there is none.`,
    )
  // Nothing older is kept, so a span of decades need not become as many points.
  const oldestAt = Math.max(fromAt, Math.min(now, toAt) - historyKeptMs[step])
  return { step, fromAt: slotAt(step, oldestAt), toAt: Math.min(toAt, now + stepMs[step]) }
}

function momentIn(given: unknown, name: string): number {
  const at = parseInstant(given)
  if (at === undefined)
    throw new InvalidArgumentError(`history({ ${name} }) ${instantMistake(given)}; got ${describe(given)}.`)
  return at
}

function withoutGaps(points: readonly HistoryPoint[], { step, fromAt, toAt }: HistorySpan): QueuePoint[] {
  const known = new Map(points.map((point) => [point.at, point]))
  const count = Math.max(0, Math.ceil((toAt - fromAt) / stepMs[step]))
  return Array.from({ length: count }, (_, i) => {
    const at = fromAt + i * stepMs[step]
    return { ...(known.get(at) ?? pointOf(at, nothing)), at: new Date(at) }
  })
}
