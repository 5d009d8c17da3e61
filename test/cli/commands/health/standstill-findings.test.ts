/** What `doctor` finds of queues that stand still. */

import { describe, expect, it } from 'vitest'
import { standstills } from '#src/cli/commands/queues/queue-findings.js'
import { Scene } from '../../../client/jobs/standstills.js'

const found = async ({ mill }: Scene) => standstills(mill, (await mill.storedQueues())!)

/** A job that a worker has put back, as those do that do not know its task. */
async function putBack(scene: Scene, id: string): Promise<void> {
  await scene.send(id)
  const [claim] = await scene.claim('mail')
  await scene.store.settle([{ ...claim!, kind: 'release', delayMs: 30_000, error: 'no handler here' }])
}

describe.each(['memory', 'sqlite', 'postgres', 'redis'] as const)('doctor on %s', (kind) => {
  it('names the task of jobs that are put back as no worker knows it', async () => {
    const scene = await Scene.on(kind)
    await scene.serve({ tasks: ['bill'] })
    for (const id of ['a', 'b']) await putBack(scene, id)

    expect(await found(scene)).toEqual([
      {
        level: 'warning',
        what: 'queue',
        text: "2 jobs are put back again and again in queue 'mail': the worker of its queue does not know the task 'send'; start one that does.",
      },
    ])
    await scene.serve()
    expect(await found(scene)).toEqual([])
  })
})
