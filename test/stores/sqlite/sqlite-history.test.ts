import { expect, it, onTestFinished } from 'vitest'
import { sqliteHarness } from '#src/store-testing/harness/sqlite-harness.js'
import type { HistoryEntry } from '#src/stores/contract/history.js'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'

const none = { enqueued: 0, started: 0, completed: 0, failed: 0, dead: 0, crashed: 0, cancelled: 0, runMs: 0 }
const entry = (queue: string): HistoryEntry => {
  return { queue, agoMs: 0, counts: { ...none, completed: 1, runTimes: [1, 0, 0, 0, 0, 0, 0] } }
}

it('old rows of the history are deleted by later writes, a limited number each', async () => {
  const harness = await sqliteHarness()
  onTestFinished(() => harness.close())
  const store = await harness.open()
  const openFile = await loadDriver()
  const rows = async (step: number) => {
    const db = openFile(harness.file, { readOnly: true })
    const { count } = db.prepare('SELECT count(*) AS count FROM history WHERE step = ?').get(step) as { count: number }
    db.close()
    return count
  }
  await store.history!.add(Array.from({ length: 250 }, (_, i) => entry(`queue-${i}`)))
  expect([await rows(0), await rows(1)]).toEqual([250, 250])

  await harness.advance(8 * 86_400_000)
  await store.history!.add([entry('mail')])
  expect([await rows(0), await rows(1)]).toEqual([250 - 101 + 1, 251])
  for (let i = 0; i < 2; i += 1) await store.history!.add([entry('mail')])
  expect([await rows(0), await rows(1)]).toEqual([1, 251])
})
