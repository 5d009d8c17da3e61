import { defineTask, millrace } from 'millrace'
import { describe, expect, it } from 'vitest'
import { testMill } from '../test-mill.js'

const name = 'mail'

describe('an unknown option', () => {
  it('is refused with a list of the known ones', () => {
    const wrong = { store: 'memory:', taks: [] } as never
    expect(() => millrace(wrong)).toThrow(
      /taks: is not an option; check its spelling: there are store, namespace, .*tasks/,
    )
  })

  it.each([
    ['attempts', /attempts: is not an option; .* is here retry: \{ max \} of the task/],
    ['removeOnComplete', /is here retention: \{ results \} of the queue/],
    ['concurrency', /is here worker: \{ concurrency \} of the mill/],
    ['repeat', /is here schedules of the mill/],
    ['timeout', /is here timeLimit of the task/],
    ['ordered', /is here a task made by defineOrderedTask\(\)/],
  ])('of another queue library is refused with its name here: %s', (option, message) => {
    expect(() => defineTask({ name, [option]: 5 })).toThrow(message)
  })

  it.each<[string, object, RegExp]>([
    ['the mill, in a queue', { queues: { q: { idempotency: '1d' } } }, /idempotency: .*\. It is an option of the mill/],
    ['a task, in a queue', { queues: { q: { retry: { max: 1 } } } }, /retry: .*\. It is an option of a task/],
    ['a queue, in the mill', { throttle: {} }, /throttle: .*\. It is an option of a queue/],
    ['a throttle, by another name', { queues: { q: { throttle: { max: 1 } } } }, /max is here limit of a throttle/],
  ])('of ours in the wrong place is refused with its place: of %s', (_, options, message) => {
    expect(() => millrace({ store: 'memory:', ...options })).toThrow(message)
  })

  it('of an enqueue is refused too', async () => {
    const task = defineTask({ name })
    const mill = testMill({ tasks: [task] })
    await expect(mill.enqueue(task, 1, { jobId: 'a' } as never)).rejects.toThrow(
      /'jobId' is not an option of enqueue; known are id, .*\. What others call jobId is here id/,
    )
  })

  it('with only a typo gets a spelling suggestion and no hint', () => {
    expect(() => defineTask({ name, toString: 5, timelimit: 5 } as never)).not.toThrow(/What others call/)
  })
})
