/** A deploy: schedules are changed, removed and renamed in code while a worker with the old code continues to run. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { defineTask, type EventMap, type Mill, millrace } from 'millrace'
import type { Report } from '../report.js'

type Ticked = EventMap['schedule.ticked']

/** `store` is 'sqlite' or the URL of a Redis. */
export async function deploy(report: Report, store: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-deploy-'))
  const where = store === 'sqlite' ? (`sqlite:${join(folder, 'jobs.db')}` as const) : (store as 'redis://localhost')
  const ran: string[] = []
  const work = defineTask({
    name: 'work',
    async run(input) {
      ran.push(String(input))
    },
  })
  const ticked: Ticked[] = []
  const watched = <M extends Mill>(mill: M): M => {
    mill.on('schedule.ticked', (event) => ticked.push(event))
    return mill
  }
  const every = { every: '1s', task: work } as const
  const old = watched(
    millrace({
      ...{ store: where, namespace: 'deploy', tasks: [work] },
      schedules: {
        changed: { ...every, input: 'old' },
        removed: { ...every, input: 'gone' },
        before: { ...every, input: 'before' },
      },
    }),
  )
  const oldWorker = old.worker()
  await oldWorker.start()
  await until(() => ['old', 'gone', 'before'].every((input) => ran.includes(input)))

  const next = watched(
    millrace({
      ...{ store: where, namespace: 'deploy', tasks: [work] },
      schedules: { changed: { ...every, input: 'new' }, after: { ...every, input: 'after' } },
    }),
  )
  const nextWorker = next.worker()
  await nextWorker.start()
  await delay(500)
  const deployedAt = Date.now()
  ran.length = 0
  // The new worker stops: from now on the only worker that ticks has the old code.
  await nextWorker.stop()
  await until(
    () => ran.filter((input) => input === 'new').length >= 3 && ran.filter((input) => input === 'after').length >= 3,
  )
  const names = (await next.schedules.list()).schedules.map(({ name }) => name)
  const since = ticked.filter(({ tickAt }) => tickAt > deployedAt)
  await Promise.all([old.close(), next.close()])
  rmSync(folder, { recursive: true, force: true })

  const kind = store === 'sqlite' ? 'sqlite' : 'redis'
  report.say(`${kind}, a deploy: the old worker ran ${ran.length} jobs of the new schedules`)
  report.claim('what is stored is what the new code declares', names.join() === 'after,changed')
  report.claim(
    'nothing of the old code was ticked after it, and all of the new was, by a worker that does not know it',
    since.every(({ schedule }) => schedule === 'changed' || schedule === 'after') &&
      !ran.includes('old') &&
      !ran.includes('gone'),
  )
  const ids = ticked.map(({ id }) => id)
  report.claim('no tick came twice', new Set(ids).size === ids.length)
}

async function until(is: () => boolean): Promise<void> {
  const endsAt = performance.now() + 60_000
  while (!is()) {
    if (performance.now() > endsAt) throw new Error('it took longer than a minute')
    await delay(20)
  }
}
