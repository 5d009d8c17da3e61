import { describe, expect, it } from 'vitest'
import { scriptedTask } from '../../scripted-task.js'
import { storeKinds, testMill } from '../../test-mill.js'

describe.each(storeKinds)('the drain of a queue, on %s', (kind) => {
  it('reports what is left, and can be aborted while the queue keeps refusing jobs', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    await m.enqueue(task, { steps: ['ok'] })
    const over = new AbortController()
    const left: unknown[] = []
    const drained = m.queue('default').drain({
      signal: over.signal,
      onProgress: (told) => {
        left.push(told)
        over.abort(new Error('enough'))
      },
    })

    await expect(drained).rejects.toThrow('enough')
    expect(left).toEqual([{ waiting: 1, running: 0 }])
    await expect(m.enqueue(task, { steps: ['ok'] })).rejects.toMatchObject({ code: 'queue-draining' })
  })

  it('resolves when nothing is left', async () => {
    const task = scriptedTask()
    const m = testMill({ tasks: [task] }, kind)
    await m.enqueue(task, { steps: ['ok'] })
    const left: unknown[] = []
    const drained = m.queue('default').drain({ onProgress: (told) => left.push(told) })
    await m.worker().start()
    await drained

    expect(left.at(-1)).toEqual({ waiting: 0, running: 0 })
  })
})
