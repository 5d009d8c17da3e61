/** Live messages of a SQLite store: a watch that was not renewed in time, because its process stood still. */
import { expect, it, onTestFinished } from 'vitest'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { queue, SqliteScene } from './sqlite-scene.js'

it('a lapsed watch learns of a possible gap, and then receives messages again', async () => {
  const scene = new SqliteScene()
  onTestFinished(() => scene.close())
  const [watching, publishing] = [await scene.opened(), await scene.opened()]
  const heard: (string | undefined)[] = []
  let wake = () => {}
  const next = () => new Promise<void>((resolve) => (wake = resolve))
  const hear = (message: string | undefined) => {
    heard.push(message)
    wake()
  }
  await watching.live.watch(queue.name, hear, new AbortController().signal)
  const db = (await loadDriver())(scene.file)
  // As whoever watches next does with those that have not said for long enough that they still do.
  db.exec('DELETE FROM live_watch')
  db.close()
  expect(await publishing.live.publish(queue.name, 'missed')).toBe(false)

  const told = next()
  await told
  expect(heard).toEqual([undefined])
  const again = next()
  expect(await publishing.live.publish(queue.name, 'heard')).toBe(true)
  await again
  expect(heard).toEqual([undefined, 'heard'])
})
