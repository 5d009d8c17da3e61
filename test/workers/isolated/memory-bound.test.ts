import { pathToFileURL } from 'node:url'
import { defineTask, millrace } from 'millrace'
import { describe, expect, it } from 'vitest'
import { Registry } from '#src/core/registry.js'
import { isTooLarge, mostBytes, ranOutOfMemory, unwatchedHeaps } from '#src/workers/isolated/memory-bound.js'

const mib = 1_048_576
const said = '<--- Last few GCs --->\nFATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory'
const death = { code: null, signal: null, tail: '', wasTooLarge: false }

describe('the size of a process', () => {
  const most = mostBytes(48 * mib)
  const ofKilobytes = (count: number) => `Name:\tnode\nVmRSS:\t${count} kB\nThreads:\t11\n`

  it('may be twice its heap plus 192 MB', () => {
    expect(most).toBe((2 * 48 + 192) * mib)
    expect(isTooLarge(ofKilobytes(most / 1_024), most)).toBe(false)
    expect(isTooLarge(ofKilobytes(most / 1_024 + 1), most)).toBe(true)
  })

  it('is not too large if its status does not say, as for a zombie', () => {
    expect(isTooLarge('Name:\tnode\nState:\tZ (zombie)\nThreads:\t1\n', most)).toBe(false)
    expect(isTooLarge('', most)).toBe(false)
    expect(isTooLarge('VmRSS:\t9999999', most)).toBe(false)
  })
})

describe('a process has run out of memory', () => {
  it.each([
    ['it was killed for its size', { signal: 'SIGKILL', wasTooLarge: true }],
    ['V8 aborted and said so', { signal: 'SIGABRT', tail: said }],
    ['V8 trapped and said so', { signal: 'SIGTRAP', tail: said }],
    ['a shell reports that of its child', { code: 134, tail: said }],
    ['a shell reports the trap of its child', { code: 133, tail: said }],
  ] as const)('if %s', (_, how) => {
    expect(ranOutOfMemory({ ...death, ...how })).toBe(true)
  })

  it.each([
    ['it exited by itself, although it was just found too large', { code: 0, wasTooLarge: true }],
    ['another signal was quicker than ours', { signal: 'SIGSEGV', wasTooLarge: true }],
    ['somebody else killed it', { signal: 'SIGKILL', tail: said }],
    ['it printed the words and ended with 3', { code: 3, tail: said }],
    ['it aborted without a word about memory', { signal: 'SIGABRT', tail: 'free(): invalid pointer' }],
  ] as const)('not if %s', (_, how) => {
    expect(ranOutOfMemory({ ...death, ...how })).toBe(false)
  })
})

const module = pathToFileURL('/tasks.js').href
const task = (name: string, options: object = {}) => defineTask({ name, isolate: 'process', module, ...options })

it('a worker reports tasks with only their heap limited if the system does not report the size of a process', () => {
  const tasks = [task('bounded', { maxHeap: '64MB' }), task('boundless'), defineTask({ name: 'plain' })]
  const { queues } = millrace({ store: 'sqlite:nobody-opens-this.db', tasks })
  const registry = new Registry(tasks, [...queues.values()])
  expect(unwatchedHeaps(registry, '')).toEqual(['bounded'])
  expect(unwatchedHeaps(registry, 'Name:\tnode\nVmRSS:\t   52148 kB\n')).toEqual([])
})
