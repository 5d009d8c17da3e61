import { defineTask } from 'millrace'
import { describe, expect, it } from 'vitest'
import { isOptions, mergedOptions } from '#src/mill/configuration/merged-options.js'

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
