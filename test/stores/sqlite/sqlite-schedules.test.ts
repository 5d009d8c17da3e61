/** Schedules of a SQLite store: what looking for due ones costs the others. */
import { expect, it, onTestFinished } from 'vitest'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { SqliteScene } from './sqlite-scene.js'

it('a worker that does not lead writes nothing when it looks for due schedules', async () => {
  const scene = new SqliteScene()
  onTestFinished(() => scene.close())
  const { schedules } = await scene.opened()
  const db = (await loadDriver())(scene.file)
  onTestFinished(() => db.close())
  const version = () => db.prepare('PRAGMA data_version').get()
  const before = version()
  expect((await schedules.due('leads', 60_000, 10)).isLead).toBe(true)
  const led = version()
  expect((await schedules.due('follows', 60_000, 10)).isLead).toBe(false)
  expect(led).not.toEqual(before)
  expect(version()).toEqual(led)
})
