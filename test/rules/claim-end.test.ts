/** The end of a claim: what becomes of a job by the way in which it was settled. */
import { describe, expect, it } from 'vitest'
import type { SettleItem } from '#src/stores/contract/settle.js'
import { afterFailure, afterSettle } from '#src/stores/rules/claim-end.js'

const key = { queue: 'mails', id: 'a', fence: 7 }
const job = { attempt: 2, crashes: 1, error: 'old', reason: 'before', cancelRequested: false }
const cancelling = { ...job, cancelRequested: true }
const itself = (text: string | undefined) => text

type Item = SettleItem extends infer One ? (One extends SettleItem ? Omit<One, keyof typeof key> : never) : never
const ends: readonly (readonly [what: string, item: Item, isOrdered: boolean, end: object, ifCancelling: object])[] = [
  [
    'is completed',
    { kind: 'complete' },
    false,
    { becomes: 'completed', attempt: 2, error: 'old', reason: undefined },
    { becomes: 'completed' },
  ],
  [
    'is completed with a result',
    { kind: 'complete', result: {} },
    false,
    { becomes: 'kept', reason: undefined },
    { becomes: 'kept' },
  ],
  [
    'fails',
    { kind: 'retry', delayMs: 5, error: 'new' },
    false,
    { becomes: 'delayed', attempt: 3, error: 'new', reason: 'before' },
    { becomes: 'cancelled', attempt: 3, error: 'new', reason: 'before' },
  ],
  ['fails without an error', { kind: 'retry', delayMs: 0 }, true, { becomes: 'delayed', error: undefined }, {}],
  [
    'fails for the last time',
    { kind: 'retry', delayMs: 0, last: true, reason: 'failed' },
    false,
    { becomes: 'exhausted', attempt: 3 },
    { becomes: 'exhausted' },
  ],
  [
    'fails for the last time in an ordered queue',
    { kind: 'retry', delayMs: 0, last: true, reason: 'failed' },
    true,
    { becomes: 'exhausted' },
    { becomes: 'cancelled' },
  ],
  [
    'is released',
    { kind: 'release', delayMs: 0 },
    false,
    { becomes: 'returned', attempt: 2, crashes: 1, error: 'old', reason: 'before' },
    { becomes: 'cancelled', attempt: 2 },
  ],
  [
    'is released for later, with a cause',
    { kind: 'release', delayMs: 1, error: 'busy' },
    false,
    { becomes: 'delayed', attempt: 2, crashes: 0, error: 'busy' },
    { becomes: 'cancelled', crashes: 1, error: 'busy' },
  ],
  [
    'waits for a signal',
    { kind: 'wait', signal: 'go' },
    false,
    { becomes: 'waiting', attempt: 2, crashes: 0, error: 'old', reason: 'before' },
    { becomes: 'cancelled', crashes: 1 },
  ],
  [
    'is buried',
    { kind: 'bury', reason: 'no use' },
    false,
    { becomes: 'dead', attempt: 2, error: 'old', reason: 'no use' },
    { becomes: 'dead', reason: 'no use' },
  ],
  [
    'is cancelled',
    { kind: 'cancel', reason: 'late' },
    false,
    { becomes: 'cancelled', error: 'old', reason: 'late' },
    { becomes: 'cancelled', reason: 'before' },
  ],
]

describe('a job', () => {
  it.each(ends)('that %s', (_, item, isOrdered, end, ifCancelling) => {
    const settled = { ...key, ...item } as SettleItem
    expect(afterSettle(settled, job, isOrdered, itself)).toMatchObject(end)
    expect(afterSettle(settled, cancelling, isOrdered, itself)).toMatchObject(ifCancelling)
  })

  it('whose cancellation was requested without a reason has that of its settle', () => {
    const settled: SettleItem = { ...key, kind: 'cancel', reason: 'late' }
    expect(afterSettle(settled, { ...cancelling, reason: null }, false, (text) => text ?? null)).toMatchObject({
      reason: 'late',
    })
  })

  it('that an operator lets fail counts an attempt, with texts as the store keeps them', () => {
    expect(afterFailure({ error: 'stop' }, job, false, (text) => `<${text}>`)).toEqual({
      ...{ becomes: 'delayed', attempt: 3, crashes: 1, error: '<stop>', reason: 'before' },
    })
  })
})
