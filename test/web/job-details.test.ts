/** The details of a job over HTTP: ids that no path can hold, relatives, and retries to come, on SQLite and on Redis. */

import { defineTask, exponential } from 'millrace'
import { webHandler } from 'millrace/web'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ask } from './ask.js'
import { bearer, change, mail, type SceneStore, sceneMill, served, sync, token, WebScene } from './web-scene.js'

const inQuery = (id: string) => `id=${encodeURIComponent(id)}`

/** A parent that has enqueued and waits for its next attempt, as the window tells of it. */
async function failedParent(store: SceneStore) {
  const child = defineTask({ name: 'child', queue: 'crawl', run: async () => {} })
  const parent = defineTask({
    name: 'parent',
    queue: 'mail',
    retry: { max: 3, backoff: exponential({ base: '10m', max: '15m' }) },
    run: async (_: undefined, ctx) => {
      await ctx.enqueue(child, undefined, { delay: '1h' })
      await ctx.enqueue(child, undefined, { id: 'named', delay: '1h' })
      throw new Error('not yet')
    },
  })
  const mill = await sceneMill(store, { tasks: [mail, sync, child, parent] })
  const window = webHandler(mill, { token })
  onTestFinished(() => window.close())
  const url = await served(window.node)
  await mill.enqueue(parent, undefined, { id: 'p' })
  const worker = mill.worker({ queues: ['mail'] })
  await worker.start()
  await expect.poll(async () => (await mill.queue('mail').jobs.get('p'))?.attempt, { timeout: 10_000 }).toBe(2)
  await worker.stop()
  const get = async (path: string) =>
    (await ask(`${url}/api/v1/${path}`, { headers: bearer })).json as Record<string, never>
  return { mill, get }
}

describe.each(['sqlite', 'redis'] as const)('on %s', (store: SceneStore) => {
  it('an id that does not fit into a path is named by the query, in every address of a job', async () => {
    const scene = await WebScene.on(store)
    const ids = ['.', '..', '../mail', '~', 'a//b', '\u202eexe']
    for (const id of ids) await scene.mill.enqueue(mail, { to: id }, { id, delay: '1h' })
    for (const id of ids)
      expect((await scene.get(`queues/mail/jobs/~?${inQuery(id)}`)).json).toMatchObject({ id, state: 'scheduled' })
    const answers = [
      await scene.post(`queues/mail/jobs/~/run-now?${inQuery('.')}`),
      await scene.post(`queues/mail/jobs/~/fields?${inQuery('..')}`, { region: 'eu' }),
      await scene.post(`queues/mail/jobs/~/cancel?${inQuery('../mail')}`),
      await scene.post(`queues/mail/jobs/~/bury?${inQuery('..')}`),
      await scene.get(`queues/mail/jobs/~?${inQuery('a//b')}`, { method: 'DELETE', headers: change }),
    ]

    expect(answers.map(({ json }) => json)).toEqual(new Array(5).fill({ changed: 1, more: false }))
    expect((await scene.get(`queues/mail/morgue/~?${inQuery('..')}`)).json).toMatchObject({ id: '..', state: 'dead' })
    expect((await scene.get('queues/mail/jobs/~')).json).toMatchObject({ id: '~' })
    expect((await scene.get('queues/mail/jobs/a?id=b')).status).toBe(400)
    expect(scene.audits.map(({ on }) => on['id'])).toEqual(['.', '..', '../mail', '..', 'a//b'])
  })

  it('a job shows its parent, and a parent the children it has recorded, with their states', async () => {
    const { mill, get } = await failedParent(store)
    const parent = await get('queues/mail/jobs/p')
    const [made] = (parent as { children?: { id: string }[] }).children!
    const child = await get(`queues/crawl/jobs/${made!.id}`)
    await mill.queue('mail').jobs.delete(['p'])
    const orphan = await get('queues/crawl/jobs/named')

    expect(parent).toMatchObject({
      childCalls: 2,
      children: [{ queue: 'crawl', id: made!.id, task: 'child', state: 'scheduled' }],
    })
    expect(child).toMatchObject({ parent: { queue: 'mail', id: 'p', task: 'parent', state: 'scheduled' } })
    expect(orphan['parent']).toEqual({ queue: 'mail', id: 'p', task: 'parent' })
    expect(orphan).not.toHaveProperty('children')
  })

  it('a job shows its retries, their delays, and the length of its lease', async () => {
    const { get } = await failedParent(store)
    const { retry, leaseMs } = await get('queues/mail/jobs/p')

    expect({ retry, leaseMs }).toEqual({
      retry: {
        max: 3,
        delays: [
          // After its second failure and its third; the fourth is the last.
          { leastMs: 0, mostMs: 900_000 },
          { leastMs: 0, mostMs: 900_000 },
        ],
      },
      leaseMs: 30_000,
    })
  })
})
