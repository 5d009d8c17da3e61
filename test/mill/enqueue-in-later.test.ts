/** `enqueueIn` of a store that is given transactions of a server: it answers by a promise. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTask, type JobHandle, type Middleware, type MillOptions, millrace } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'

const bill = defineTask({ name: 'bill', queue: 'bills' })

/** The memory store; the connection of a user is a list, to which the calls are added. */
const storeText = (answersLater: boolean) => `
import { MemoryStore } from ${JSON.stringify(import.meta.resolve('#src/stores/memory/memory-store.js'))}
export default () => Object.assign(new MemoryStore(), {
  transactions: {
    answersLater: ${answersLater},
    async enqueue(connection, call) {
      await new Promise((resolve) => setImmediate(resolve))
      connection.push(call)
      return call.jobs.map(() => connection.answer ?? 'added')
    },
  },
})
`

async function laterMill(options: Partial<MillOptions> = {}, answersLater = false) {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-later-'))
  const module = join(folder, 'later-store.mjs')
  writeFileSync(module, storeText(answersLater))
  const mill = millrace({ store: { module }, tasks: [bill], queues: { bills: {} }, ...options })
  onTestFinished(async () => {
    await mill.close()
    rmSync(folder, { recursive: true })
  })
  await mill.ready()
  return mill
}

const layer: Middleware = {
  async enqueue(items, next) {
    items[0]!.options = { ...items[0]!.options, meta: { tenant: 't' } }
    await next()
  },
}

it.each([[[]], [[layer]]])('the handle comes when the store has answered, with middleware %o', async (middleware) => {
  const mill = await laterMill({ middleware })
  const connection: unknown[] = []
  const pending = mill.enqueueIn(connection, bill, 1)
  expect(connection).toEqual([])
  const handle = (await pending) as JobHandle
  expect(handle.outcome).toBe('added')
  expect(connection).toMatchObject([{ queue: 'bills', jobs: [{ id: handle.id }] }])
})

it.each([[[]], [[layer]]])('a refusal rejects, with middleware %o, and is reported once', async (middleware) => {
  const mill = await laterMill({ middleware })
  const failed: unknown[] = []
  mill.on('hook.failed', (event) => failed.push(event))
  await expect(mill.enqueueIn(Object.assign([], { answer: 'full' }), bill, 1)).rejects.toMatchObject({
    code: 'queue-full',
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(failed).toEqual([])
})

describe.each([false, true])('if the store says beforehand that it answers later: %s', (answersLater) => {
  it('a middleware may put another item in the place of the job', async () => {
    const copying: Middleware = {
      async enqueue(items, next) {
        items[0] = { ...items[0]!, options: { ...items[0]!.options, id: 'other' } }
        await next()
        expect(items[0]!.job?.id).toBe('other')
      },
    }
    const mill = await laterMill({ middleware: [copying, layer] }, answersLater)
    const connection: unknown[] = []
    expect(await mill.enqueueIn(connection, bill, 1)).toMatchObject({ id: 'other', outcome: 'added' })
    expect(connection).toMatchObject([{ jobs: [{ id: 'other', meta: expect.stringContaining('tenant') }] }])
  })

  it('a middleware that takes the job out is refused before anything is written', async () => {
    const emptying: Middleware = {
      async enqueue(items, next) {
        items.length = 0
        await next()
      },
    }
    const mill = await laterMill({ middleware: [emptying] }, answersLater)
    const connection: unknown[] = []
    await expect((async () => mill.enqueueIn(connection, bill, 1))()).rejects.toMatchObject({
      code: 'enqueue-many-refused',
      message: expect.stringMatching(/^a middleware took jobs out/),
    })
    expect(connection).toEqual([])
  })
})
