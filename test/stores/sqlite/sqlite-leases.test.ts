import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { fileClockUrl, writeFileClock } from '#src/store-testing/harness/file-clock.js'
import { enqueueCall, job, queue, SqliteScene } from './sqlite-scene.js'

const scene = new SqliteScene()
afterEach(() => scene.close())

const by = { worker: 'w', leaseMs: 3_600_000 }
/** What is found crashed is suspect: only who holds nothing else is given it. */
const alone = { ...by, alone: true }
const from = [{ queue: queue.name, limit: 1 }]

it('a restart of the machine ends every lease at once; opening the file again does not', async () => {
  const clockFile = join(scene.folder, 'clock')
  writeFileClock(clockFile, 1_000_000, 'boot-1')
  const clock = fileClockUrl(clockFile)
  const before = await scene.opened(clock)
  await before.enqueue([enqueueCall('a')])
  const [first] = (await before.claim(from, by)).claims
  await before.close()

  const sameBoot = await scene.opened(clock)
  expect((await sameBoot.claim(from, by)).claims).toEqual([])
  await sameBoot.close()

  writeFileClock(clockFile, 1_000_000, 'boot-2')
  const afterBoot = await scene.opened(clock)
  const [second] = (await afterBoot.claim(from, alone)).claims
  expect(second).toMatchObject({ id: 'a', attempt: 1, crashes: 0 })
  expect(second!.fence).toBeGreaterThan(first!.fence)
})

it('another boot id at the same boot time ends no lease: it is a container on the same machine', async () => {
  const clockOf = (bootId: string, bootedAt: number) => {
    const text = `export const clock = { now: () => 1_000_000, mono: () => 5_000, bootId: () => '${bootId}', bootedAt: () => ${bootedAt} }`
    return `data:text/javascript,${encodeURIComponent(text)}`
  }
  const before = await scene.opened(clockOf('boot-1', 900_000))
  await before.enqueue([enqueueCall('a')])
  expect((await before.claim(from, by)).claims).toHaveLength(1)

  const container = await scene.opened(clockOf('boot-2', 930_000))
  expect((await container.claim(from, by)).claims).toEqual([])

  const afterBoot = await scene.opened(clockOf('boot-3', 1_000_000))
  expect((await afterBoot.claim(from, alone)).claims).toHaveLength(1)
})

it('a lead from before a restart of the machine leads no more', async () => {
  const clockFile = join(scene.folder, 'clock')
  writeFileClock(clockFile, 1_000_000, 'boot-1')
  const before = await scene.opened(fileClockUrl(clockFile))
  const later = { ...enqueueCall('a'), jobs: [job('a', { delayMs: 3_600_000 })] }
  await before.enqueue([later])
  expect((await before.claim(from, by)).waits[0]).toMatchObject({ reason: 'scheduled', lead: true })
  await before.close()

  writeFileClock(clockFile, 1_000_000, 'boot-2')
  const afterBoot = await scene.opened(fileClockUrl(clockFile))
  expect((await afterBoot.claim(from, { ...by, worker: 'other' })).waits[0]).toMatchObject({ lead: true })
})
