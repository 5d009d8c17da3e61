import { pathToFileURL } from 'node:url'
import { defineTask, type Mill, millrace } from 'millrace'
import { describe, expect, it } from 'vitest'
import { plainAccess } from '#src/mill/store-source.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { newKey } from '../core/seal-keys.js'
import { testMillOn } from '../test-mill.js'

const store = 'sqlite:nobody-opens-this.db'
const isolated = (options: object = {}) => defineTask({ name: 'encode', isolate: 'process', ...options })
const module = pathToFileURL('/tasks.js').href

describe('a mill with isolated tasks', () => {
  it("accepts a time limit of 'none', or of months", () => {
    for (const timeLimit of ['none', '100d']) millrace({ store, tasks: [isolated({ timeLimit })] })
  })

  it('keeps their results for 7 days, and those of other queues for an hour', () => {
    const { queues } = millrace({ store, tasks: [isolated({ queue: 'video' }), defineTask({ name: 'send' })] })
    expect(queues.get('video')?.results).toEqual({ ageMs: 7 * 86_400_000, count: 1_000 })
    expect(queues.get('default')?.results).toEqual({ ageMs: 3_600_000, count: 1_000 })
  })

  it('refuses a queue without lease renewal', () => {
    const queues = { default: { renewLease: false } }
    expect(() => millrace({ store, queues, tasks: [isolated()] })).toThrow(
      /tasks.encode.isolate: needs a queue whose leases are renewed; 'default' has renewLease: false/,
    )
  })
})

describe('a process of an isolated job', () => {
  it('does not begin if its context cannot be opened within half a minute, and says why', async () => {
    let now = 0
    const context = () => {
      now += 31_000
      throw new Error('no database')
    }
    const clock = { now: () => 0, mono: () => now }
    const mill = testMillOn(new MemoryStore(), { tasks: [defineTask({ name: 'encode' })], context }, clock)
    const from = { packing: 'json', modules: [], descriptor: store, access: plainAccess, command: undefined }
    const parts = { store: new MemoryStore(), isOver: () => false } as never

    await expect(mill.isolated(parts, from)).rejects.toMatchObject({
      code: 'context-failed',
      message: expect.stringContaining('tried for 31s: no database. The worker has taken no job'),
    })
  })

  it('is refused if it would not seal as its worker does', async () => {
    const sealing = millrace({ store, seal: { current: 'k', keys: { k: newKey } }, tasks: [isolated()] })
    const bare = millrace({ store, tasks: [isolated()] })
    const from = { packing: 'json sealed', modules: [], descriptor: store, access: plainAccess, command: undefined }
    const refused = (mill: Mill, packing: string) => mill.isolated({} as never, { ...from, packing })

    await expect(refused(bare, 'json sealed')).rejects.toThrow(
      /codec, seal: must do as the worker does, 'json sealed'; got 'json'\. Export the mill itself/,
    )
    await expect(refused(sealing, 'json')).rejects.toThrow(/'json'; got 'json sealed'/)
  })
})

describe('a worker for isolated tasks', () => {
  it('is refused if their processes could not find the tasks, and accepted if they can', () => {
    expect(() => millrace({ store, tasks: [isolated()] }).worker()).toThrow(
      /tasks.encode.module: must be `import.meta.url`, .* or start the worker by `millrace work`/,
    )
    millrace({ store, tasks: [isolated({ module })] }).worker()
    const launch = { isSupervised: true, blockedTo: 2, files: ['/millrace.config.js'] }
    millrace({ store, tasks: [isolated()] }).worker({}, launch)
  })

  it('is refused on a store that other processes cannot open', () => {
    expect(() => millrace({ store: 'memory:', tasks: [isolated({ module })] }).worker()).toThrow(
      /memory .* isolated tasks/s,
    )
  })
})
