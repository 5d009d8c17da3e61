/**
 * The mover: what Lowkiq's ATestMigrationWorker does. It brings jobs from the old queue into the new one for as long as
 * producers and workers of the old version are there, and ends when the old queue is empty.
 */

import { setTimeout as delay } from 'node:timers/promises'
import mill from './millrace.config.js'

const old = mill.queue('ATestWorker')
for (;;) {
  const moved = await old.move('ATestWorker_V2')
  if (moved > 0) console.log(`${moved} moved`)
  const { ready, scheduled, running, dead } = await old.depth()
  if (ready + scheduled + running + dead === 0) break
  await delay(500)
}
console.log('the old queue is empty')
await mill.close()
