/** A scene of joins: a flow of a few jobs, a join of 200, one of many, and one whose names are hostile. */

import { defineTask, many } from 'millrace'
import { hostileTexts } from './hostile-texts.js'
import { PageScene } from './page-scene.js'

const fetchRates = defineTask({
  name: 'fetch-rates',
  queue: 'rates',
  run: async (_: { date: string }) => ({ eur: 1.08 }),
})
const sumRegion = defineTask({
  name: 'sum-region',
  queue: 'sums',
  retry: { max: 0 },
  run: async (region: string) => {
    if (region === 'atlantis') throw new Error('there is no such region')
    return { region }
  },
})
const report = defineTask({
  name: 'report',
  queue: 'reports',
  joins: { rates: fetchRates, sales: many(sumRegion, { onDead: 'go-on' }) },
  run: async (_: { month: string }) => {},
})
const yearReport = defineTask({
  name: 'year-report',
  queue: 'reports',
  joins: { first: report, second: report, rates: { task: fetchRates, onDead: 'go-on' } },
  run: async (_: { year: number }) => {},
})

/** Names that a task may have, and text in ids. */
const hostileTask = defineTask({ name: '<img src=x onerror=tripwire()>', queue: 'sums', run: async (_: number) => {} })
const hostileJoin = defineTask({
  name: '"><script>tripwire()</script>',
  queue: 'reports',
  joins: { one: hostileTask, two: hostileTask, some: many(hostileTask) },
  run: async () => {},
})
export const hostileIds = [
  hostileTexts.find((text) => text.startsWith('<img') && text.length < 60)!,
  hostileTexts.find((text) => text.includes('javascript:'))!,
]

const options = {
  queues: { rates: {}, sums: { retention: { results: 'untilDeleted' as const } }, reports: {} },
  tasks: [fetchRates, sumRegion, report, yearReport, hostileTask, hostileJoin],
}

const regionsOf = (count: number) =>
  Array.from({ length: count }, (_, i) => (i % 60 === 7 ? 'atlantis' : `region-${i}`))

/** `most`: the members of the largest. Some of the regions have been summed up. */
export async function joinScene(most: number): Promise<PageScene> {
  const scene = await PageScene.on('sqlite', options)
  const { mill } = scene
  await mill.flow((f) => {
    const rates = f.job(fetchRates, { date: '2026-11-29' }, { id: 'rates-2026-11-29' })
    const sales = f.jobs(sumRegion, ['north', 'south', 'west'])
    const first = f.job(report, { month: '2026-10' }, { id: 'report-2026-10', after: { rates, sales } })
    const other = f.jobs(sumRegion, ['east'])
    const second = f.job(report, { month: '2026-11' }, { id: 'report-2026-11', after: { rates, sales: other } })
    f.job(yearReport, { year: 2026 }, { id: 'year-2026', after: { first, second, rates } })
  })
  const day = { date: '2026-11-30' }
  const three = ['north', 'south', 'west']
  await mill.enqueue(report, { month: 'three' }, { id: 'report-of-3', after: { rates: day, sales: three } })
  await mill.enqueue(report, { month: 'few' }, { id: 'report-of-198', after: { rates: day, sales: regionsOf(198) } })
  await mill.enqueue(report, { month: 'many' }, { id: 'report-of-many', after: { rates: day, sales: regionsOf(most) } })
  await mill.flow((f) =>
    f.job(hostileJoin, undefined, {
      id: 'hostile',
      after: {
        one: f.job(hostileTask, 1, { id: hostileIds[0]! }),
        two: f.job(hostileTask, 2, { id: hostileIds[1]! }),
        some: f.jobs(hostileTask, [1, 2, 3, 4, 5, 6, 7, 8]),
      },
    }),
  )
  return scene
}

/** Runs jobs of the queue, until so many have ended. */
export async function runSome({ mill }: PageScene, queue: 'rates' | 'sums', count: number): Promise<void> {
  const listener = mill.listener(queue as never)
  for (let i = 0; i < count; i += 1) {
    const claim = await listener.next()
    if (claim.input === 'atlantis') await claim.fail(new Error('there is no such region'))
    else await claim.complete({})
  }
  await listener.close()
}
