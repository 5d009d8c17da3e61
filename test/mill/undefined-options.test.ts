/** An option that is undefined counts as left out, wherever options are given. */

import { defineOrderedTask, defineTask, millrace } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'
import { queueOptionsSchema } from '#src/core/queue/queue.js'
import { checkOptions, millOptionNames } from '#src/mill/options/mill-options.js'

const store = 'memory:'
const mail = defineTask({ name: 'mail', run: async () => 1 })
/** The same with every one of these options undefined. */
const undefinedOf = (names: Iterable<string>) => Object.fromEntries([...names].map((name) => [name, undefined]))
const made = (options: object) => {
  const mill = millrace({ store, ...options })
  onTestFinished(() => mill.close())
  return mill
}

/** These are usually imported: a job would be stored in clear, in another form, or run without them. */
const imported = ['store', 'codec', 'seal', 'middleware']

describe('an undefined option', () => {
  it('of a mill counts as omitted, unless it is usually imported', () => {
    const names = [...millOptionNames].filter((name) => !imported.includes(name))
    const { queues, schedules } = checked(undefinedOf(names))

    expect(names.length).toBeGreaterThan(12)
    expect({ queues, schedules }).toEqual({ queues: checked({}).queues, schedules: undefined })
  })

  it.each(imported)('of a mill is refused if it is usually imported: %s', (name) => {
    expect(() => made({ [name]: undefined })).toThrow(new RegExp(` ${name}: `))
  })

  it('of a queue counts as omitted, also in its throttle and its retention', () => {
    const names = Object.keys(queueOptionsSchema.entries).filter((name) => name !== 'throttle')
    const throttle = { limit: 1, window: '1s' } as const
    const of = (queue: object) => checked({ queues: { a: queue } }).queues

    expect(of(undefinedOf(names))).toEqual(of({}))
    expect(of({ throttle: { ...throttle, ...undefinedOf(['moderate', 'elastic', 'by', 'scope']) } })).toEqual(
      of({ throttle }),
    )
    expect(of({ retention: { results: { age: undefined, count: 3 }, dead: undefined } })).toEqual(
      of({ retention: { results: { count: 3 } } }),
    )
  })

  it('of a schedule counts as omitted, also in its enqueue options', () => {
    const every = '1m'
    const of = (schedule: object) => checked({ tasks: [mail], schedules: { a: { task: mail, every, ...schedule } } })
    const names = ['cron', 'timeZone', 'input', 'enqueue', 'onMissed', 'overlap', 'jitter', 'from', 'until']

    expect(of(undefinedOf(names)).schedules).toEqual(of({}).schedules)
    const enqueue = undefinedOf(['runAt', 'ifWaiting', 'id', 'priority'])
    expect(() => of({ enqueue })).not.toThrow()
  })

  it('of a task counts as omitted', () => {
    const plain = ['queue', 'input', 'timeLimit', 'slowAfter', 'aliases', 'retry', 'group', 'expiresIn', 'idempotency']
    const more = ['shouldRun', 'onExhausted', 'isolate', 'module', 'env', 'maxHeap', 'onSupervisorLoss', 'batch', 'run']
    const ordered = ['id', 'score', 'group', 'batchSize', 'merge', 'maxPayloads', 'retry', 'onExhausted', 'run']
    const valuesOf = (task: object) =>
      Object.fromEntries(Object.entries(task).filter(([, value]) => typeof value !== 'function' && value !== undefined))
    const same = (one: object, other: object) =>
      expect(JSON.stringify(valuesOf(one))).toBe(JSON.stringify(valuesOf(other)))

    same(defineTask({ name: 'a', ...undefinedOf([...plain, ...more]) } as never), defineTask({ name: 'a' }))
    same(defineOrderedTask({ name: 'a', ...undefinedOf(ordered) } as never), defineOrderedTask({ name: 'a' }))
  })
})

function checked(options: object) {
  const { registry, schedules } = checkOptions({ store, ...options } as never, undefined)
  return { queues: [...registry.queues.values()], schedules: schedules && [...schedules] }
}
