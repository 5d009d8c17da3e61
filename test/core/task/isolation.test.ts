import { describe, expect, it } from 'vitest'
import { defineTask } from '#src/core/task/task.js'

const encode = (options: object = {}) => defineTask({ name: 'encode', isolate: 'process', ...options })

describe('an isolated task', () => {
  it('has defaults of its own: no retry, and a time limit', () => {
    const { isolation, retry, timeLimitMs } = encode()
    expect(isolation).toEqual({ module: undefined, env: undefined, maxHeapBytes: undefined, onSupervisorLoss: 'exit' })
    expect([retry.max, timeLimitMs]).toEqual([0, 60_000])
  })

  it('is retried if it says so', () => {
    expect(encode({ retry: { max: 2 } }).retry.max).toBe(2)
  })

  it.each([
    ['60s', 'exit'],
    ['9m59s', 'exit'],
    ['10m', 'detach'],
    ['3d', 'detach'],
    ['none', 'detach'],
  ])('with a time limit of %s reacts to the loss of its worker by: %s', (timeLimit, onSupervisorLoss) => {
    expect(encode({ timeLimit }).isolation?.onSupervisorLoss).toBe(onSupervisorLoss)
  })

  it('reacts to the loss of its worker as configured', () => {
    expect(encode({ timeLimit: '3d', onSupervisorLoss: 'exit' }).isolation?.onSupervisorLoss).toBe('exit')
    expect(encode({ onSupervisorLoss: 'detach' }).isolation?.onSupervisorLoss).toBe('detach')
  })

  it('may run without a limit, and can set its memory and its variables', () => {
    const { isolation, timeLimitMs } = encode({
      timeLimit: 'none',
      maxHeap: '512MB',
      env: ['API_KEY'],
      module: import.meta.url,
    })
    expect(timeLimitMs).toBe(Number.POSITIVE_INFINITY)
    expect(isolation).toMatchObject({ maxHeapBytes: 536_870_912, env: ['API_KEY'], module: import.meta.url })
  })

  it.each([
    [{ isolate: 'thread' }, /isolate: must be 'process'/],
    [{ module: './tasks.js' }, /module: must be a file URL: `import.meta.url`/],
    [{ env: ['A=B'] }, /env.0: must be the name of an environment variable/],
    [{ maxHeap: 'much' }, /maxHeap: must be a size such as '512MB'/],
    [{ maxHeap: 1_000 }, /maxHeap: must be at least 16 MB/],
    [{ onSupervisorLoss: 'stay' }, /onSupervisorLoss: must be 'detach' or 'exit'/],
    [{ timeLimit: 'never' }, /timeLimit: must be a duration /],
  ])('refuses %o', (options, message) => {
    expect(() => encode(options)).toThrow(message)
  })
})

describe('a task that runs in its worker', () => {
  it('has no isolation, and four retries', () => {
    const { isolation, retry } = defineTask({ name: 'send' })
    expect([isolation, retry.max]).toEqual([undefined, 4])
  })

  it('refuses options that need a process, all at once', () => {
    const options = { name: 'send', timeLimit: 'none', env: ['A'], maxHeap: '64MB', onSupervisorLoss: 'exit' } as const
    expect(() => defineTask(options)).toThrow(
      /timeLimit: must be a duration: only a process can be ended .*\n {2}env: needs isolate: 'process'\n {2}maxHeap: needs .*\n {2}onSupervisorLoss: needs/,
    )
  })
})
