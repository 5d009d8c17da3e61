/**
 * Writes the fixture stores of this version: `npm run fixtures`, once before each release. For each kind of store it starts a
 * real server, leaves the work of `test/stores/fixtures/fixture-work.ts` in it with the build in `dist`, and saves it to the
 * folder of the version in `package.json`. Tests open the stores of every version from then on. Throws if that version has a
 * tag: what it wrote stays as it is.
 */

import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startRedis } from 'millrace/store-testing'
import { PostgresServer } from '#src/store-testing/servers/postgres-server.js'
import { fixtureFile, fixtureKinds, fixturePlace } from '../test/stores/fixtures/fixture-files.js'
import { fixtureWork, leaveWork } from '../test/stores/fixtures/fixture-work.js'

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
if (execFileSync('git', ['tag', '--list', `v${version}`], { encoding: 'utf8' }) !== '')
  throw new Error(
    `${version} is published, and its fixture stores stay as they are. Raise the version in package.json.`,
  )
const folder = join('test/stores/fixtures', version)
mkdirSync(folder, { recursive: true })

const servers = { redis: await startRedis(), postgres: await PostgresServer.start() }
for (const kind of fixtureKinds) {
  const namespace = `fixture-${version}`
  const place = await fixturePlace(kind, namespace, kind === 'sqlite' ? '' : servers[kind].url)
  const work = fixtureWork({ store: place.store, namespace, isWriting: true })
  await leaveWork(work)
  const bytes = await place.save()
  const { ticked } = (await work.mill.schedules.get('often'))!
  if (ticked > 0) throw new Error(`the schedule has ticked before the ${kind} store was saved; run this again`)
  await work.mill.close()
  await place.close()
  const path = join(folder, fixtureFile[kind])
  writeFileSync(path, bytes)
  console.log(`${path}: ${bytes.length} bytes`)
}
for (const server of Object.values(servers)) await server.stop()
