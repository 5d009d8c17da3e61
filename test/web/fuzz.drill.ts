/** Some hundred calls of the API, drawn from its own description; `npm run prove web-fuzz` makes 10,000. */

import { describe, expect, it } from 'vitest'
import { openApiOf } from '#src/web/api/openapi.js'
import { endpoints } from '#src/web/api/router.js'
import { fuzz, fuzzCalls, type OpenApi } from './api-fuzz.js'
import { bearer, mail, type SceneStore, sync, WebScene } from './web-scene.js'

const document = JSON.parse(JSON.stringify(openApiOf(endpoints))) as OpenApi

/** What is in the store, as far as anybody can see. */
async function standing({ mill }: WebScene): Promise<unknown> {
  const queues = [...mill.queues.keys()]
  const depths = (await mill.depths(queues)).map(({ lagMs: _, shardLagsMs: _lags, ...counts }) => counts)
  const jobs = await Promise.all(queues.map((queue) => mill.queue(queue).jobs.list({ by: 'id' })))
  return { depths, jobs, schedules: await mill.schedules.list(), stored: await mill.storedQueues() }
}

describe.each(['sqlite', 'redis'] as const)('on %s', (store: SceneStore) => {
  async function filled(): Promise<WebScene> {
    const scene = await WebScene.on(store)
    await scene.mill.schedules.reconcile()
    await scene.mill.enqueueMany(
      mail,
      ['m1', 'm2', 'm3', 'd1'].map((to) => ({ to })),
      ({ to }) => ({ id: to }),
    )
    await scene.mill.enqueue(sync, { order: 'o1' })
    await scene.mill.queue('mail').jobs.bury(['d1'])
    return scene
  }

  it('no call causes an internal error, and each error has the documented form', { timeout: 60_000 }, async () => {
    const scene = await filled()
    const { wrong, statuses } = await fuzz(scene.url, document, fuzzCalls(document, 800, 23), bearer)

    expect(wrong).toEqual([])
    expect(Object.keys(statuses)).toEqual(expect.arrayContaining(['200', '201', '400', '403', '404', '415', '421']))
    // Many get through to the mill, and do something.
    expect(statuses[200]! + statuses[201]!).toBeGreaterThan(100)
  })

  it('without a token nothing is shown, and nothing is changed', { timeout: 60_000 }, async () => {
    const scene = await filled()
    const before = await standing(scene)
    const { wrong, statuses } = await fuzz(scene.url, document, fuzzCalls(document, 200, 21), {})

    expect(wrong).toEqual([])
    expect(Object.keys(statuses).filter((status) => !['401', '403', '404', '405', '421'].includes(status))).toEqual([])
    expect(await standing(scene)).toEqual(before)
    expect(scene.audits).toEqual([])
  })
})
