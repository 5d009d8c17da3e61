/** One of the eight processes of a run under a throttle: its `Date` is wrong, and it claims when it is ordered to. */

import { join } from 'node:path'

const [how = '', skewMs = '0'] = process.argv.slice(2)
const skew = Number(skewMs)
const RightDate = Date
// Before Millrace is loaded, so that every question for the host's time gets a wrong answer.
globalThis.Date = class extends RightDate {
  constructor(...args: [] | [number]) {
    if (args.length === 0) super(RightDate.now() + skew)
    else super(...args)
  }
  static override now(): number {
    return RightDate.now() + skew
  }
} as DateConstructor

const { storeOf } = (await import(
  join(import.meta.dirname, 'throttle-store.ts')
)) as typeof import('./throttle-store.js')
const { store, setNow } = storeOf(JSON.parse(how))

export interface ClaimOrder {
  readonly n: number
  readonly queue: string
  readonly limit: number
  readonly now: number
}

process.on('message', async ({ n, queue, limit, now }: ClaimOrder) => {
  setNow(now)
  const { claims } = await store.claim([{ queue, limit }], { worker: `claimant-${process.pid}`, leaseMs: 86_400_000 })
  await store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' as const })))
  process.send!({ n, groups: claims.map(({ group = '' }) => group) })
})
process.on('disconnect', () => void store.close().then(() => process.exit()))
process.send!('ready')
