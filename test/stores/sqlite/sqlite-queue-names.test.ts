import { readdirSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { storedQueue } from '../../stored-queue.js'
import { enqueueCall, queue, SqliteScene } from './sqlite-scene.js'

it('listing the queues leaves the file unchanged', async () => {
  const scene = new SqliteScene()
  try {
    const first = await scene.opened()
    await first.enqueue([enqueueCall('a')])
    await first.close()
    const db = (await loadDriver())(scene.file)
    // Whoever opens the file to work on it voids the leases of another boot.
    db.exec("UPDATE meta SET value = 'another boot'; PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    const [before, files] = [readFileSync(scene.file), readdirSync(scene.folder)]

    const store = scene.store()
    expect(await store.records.queues()).toEqual([storedQueue(queue.name)])
    await store.close()

    expect(readFileSync(scene.file).equals(before)).toBe(true)
    expect(files).toEqual(expect.arrayContaining(readdirSync(scene.folder)))
  } finally {
    await scene.close()
  }
})
