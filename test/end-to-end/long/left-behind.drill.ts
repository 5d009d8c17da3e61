/** Nothing that a job has started outlives it, however it ends. Its single deaths: `family-deaths.drill.ts`. */

import { describe, expect, it } from 'vitest'
import { family, type Kind, killed, leftBehind, nothingLeftOf } from './left-behind.js'

const kinds: readonly Kind[] = ['an isolated task', 'exec']

describe.each(kinds)('a job of %s runs again with nothing left of its first run', { timeout: 60_000 }, (kind) => {
  it('after a kill of its process and then of the worker', async () => {
    const scene = await leftBehind(kind)
    const command = scene.start()
    const first = await scene.run(1)
    const { supervisor, worker, job } = await family(command, first)
    killed([job, worker])
    if (worker === supervisor) scene.start()

    expect((await scene.runAgain()).beside).toEqual([])
    await nothingLeftOf(first.job)
  })

  it('after a kill of all but the encoder, with the next worker after the lease', async () => {
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

  it('after a kill of all but the encoder, next to another worker', async () => {
    const scene = await leftBehind(kind)
    const worker = scene.start()
    const first = await scene.run(1)
    const { supervisor, worker: killedWorker, job } = await family(worker, first)
    await scene.start().events('worker.started')
    killed([supervisor, killedWorker, job])

    expect((await scene.runAgain()).beside).toEqual([])
    await nothingLeftOf(first.job)
  })

  it('after a freeze of the whole group beyond its lease', async () => {
    const scene = await leftBehind(kind)
    scene.start()
    const first = await scene.run(1)
    process.kill(first.job, 'SIGSTOP')

    expect((await scene.runAgain()).beside).toEqual([])
    await nothingLeftOf(first.job)
  })
})

describe.each(kinds)('no process that %s has started is left', { timeout: 60_000 }, (kind) => {
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

  it.each(['fails', 'exits', 'throws'])('when its job runs again because the first run %s', async (how) => {
    const scene = await leftBehind(kind, { how })
    scene.start()
    await scene.run(1)

    expect((await scene.runAgain()).beside).toEqual([])
  })
})

describe('no process that an isolated task has started is left', { timeout: 60_000 }, () => {
  it('if it exceeds its time limit', async () => {
    const scene = await leftBehind('an isolated task', { more: "timeLimit: '1s'," })
    scene.start()
    const first = await scene.run(1)

    await nothingLeftOf(first.job)
  })

  it('if it may not outlive its worker, and that is killed', async () => {
    const scene = await leftBehind('an isolated task', { more: "onSupervisorLoss: 'exit'," })
    const worker = scene.start()
    const first = await scene.run(1)
    const { supervisor, worker: killedWorker } = await family(worker, first)
    killed([supervisor, killedWorker])

    await nothingLeftOf(first.job)
  })

  it('if it may not outlive its worker, and that is stopped', async () => {
    const scene = await leftBehind('an isolated task', { more: "onSupervisorLoss: 'exit',", grace: '1s' })
    const worker = scene.start()
    const first = await scene.run(1)
    worker.kill('SIGTERM')
    await worker.end()

    await nothingLeftOf(first.job)
  })
})
