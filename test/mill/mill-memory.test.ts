import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { scriptedTask } from '../scripted-task.js'
import { testMill } from '../test-mill.js'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Whether everything has been collected; some of it only in a later turn of the loop. */
async function areCollected(refs: readonly WeakRef<object>[]): Promise<boolean> {
  for (let turns = 0; turns < 20; turns += 1) {
    await new Promise(setImmediate)
    collectGarbage()
    if (refs.every((ref) => ref.deref() === undefined)) return true
  }
  return false
}

describe('a mill forgets', () => {
  it('closed throttled queues', async () => {
    const m = testMill()
    const used = async () => {
      const queue = m.throttledQueue('slow', { limit: 1, window: '1m' })
      await queue.push('item')
      expect(await queue.pop()).toBeDefined()
      await queue.close()
      return new WeakRef<object>(queue)
    }

    expect(await areCollected([await used(), await used()])).toBe(true)
  })

  it('stopped workers, whether they were started or not', async () => {
    const m = testMill({ tasks: [scriptedTask()] })
    const used = async (isStarted: boolean) => {
      const worker = m.worker()
      if (isStarted) await worker.start()
      await worker.stop()
      return new WeakRef<object>(worker)
    }

    expect(await areCollected([await used(true), await used(false)])).toBe(true)
  })
})
