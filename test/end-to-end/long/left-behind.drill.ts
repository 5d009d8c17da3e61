/** Nothing that a job has started outlives it, however it ends. Its single deaths: `family-deaths.drill.ts`. */

import { describe, expect, it } from 'vitest'
import { family, type Kind, killed, leftBehind, nothingLeftOf } from './left-behind.js'

const kinds: readonly Kind[] = ['an isolated task', 'exec']

/** A scene whose first run has begun, under this command. */
async function begun(kind: Kind, options?: Parameters<typeof leftBehind>[1]) {
  const scene = await leftBehind(kind, options)
  const command = scene.start()
  const first = await scene.run(1)
  return { scene, command, first }
}

/** The job runs again, with no encoder of an earlier run beside it, and then nothing of the first run lives. */
async function runsAlone(scene: Awaited<ReturnType<typeof leftBehind>>, job: number): Promise<void> {
  expect((await scene.runAgain()).beside).toEqual([])
  await nothingLeftOf(job)
}

describe.each(kinds)('a job of %s runs again with nothing left of its first run', { timeout: 60_000 }, (kind) => {
  it('after a kill of its process and then of the worker', async () => {
    const { scene, command, first } = await begun(kind)
    const { supervisor, worker, job } = await family(command, first)
    killed([job, worker])
    if (worker === supervisor) scene.start()

    await runsAlone(scene, first.job)
  })

  it('after a kill of all but the encoder, with the next worker after the lease', async () => {
    const { scene, command, first } = await begun(kind)
    const { supervisor, worker, job } = await family(command, first)
    killed([supervisor, worker, job])
    await scene.leaseIsOver()
    scene.start()

    await runsAlone(scene, first.job)
  })

  it('after a kill of all but the encoder, next to another worker', async () => {
    const { scene, command, first } = await begun(kind)
    const { supervisor, worker, job } = await family(command, first)
    await scene.start().events('worker.started')
    killed([supervisor, worker, job])

    await runsAlone(scene, first.job)
  })

  it('after a freeze of the whole group beyond its lease', async () => {
    const { scene, first } = await begun(kind)
    process.kill(first.job, 'SIGSTOP')

    await runsAlone(scene, first.job)
  })
})

describe.each(kinds)('no process that %s has started is left', { timeout: 60_000 }, (kind) => {
  it('if the job is cancelled', async () => {
    const { scene, first } = await begun(kind)
    await scene.job.cancel()

    await nothingLeftOf(first.job)
  })

  it.each(['returns', 'fails', 'exits', 'throws'])('if its run %s', async (how) => {
    const { first } = await begun(kind, { how })

    await nothingLeftOf(first.job)
  })

  it.each(['fails', 'exits', 'throws'])('when its job runs again because the first run %s', async (how) => {
    const { scene } = await begun(kind, { how })

    expect((await scene.runAgain()).beside).toEqual([])
  })
})

describe('no process that an isolated task has started is left', { timeout: 60_000 }, () => {
  it('if it exceeds its time limit', async () => {
    const { first } = await begun('an isolated task', { more: "timeLimit: '1s'," })

    await nothingLeftOf(first.job)
  })

  it('if it may not outlive its worker, and that is killed', async () => {
    const { command, first } = await begun('an isolated task', { more: "onSupervisorLoss: 'exit'," })
    const { supervisor, worker } = await family(command, first)
    killed([supervisor, worker])

    await nothingLeftOf(first.job)
  })

  it('if it may not outlive its worker, and that is stopped', async () => {
    const { command, first } = await begun('an isolated task', {
      more: "onSupervisorLoss: 'exit',",
      grace: '1s',
    })
    command.kill('SIGTERM')
    await command.end()

    await nothingLeftOf(first.job)
  })
})
