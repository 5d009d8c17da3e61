import { defineOrderedTask, defineTask, millrace } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'
import { queueOptionsSchema } from '#src/core/queue/queue.js'
import { isOptions, mergedOptions } from '#src/mill/configuration/merged-options.js'
import { checkOptions, millOptionNames } from '#src/mill/options/mill-options.js'

describe('merging options', () => {
  it('lets a later file win, key by key', () => {
    expect(mergedOptions([{ store: 'memory:', namespace: 'a' }, { namespace: 'b' }])).toEqual({
      store: 'memory:',
      namespace: 'b',
    })
  })

  it('ignores an undefined option of a later file, but keeps one that is usually imported for the check', () => {
    const base = {
      ...{ store: 'memory:', namespace: 'a', tasks: [defineTask({ name: 'mail' })], worker: { concurrency: 5 } },
      queues: { mail: { weight: 10, throttle: { limit: 1, window: '1s' } } },
    }
    const local = {
      namespace: undefined,
      tasks: undefined,
      queues: { mail: { weight: undefined } },
      schedules: undefined,
    }
    expect(mergedOptions([base, { ...local, worker: { concurrency: undefined } }, { queues: undefined }])).toEqual(base)
    for (const option of ['store', 'codec', 'seal', 'middleware'])
      expect(mergedOptions([{ ...base, [option]: 'x' }, { [option]: undefined }])).toMatchObject({
        [option]: undefined,
      })
  })

  it('merges queues by name and then by key, but not deeper', () => {
    const base = { queues: { mail: { weight: 10, lease: '1m', maxRunning: { perGroup: 2 } }, low: {} } }
    const local = { queues: { mail: { weight: 99, maxRunning: 3 }, extra: { weight: 1 } } }
    expect(mergedOptions([base, local])).toEqual({
      queues: { mail: { weight: 99, lease: '1m', maxRunning: 3 }, low: {}, extra: { weight: 1 } },
    })
  })

  it('merges worker by key', () => {
    const merged = mergedOptions([{ worker: { concurrency: 5, maxJobs: 9 } }, { worker: { concurrency: 50 } }])
    expect(merged).toEqual({ worker: { concurrency: 50, maxJobs: 9 } })
  })

  it('replaces a task by a later one of the same name, in place; two in one file are left for the check', () => {
    const [mail, other, later] = ['mail', 'other', 'mail'].map((name) => defineTask({ name }))
    expect(mergedOptions([{ tasks: [mail, other] }, { tasks: [later] }])['tasks']).toEqual([later, other])
    expect(mergedOptions([{ tasks: [mail, later] }, { tasks: [other] }])['tasks']).toEqual([mail, later, other])
  })

  it('joins the names of tasks elsewhere', () => {
    expect(mergedOptions([{ tasksElsewhere: ['a'] }, { tasksElsewhere: ['b', 'a'] }])).toEqual({
      tasksElsewhere: ['a', 'b'],
    })
  })

  it('lets a value of the wrong type replace a right one, so that the check sees it', () => {
    expect(
      mergedOptions([
        { queues: { a: {} }, tasks: [] },
        { queues: 7, tasks: 'mail' },
      ]),
    ).toEqual({
      queues: 7,
      tasks: 'mail',
    })
    expect(mergedOptions([{ queues: { a: { weight: 1 } } }, { queues: { a: undefined } }])).toEqual({
      queues: { a: undefined },
    })
  })

  it('accepts plain objects as options, also from another realm', () => {
    expect([{}, Object.create(null), { store: 'memory:' }].map(isOptions)).toEqual([true, true, true])
    expect([undefined, null, 1, [], new Map(), new (class Mill {})()].map(isOptions)).toEqual(Array(6).fill(false))
  })
})

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
    const more = [
      'shouldRun',
      'onExhausted',
      'onDead',
      'isolate',
      'module',
      'env',
      'maxHeap',
      'onSupervisorLoss',
      'batch',
      'run',
    ]
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
