/** Every way in which a process of a job's family ends: nothing that the job has started outlives the job. */

import { describe, expect, it } from 'vitest'
import { livingIn } from '../process-group.js'
import { type Family, family, type Kind, killed, leftBehind, nothingLeftOf } from './left-behind.js'

const kinds: readonly Kind[] = ['an isolated task', 'exec']

/** Those that die by SIGKILL while the job runs. Then a worker is started if none is left. */
const deaths: readonly { readonly title: string; readonly dead: (family: Family) => readonly number[] }[] = [
  { title: 'the process of the job', dead: ({ job }) => [job] },
  { title: 'the worker and the process of the job', dead: ({ worker, job }) => [worker, job] },
  { title: 'the process of the job and then the worker', dead: ({ worker, job }) => [job, worker] },
  { title: 'all processes but the encoder', dead: ({ supervisor, worker, job }) => [supervisor, worker, job] },
]

describe.each(kinds)('after a kill in the family of %s', { timeout: 60_000 }, (kind) => {
  it.each(deaths)('of $title, the job runs again beside nothing of its first run', async ({ dead }) => {
    const scene = await leftBehind(kind)
    const worker = scene.start()
    const first = await scene.run(1)
    const of = await family(worker, first)
    killed(dead(of))
    if (dead(of).includes(of.supervisor)) scene.start()

    expect((await scene.runAgain()).beside).toEqual([])
    await nothingLeftOf(first.job)
  })

  it('of an adopted process, the job runs again beside nothing of its first run', async () => {
    const scene = await leftBehind(kind)
    const worker = scene.start()
    const first = await scene.run(1)
    const { supervisor, worker: killedWorker } = await family(worker, first)
    killed([supervisor, killedWorker])
    await scene.start().events('job.adopted')
    expect(livingIn(first.job)).toContain(first.encoder)
    killed([first.job])

    expect((await scene.runAgain()).beside).toEqual([])
    await nothingLeftOf(first.job)
  })

  it('of all but the encoder, whose next worker comes after the lease, the job runs again beside nothing', async () => {
    const scene = await leftBehind(kind)
    const worker = scene.start()
    const first = await scene.run(1)
    const { supervisor, worker: killedWorker, job } = await family(worker, first)
    killed([supervisor, killedWorker, job])
    await scene.leaseIsOver()
    scene.start()

    expect((await scene.runAgain()).beside).toEqual([])
    await nothingLeftOf(first.job)
  })

  it('of all but the encoder, beside another worker, the job runs again there beside nothing', async () => {
    const scene = await leftBehind(kind)
    const worker = scene.start()
    const first = await scene.run(1)
    const { supervisor, worker: killedWorker, job } = await family(worker, first)
    await scene.start().events('worker.started')
    killed([supervisor, killedWorker, job])

    expect((await scene.runAgain()).beside).toEqual([])
    await nothingLeftOf(first.job)
  })

  it('of the worker alone, the process goes on with all that it has started', async () => {
    const scene = await leftBehind(kind)
    const worker = scene.start()
    const first = await scene.run(1)
    const { supervisor, worker: killedWorker } = await family(worker, first)
    killed([supervisor, killedWorker])
    await scene.start().events('job.adopted')

    expect(livingIn(first.job)).toContain(first.encoder)
  })

  it('of the whole group by a stop that freezes it beyond its lease, the job runs again beside nothing', async () => {
    const scene = await leftBehind(kind)
    scene.start()
    const first = await scene.run(1)
    process.kill(first.job, 'SIGSTOP')

    expect((await scene.runAgain()).beside).toEqual([])
    await nothingLeftOf(first.job)
  })
})

describe.each(kinds)('nothing that %s has started is left', { timeout: 60_000 }, (kind) => {
  it('if the job is cancelled', async () => {
    const scene = await leftBehind(kind)
    scene.start()
    const first = await scene.run(1)
    await scene.job.cancel()

    await nothingLeftOf(first.job)
  })

  it.each(['returns', 'fails', 'exits', 'throws'])('if its run %s', async (how) => {
    const scene = await leftBehind(kind, { how })
    scene.start()
    const first = await scene.run(1)

    await nothingLeftOf(first.job)
  })

  it.each(['fails', 'exits', 'throws'])('as its job runs again since the first run %s', async (how) => {
    const scene = await leftBehind(kind, { how })
    scene.start()
    await scene.run(1)

    expect((await scene.runAgain()).beside).toEqual([])
  })
})

describe('nothing that an isolated task has started is left', { timeout: 60_000 }, () => {
  it('if its time is over', async () => {
    const scene = await leftBehind('an isolated task', { more: "timeLimit: '1s'," })
    scene.start()
    const first = await scene.run(1)

    await nothingLeftOf(first.job)
  })

  it('if it is to end with its worker, and that is killed', async () => {
    const scene = await leftBehind('an isolated task', { more: "onSupervisorLoss: 'exit'," })
    const worker = scene.start()
    const first = await scene.run(1)
    const { supervisor, worker: killedWorker } = await family(worker, first)
    killed([supervisor, killedWorker])

    await nothingLeftOf(first.job)
  })

  it('if it is to end with its worker, and that is stopped', async () => {
    const scene = await leftBehind('an isolated task', { more: "onSupervisorLoss: 'exit',", grace: '1s' })
    const worker = scene.start()
    const first = await scene.run(1)
    worker.kill('SIGTERM')
    await worker.end()

    await nothingLeftOf(first.job)
  })
})
