/** A volume that may not be written: what a store there says, and that its jobs are there when it may be again. */

import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { enqueueCall, queue } from '../sqlite-scene.js'
import { SmallVolume } from './small-volume.js'

it('a read-only volume is refused with its path, and the jobs are there when it is writable again', async (context) => {
  const volume = SmallVolume.of(6)
  if (volume === undefined) return context.skip(`no volume can be mounted here (${SmallVolume.why})`)
  onTestFinished(() => volume.close())
  const storeIn = (file: string) => {
    const store = new SqliteStore({ file: join(volume.folder, file) })
    onTestFinished(() => store.close())
    return store
  }
  const before = storeIn('jobs.db')
  await before.open([queue])
  await before.enqueue([enqueueCall('a')])
  await before.close()

  volume.remount('ro')
  for (const file of ['jobs.db', 'new.db']) {
    const error = await storeIn(file)
      .open([queue])
      .catch((error: unknown) => error)
    expect(error).toBeInstanceOf(StoreUnavailableError)
    expect((error as Error).message).toContain(join(volume.folder, file))
  }

  volume.remount('rw')
  const after = storeIn('jobs.db')
  await after.open([queue])
  expect((await after.depth([queue.name])).depths[0]!.ready).toBe(1)
})
