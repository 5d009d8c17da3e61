// A state that arrives after a newer one of its id has run is run late. The handler compares versions before it writes, so
// nothing goes back; a newer one counts.
import { defineOrderedTask, millrace } from 'millrace'

const index = new Map() // stands for the other system
const sync = defineOrderedTask({
  name: 'sync',
  id: ({ sku }) => sku,
  score: ({ version }) => version,
  merge: 'latest',
  run(statesBySku) {
    for (const [sku, states] of statesBySku) {
      const newest = states.at(-1)
      if (newest.version <= (index.get(sku) ?? 0)) continue // a newer state is there already
      index.set(sku, newest.version)
    }
  },
})
const mill = millrace({ store: process.env.STORE ?? 'memory:', namespace: `late${Date.now()}`, tasks: [sync] })
await mill.worker().start()
const seen = []
for (const version of [3, 2, 4]) {
  const job = await mill.enqueue(sync, { sku: 'cup', version })
  await job.result({ timeout: '10s' })
  seen.push(index.get('cup'))
}
console.log(`${seen}` === '3,3,4' ? 'ok' : 'WRONG', { seen: `${seen}` })
await mill.close()
