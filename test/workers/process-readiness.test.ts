import { pathToFileURL } from 'node:url'
import { defineTask, millrace } from 'millrace'
import { expect, it } from 'vitest'
import { Registry } from '#src/core/registry.js'
import { unwatchedHeaps } from '#src/workers/isolated/memory-bound.js'

const module = pathToFileURL('/tasks.js').href
const task = (name: string, options: object = {}) => defineTask({ name, isolate: 'process', module, ...options })

it('a worker reports tasks with only their heap limited if the system does not report the size of a process', () => {
  const tasks = [task('bounded', { maxHeap: '64MB' }), task('boundless'), defineTask({ name: 'plain' })]
  const { queues } = millrace({ store: 'sqlite:nobody-opens-this.db', tasks })
  const registry = new Registry(tasks, [...queues.values()])
  expect(unwatchedHeaps(registry, '')).toEqual(['bounded'])
  expect(unwatchedHeaps(registry, 'Name:\tnode\nVmRSS:\t   52148 kB\n')).toEqual([])
})
