/**
 * Who opens the queues of a store with what, and what holds afterwards. `PRINT=1` prints the table.
 */

import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineOrderedTask, defineTask, type Mill, millrace, type QueueOptions } from 'millrace'
import { startRedis } from 'millrace/store-testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from '../cli/command-in-process.js'
import { project } from '../cli/project.js'

type Queues = Record<string, QueueOptions>

const declared: Queues = {
  video: {
    maxRunning: 2,
    maxPending: 100,
    maxCrashes: 2,
    throttle: { limit: 5, window: '1h' },
    retention: { results: { count: 9 }, dead: { age: '30d' } },
  },
  tenants: { maxRunning: { perGroup: 1, total: 9 } },
  orders: { ordered: true, maxRunning: 3, maxPending: 50 },
}
const others: Queues = {
  video: {
    maxRunning: 7,
    maxPending: 7,
    maxCrashes: 7,
    throttle: { limit: 7, window: '1h' },
    retention: { results: { count: 7 }, dead: 'untilDeleted' },
  },
  tenants: { maxRunning: { perGroup: 7 } },
  orders: { ordered: true, maxRunning: 7, maxPending: 7 },
}
const none: Queues = { video: {}, tenants: {}, orders: { ordered: true } }
const newer: Queues = { ...declared, video: { ...declared['video'], maxRunning: 4 } }

const silent = { debug() {}, info() {}, warn() {}, error() {} }
const tasks = () => [
  defineTask({ name: 'encode', queue: 'video', run: () => {} }),
  defineTask({ name: 'serve', queue: 'tenants', run: () => {} }),
  defineOrderedTask({ name: 'order', queue: 'orders', id: () => 'a', run: () => {} }),
]

/** A process with this configuration. */
interface Told {
  readonly store: string
  readonly namespace: string
  readonly queues: Queues
}

async function withMill<T>({ queues, ...where }: Told, use: (mill: Mill, all: ReturnType<typeof tasks>) => Promise<T>) {
  const all = tasks()
  const mill = millrace({ ...where, queues, tasks: all, logger: silent }) as Mill
  try {
    return await use(mill, all)
  } finally {
    await mill.close()
  }
}

const worker = (told: Told) => withMill(told, (mill) => mill.worker({ queues: Object.keys(told.queues) }).start())
const producer = (told: Told) =>
  withMill(told, async (mill, [encode]) => void (await mill.enqueue(encode as never, undefined as never)))
const command =
  (...args: string[]) =>
  async (told: Told) => {
    const cwd = project({
      'package.json': '{"type":"module"}',
      'millrace.config.js': `import { defineOrderedTask, defineTask, millrace } from 'millrace'
export default millrace({ ...${JSON.stringify(told)}, tasks: [
  defineTask({ name: 'encode', queue: 'video', run() {} }),
  defineTask({ name: 'serve', queue: 'tenants', run() {} }),
  defineOrderedTask({ name: 'order', queue: 'orders', id: () => 'a', run() {} }),
] })`,
    })
    const { code, stderr } = await run(args, { cwd })
    if (code !== 0) throw new Error(stderr)
  }

const lookers = new Map<string, Mill>()
afterAll(async () => {
  for (const mill of lookers.values()) await mill.close()
})

/** What is stored of every queue, seen through a mill that only looks: one for each place, as to open one takes longer than to look. */
async function standing(where: Omit<Told, 'queues'>): Promise<unknown> {
  const place = `${where.store} ${where.namespace}`
  const mill = lookers.get(place) ?? (millrace({ ...where, queues: none, logger: silent }) as Mill)
  lookers.set(place, mill)
  return Promise.all(
    Object.keys(none).map(async (name) => {
      const queue = mill.queue(name)
      const { rules } = (await queue.throttle.get()) ?? {}
      return { name, ...(await queue.limits.get()), limit: rules?.map(({ limit }) => limit) }
    }),
  )
}

const looks = [
  ['stats'],
  ['jobs', 'list', 'video'],
  ['morgue', 'list', 'video'],
  ['workers'],
  ['queues', 'list'],
  ['queues', 'limits', 'video'],
  ['queues', 'throttle', 'video'],
  ['schedules', 'list'],
  ['fsck'],
] as const

/** Who opens, with which configuration, and whether that is refused. */
const openers: readonly (readonly [who: string, act: (told: Told) => Promise<unknown>, refusesOthers: boolean])[] = [
  ['a producer', producer, false],
  ...looks.map((args) => [`millrace ${args.join(' ')}`, command(...args), false] as const),
  ['millrace queues pause', command('queues', 'pause', 'video'), false],
  ['millrace queues resume', command('queues', 'resume', 'video'), false],
  ['a worker', worker, true],
]

const table: string[][] = [['store', 'who opens', 'says', 'is', 'what holds afterwards']]
afterAll(() => {
  if (process.env['PRINT'] !== undefined) process.stdout.write(`${table.map((row) => row.join(' | ')).join('\n')}\n`)
})

let namespaces = 0
/** What gives a place that nobody has used yet: a file is one place whatever the namespace. */
const stores: Record<string, () => Promise<() => Omit<Told, 'queues'>>> = {
  sqlite: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'limits-'))
    afterAll(() => rm(folder, { recursive: true, force: true }))
    return () => ({ store: `sqlite:${join(folder, `${++namespaces}.db`)}`, namespace: 'who' })
  },
  redis: async () => {
    const { url } = await startRedis()
    return () => ({ store: url, namespace: `who-${++namespaces}` })
  },
}

describe.each(Object.keys(stores))('the limits of a queue, on %s', (kind) => {
  let place: () => Omit<Told, 'queues'>
  beforeAll(async () => {
    place = await stores[kind]!()
  })

  describe('do not change by opening it', () => {
    let where: Omit<Told, 'queues'>
    let before: unknown
    beforeAll(async () => {
      where = place()
      await worker({ ...where, queues: declared })
      before = await standing(where)
    })

    it('and are those of the worker that said them first', () => {
      expect(before).toMatchObject([
        {
          ...{ maxRunning: 2, maxPending: 100, maxCrashes: 2, limit: [5] },
          retention: { results: { count: 9 }, dead: { age: 30 * 86_400_000 } },
        },
        { maxRunning: { perGroup: 1, total: 9 }, maxPending: 'none', maxCrashes: 3, limit: undefined },
        { maxRunning: 3, maxPending: 50 },
      ])
    })

    it.each(openers)(
      'by %s, whatever its configuration says; only a worker with others is refused',
      async (...opener) => {
        const [who, act, refusesOthers] = opener
        for (const [says, queues] of Object.entries({ none, 'the same': declared, others })) {
          const refused = await act({ ...where, queues }).then(
            () => undefined,
            (error: Error & { code?: string }) => error,
          )
          const isRefused = refusesOthers && says === 'others'
          expect({ says, refused: refused?.code ?? refused?.message }).toEqual({
            says,
            refused: isRefused ? 'config-conflict' : undefined,
          })
          expect({ says, holds: await standing(where) }).toEqual({ says, holds: before })
          table.push([kind, who, says, isRefused ? 'refused (config-conflict)' : 'served', 'as stored'])
        }
      },
    )
  })

  it('change by a command; an old worker that is replaced does not restore the old ones', async () => {
    const where = place()
    const tell = async (who: string, says: string, is: string) => {
      const [{ maxRunning }] = (await standing(where)) as [{ maxRunning: unknown }]
      table.push([kind, who, says, is, `maxRunning ${JSON.stringify(maxRunning)}`])
      return maxRunning
    }
    await worker({ ...where, queues: declared })
    await withMill({ ...where, queues: declared }, async (old) => {
      await old.worker().start()
      await expect(worker({ ...where, queues: newer })).rejects.toMatchObject({
        code: 'config-conflict',
        message: expect.stringContaining('millrace queues limits video --max-running'),
      })
      expect(await tell('a new worker, before the command', '4', 'refused')).toBe(2)
      await command('queues', 'limits', 'video', '--max-running', '4')({ ...where, queues: newer })
      expect(await tell('millrace queues limits video --max-running 4', '4', 'done')).toBe(4)
      await worker({ ...where, queues: newer })
      expect(await tell('a new worker, beside an old one', '4', 'served')).toBe(4)
      await producer({ ...where, queues: declared })
      expect(await tell('an old producer', '2', 'served')).toBe(4)
      await expect(worker({ ...where, queues: declared })).rejects.toMatchObject({ code: 'config-conflict' })
      expect(await tell('an old worker that is replaced', '2', 'refused')).toBe(4)
      await worker({ ...where, queues: none })
      expect(await tell('a worker of a third configuration', 'none', 'served')).toBe(4)
      await old.queue('video').limits.set({ maxRunning: 'none' })
      expect(await tell('queue.limits.set({ maxRunning: "none" })', 'none', 'done')).toBe('none')
    })
  })

  it('are not set by a read-only command, which creates no queue', async () => {
    const where = place()
    for (const args of [
      ['stats'],
      ['jobs', 'list', 'video'],
      ['morgue', 'list', 'video'],
      ['workers'],
      ['queues', 'list'],
    ])
      await command(...args)({ ...where, queues: others })

    await withMill({ ...where, queues: none }, async (mill) => expect(await mill.storedQueues()).toEqual([]))
    await worker({ ...where, queues: declared })
    table.push([kind, 'every look, before the first use', 'others', 'served', 'nothing is stored'])
  })
})
