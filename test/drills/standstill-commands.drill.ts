/** Why a job waits on a server: each standstill that can be provoked, as the commands tell it. */

import { describe, it } from 'vitest'
import { expectCommandsToTell } from '../client/jobs/standstill-commands.js'
import { Scene, standstills } from '../client/jobs/standstills.js'

describe.each(['postgres', 'redis'] as const)('on %s, why a job waits', (kind) => {
  it.each(Object.entries(standstills))('is shown by the commands for %s', async (_, row) => {
    const scene = await Scene.on(kind, row.queues)
    if (!row.isUnserved) await scene.serve()
    await expectCommandsToTell(scene, await row.provoke(scene), row)
  })
})
