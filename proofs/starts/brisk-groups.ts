/** The brisk start of many groups: each may start once in an hour, and has two jobs. A part of the proof of brisk starts. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTask, millrace } from 'millrace'
import { startRedis } from 'millrace/store-testing'
import type { Report } from '../report.js'

const groups = 20_000
const jobsOfGroup = 2
const slots = 10
const leastPerSecond = 2_500
/** After the last first start: a group that starts again would do so by then. */
const afterwardsMs = 3_000
const throttle = { limit: 1, window: '1h', by: 'group' } as const

/** The first starts of all groups by one worker, on an idle machine. */
export async function briskGroups(report: Report, kind: 'sqlite' | 'redis'): Promise<unknown> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-brisk-'))
  const server = kind === 'redis' ? await startRedis() : undefined
  const starts = new Map<string, number>()
  let all: () => void = () => {}
  const started = new Promise<void>((resolve) => {
    all = resolve
  })
  const begin = defineTask({
    name: 'begin',
    queue: 'groups',
    group: (name: string) => name,
    run: (name: string) => {
      starts.set(name, (starts.get(name) ?? 0) + 1)
      if (starts.size === groups) all()
    },
  })
  const store = server === undefined ? `sqlite:${join(folder, 'jobs.db')}` : server.url
  const mill = millrace({ store, queues: { groups: { throttle } }, tasks: [begin] })
  let wasted = 0
  mill.on('permit.wasted', () => {
    wasted += 1
  })
  try {
    const names = Array.from({ length: groups * jobsOfGroup }, (_, i) => `group-${i % groups}`)
    await mill.enqueueMany(begin, names)
    const worker = mill.worker({ concurrency: slots })
    const startedAt = performance.now()
    await worker.start()
    await started
    const perSecond = groups / ((performance.now() - startedAt) / 1_000)
    await new Promise((resolve) => setTimeout(resolve, afterwardsMs))
    const twice = [...starts.values()].filter((count) => count > 1).length
    const what = `${groups} groups, ${kind}`
    report.say(`${what}: ${perSecond.toFixed(0)} first starts a second by ${slots} slots, put back ${wasted}`)
    report.claim(`${what}: at least ${leastPerSecond} first starts a second`, perSecond >= leastPerSecond)
    report.claim(`${what}: no group starts twice within its window (${twice})`, twice === 0)
    return { perSecond, twice, wasted }
  } finally {
    await mill.close()
    await server?.stop()
    rmSync(folder, { recursive: true })
  }
}
