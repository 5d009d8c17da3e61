/**
 * Why a job waits: each standstill that can be provoked, on every store, as its handle, the API, the command line and the
 * metrics tell it. `drills/page/standstill-page.drill.ts` looks at the page.
 */

import { type WebOptions, webHandler } from 'millrace/web'
import { describe, expect, it, onTestFinished } from 'vitest'
import { standstillReasons } from '#src/measures/mill-metrics.js'
import { valuesIn } from '../../monitoring/exposition-text.js'
import { ask } from '../../web/ask.js'
import { served, token } from '../../web/web-scene.js'
import { expectCommandsToTell } from './standstill-commands.js'
import { kinds, Scene, standstills } from './standstills.js'

const headers = { authorization: `Bearer ${token}` }
const rows = Object.entries(standstills)

async function windowOn({ mill }: Scene, options: WebOptions = {}): Promise<string> {
  const window = webHandler(mill, { token, ...options })
  onTestFinished(() => window.close())
  return served(window.node)
}

/**
 * Commands print the reasons that the handle and the API give, in the same words on every store. On a server one row shows that
 * they reach it, and `drills/standstill-commands.drill.ts` all. No command reaches a store in the memory of another process.
 */
const isToldByCommands = (kind: (typeof kinds)[number], name: string) =>
  kind === 'sqlite' || (kind !== 'memory' && name === 'a job that has failed')

describe.each(kinds)('on %s, why a job waits', (kind) => {
  it.each(rows)('is explained for %s, by its handle, the API, the metrics and the commands', async (name, row) => {
    const { queues, isUnserved, provoke, why, text, metric } = row
    const scene = await Scene.on(kind, queues)
    if (!isUnserved) await scene.serve()
    const job = await provoke(scene)
    const reasons = await job.explain()
    expect(reasons[0]).toMatchObject({ why, text: expect.stringMatching(text) })
    expect(JSON.stringify(reasons)).not.toContain('undefined')

    const url = await windowOn(scene)
    const jobs = `${url}/api/v1/queues/${job.queue}/jobs`
    const shown = (await ask(`${jobs}/${job.id}`, { headers })).json as { waits: object[] }
    expect(shown.waits[0]).toMatchObject({ why, text: expect.stringMatching(text) })
    const listing = (await ask(jobs, { headers })).json as { items: { id: string; waits?: object[] }[] }
    const inList = listing.items.find(({ id }) => id === job.id)!.waits?.[0]
    if (why === 'behind' || why === 'next') expect(inList).toBeUndefined()
    // What a list leaves out: the sets of a join, and the steps.
    else if (why !== 'joins' && why !== 'asleep') expect(inList).toMatchObject({ why })

    const values = valuesIn((await ask(`${url}/metrics`, { headers })).text)
    if (metric !== undefined) expect(values.get(metric), metric).toBeGreaterThan(0)
    const standing = [...values.keys()].filter((key) => key.startsWith('millrace_queue_standstill'))
    const expected = metric === undefined ? standstillReasons.filter((one) => reasons.some((r) => r.why === one)) : []
    expect(standing).toEqual(expected.map((one) => `millrace_queue_standstill{queue="${job.queue}",reason="${one}"}`))
    expect(expected.length > 0).toBe(metric === undefined)

    if (!isToldByCommands(kind, name)) return
    await expectCommandsToTell(scene, job, row)
  })

  it('is not explained for a job that has ended, or of which nothing is kept', async () => {
    const scene = await Scene.on(kind)
    const job = await scene.send('a')
    const [claim] = await scene.claim('mail')
    await scene.store.settle([{ ...claim!, kind: 'bury', reason: 'buried' }])
    expect(await job.explain()).toEqual([])
    expect(await scene.mill.queue('mail').jobs.explain('never-was')).toEqual([])
  })

  it('is explained for a queue by its first ready job, and by its drain', async () => {
    const scene = await Scene.on(kind)
    const queue = scene.mill.queue('mail')
    expect(await queue.explain()).toEqual([])
    await scene.send('a')
    await scene.store.records!.drain('mail')
    await queue.pause()
    expect((await queue.explain()).map(({ why, standing }) => [why, standing])).toEqual([
      ['draining', true],
      ['paused', true],
      ['no-worker', true],
    ])
  })
})

it.each(rows.filter(([name]) => name.includes('group')))(
  'the API names no group that is hidden, for %s',
  async (_, row) => {
    const scene = await Scene.on('memory', row.queues)
    await scene.serve()
    const job = await row.provoke(scene)
    const url = await windowOn(scene, { redact: ({ group: _group, ...rest }) => rest })
    const paths = [`queues/mail/jobs/${job.id}`, 'queues/mail/jobs', 'queues/mail']
    const answers = await Promise.all(paths.map((path) => ask(`${url}/api/v1/${path}`, { headers })))
    const [record, list, queue] = answers.map(
      ({ json }) => json as { waits?: object[]; items?: { id: string; waits?: object[] }[] },
    )
    const waits = [record!.waits, list!.items!.find(({ id }) => id === job.id)!.waits, queue!.waits]

    expect(JSON.stringify(waits)).not.toContain('acme')
    for (const reasons of waits)
      expect(reasons).toMatchObject([{ why: row.why, text: expect.stringContaining('its group') }])
  },
)

it('a limit is explained by the count of the running jobs, however many there are', async () => {
  const scene = await Scene.on('memory', { mail: { maxRunning: 1_005 } })
  await scene.serve()
  for (let i = 0; i < 1_005; i += 1) await scene.send(`running-${i}`)
  await scene.claim('mail', 1_005)
  const job = await scene.send('a')
  const [reason] = await job.explain()
  expect(reason).toMatchObject({ why: 'max-running', text: "1005 of at most 1005 jobs run in queue 'mail'" })
  expect(reason!.jobs).toHaveLength(10)
})
