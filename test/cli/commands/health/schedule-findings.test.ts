/** What `doctor` says about schedules that the current key has not sealed. */

import { defineTask, type MillOptions } from 'millrace'
import { describe, expect, it } from 'vitest'
import { scheduleFindings } from '#src/cli/commands/queues/schedule-findings.js'
import { MemoryData, MemoryStore } from '#src/stores/memory/memory-store.js'
import { testMillOn } from '../../../test-mill.js'

const [a, b] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString('base64')) as [string, string]
const report = defineTask({ name: 'report', run() {} })

/** The findings of a mill with this seal, about schedules that a mill with another has written. */
async function findings(
  seal: MillOptions['seal'],
  written: MillOptions['seal'] = { current: 'a', keys: { a } },
  names = ['tenant'],
) {
  const data = new MemoryData()
  const mill = (one: MillOptions['seal'], more: Partial<MillOptions> = {}) =>
    testMillOn(new MemoryStore(undefined, data), { tasks: [report], ...more, ...(one && { seal: one }) })
  const before = mill(written, { schedules: { declared: { every: '1h', task: report } } })
  await before.schedules.reconcile()
  for (const name of names) await before.schedules.set(name, { every: '1h', task: report })
  const looking = mill(seal)
  return (await scheduleFindings(looking, (await looking.storedQueues()) ?? [])).map(
    ({ level, what, text }) => `${level} ${what}: ${text}`,
  )
}

describe('doctor on schedules', () => {
  it('names those that another key has sealed, and how each is sealed anew', async () => {
    expect(await findings({ current: 'b', keys: { a, b } })).toEqual([
      "warning schedules: schedule 'declared' is sealed by key 'a', and `seal.current` is 'b': start a worker, which stores it anew, before you remove that key.",
      "warning schedules: schedule 'tenant' is sealed by key 'a', and `seal.current` is 'b': set it anew by `mill.schedules.set()` before you remove that key.",
    ])
  })

  it('names those whose key is missing', async () => {
    for (const seal of [{ current: 'b', keys: { b } }, undefined])
      expect((await findings(seal))[1]).toMatch(
        /'tenant' is sealed by key 'a', which this configuration lacks: .* set the schedule anew\.$/,
      )
  })

  it('names ten of them, and counts the others', async () => {
    const names = Array.from({ length: 12 }, (_, i) => `s${i}`)
    const found = await findings({ current: 'b', keys: { a, b } }, undefined, names)
    expect(found).toHaveLength(11)
    expect(found.at(-1)).toBe('warning schedules: 3 more schedules are not sealed as they would be now.')
  })

  it('names those that are not sealed yet, which `only` would refuse', async () => {
    expect(await findings({ current: 'a', keys: { a } }, { keys: { a } })).toEqual([
      "warning schedules: schedule 'declared' is not sealed, and `seal.current` is 'a': start a worker, which stores it anew, before you set `seal.only`, which refuses its jobs.",
      "warning schedules: schedule 'tenant' is not sealed, and `seal.current` is 'a': set it anew by `mill.schedules.set()` before you set `seal.only`, which refuses its jobs.",
    ])
  })

  it('names those that are sealed although nothing is any more', async () => {
    expect((await findings({ keys: { a } }))[1]).toBe(
      "warning schedules: schedule 'tenant' is sealed by key 'a', and nothing is sealed now: set it anew by `mill.schedules.set()` before you remove that key.",
    )
  })

  it('has nothing to say if they are sealed by the current key, or if neither they nor jobs are sealed', async () => {
    expect(await findings({ current: 'a', keys: { a } })).toEqual([])
    expect(await findings({ current: 'a', keys: { a } }, undefined, [])).toEqual([])
    expect(await findings({ keys: { a } }, { keys: { a } })).toEqual([])
    expect(await findings(undefined, { keys: { a } })).toEqual([])
  })
})
