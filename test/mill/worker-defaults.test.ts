import { type MillOptions, millrace } from 'millrace'
import { describe, expect, it } from 'vitest'
import { nextEvent } from '../next-event.js'
import { scriptedTask } from '../scripted-task.js'
import { testMill } from '../test-mill.js'

describe('what a configuration sets for its workers', () => {
  const tasks = [scriptedTask()]
  const queues = { default: {}, other: {} }

  it('applies to every worker unless the worker overrides it', async () => {
    const seen: string[][] = []
    const selector = (candidates: readonly { name: string }[]) => {
      seen.push(candidates.map(({ name }) => name))
      return candidates.map(({ name }) => name)
    }
    const m = testMill({ tasks, queues, worker: { queues: ['default'], concurrency: 3, selector, maxJobs: 1 } })

    expect(m.worker().status().concurrency).toBe(3)
    expect(m.worker({ concurrency: undefined! }).status().concurrency).toBe(3)
    expect(m.worker({ concurrency: 7 }).status().concurrency).toBe(7)
    expect(m.worker().queues).toEqual(['default'])
    expect(m.worker({ queues: ['other'] }).queues).toEqual(['other'])
    await m.enqueue(tasks[0]!, { steps: ['ok'] })
    const recycled = nextEvent(m, 'worker.recycling')
    await m.worker().start()
    expect(await recycled).toMatchObject({ reason: 'max-jobs' })
    expect(seen[0]).toEqual(['default'])
  })

  it.each([
    [{ selector: 'lottry' }, 'worker.selector: must be one of'],
    [{ queues: ['default', 'nowhere'] }, "worker.queues: names queue 'nowhere', which is not declared"],
    [{ concurrency: 0 }, 'worker.concurrency'],
    [{ shardsOf: { member: 2, members: 2 } }, 'worker.shardsOf'],
    [{ grace: '1m' }, 'worker.grace'],
  ])('is checked with the configuration: %j', (worker, message) => {
    const options = { store: 'memory:', tasks, queues, worker } as unknown as MillOptions

    expect(() => millrace(options)).toThrow(message)
  })
})
