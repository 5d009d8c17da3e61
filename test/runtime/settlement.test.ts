import { jsonCodec } from 'millrace'
import type { Claim } from 'millrace/store'
import { expect, it } from 'vitest'
import { Packing } from '#src/core/packing/packing.js'
import { settlementOf } from '#src/runtime/run/settlement.js'

const claim: Claim = {
  queue: 'q',
  id: 'a',
  task: 't',
  payload: '1',
  priority: 0,
  attempt: 1,
  crashes: 0,
  fence: 7,
  createdAt: 0,
  runAt: 0,
}

function settled(of: Partial<Claim>, holdMs: number, canHold = true) {
  const rules = {
    packing: new Packing(jsonCodec),
    formatError: String,
    maxResultBytes: 1,
    maxDelayMs: 60_000,
    canHold,
    now: () => 0,
    resultDropped: () => {},
  }
  return settlementOf({ ...claim, ...of }, { kind: 'release', delayMs: 0, reason: 'throttled', holdMs }, {}, rules)
}

const released = { queue: 'q', id: 'a', fence: 7, kind: 'release' }

it('a job that asks for a pause holds its group, or else its queue, at most as long as the store allows', () => {
  expect(settled({ group: 'g' }, 5_000)).toEqual({ ...released, delayMs: 0, hold: { of: 'group', forMs: 5_000 } })
  expect(settled({}, 5_000)).toEqual({ ...released, delayMs: 0, hold: { of: 'queue', forMs: 5_000 } })
  expect(settled({}, 90_000)).toEqual({ ...released, delayMs: 0, hold: { of: 'queue', forMs: 60_000 } })
})

it('a job that asks for a pause waits alone in a store without holds: otherwise it would run again at once', () => {
  expect(settled({ group: 'g' }, 5_000, false)).toEqual({ ...released, delayMs: 5_000 })
})
