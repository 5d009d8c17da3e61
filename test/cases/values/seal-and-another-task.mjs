// `seal: { only: true }`. Somebody can write to the store and has no key: he gives a sealed job to another task of its queue, takes its
// meta away, or changes one byte of its head. Right: none of them opens, and each job is buried as `bad-payload` (docs/sealing.md).

import { rmSync } from 'node:fs'
import { DatabaseSync } from '@photostructure/sqlite'
import { defineTask, millrace } from 'millrace'

for (const end of ['', '-wal', '-shm']) rmSync(`seal.db${end}`, { force: true })
const ran = []
const handler =
  (name) =>
  (_, { job }) =>
    void ran.push(`${name} ${job.id} ${JSON.stringify(job.meta)}`)
const remind = defineTask({ name: 'remind', queue: 'q', run: handler('remind') })
const erase = defineTask({ name: 'erase', queue: 'q', run: handler('erase') })
const seal = { current: 'a', keys: { a: Buffer.alloc(32, 7) }, only: true }
const mill = millrace({ store: 'sqlite:./seal.db', tasks: [remind, erase], seal })
for (const id of ['task', 'meta', 'head']) await mill.enqueue(remind, { user: 'ada' }, { id, meta: { dryRun: true } })
const db = new DatabaseSync('seal.db')
db.exec("UPDATE job SET task = 'erase' WHERE id = 'task'; UPDATE job SET meta = NULL WHERE id = 'meta'")
const payload = Buffer.from(db.prepare("SELECT payload FROM job WHERE id = 'head'").get().payload)
payload[0] = 2
db.prepare("UPDATE job SET payload = ? WHERE id = 'head'").run(payload)
db.close()
await mill.worker().start()
await new Promise((done) => setTimeout(done, 1_500))
for (const id of ['task', 'meta', 'head']) {
  const { state, reason } = (await mill.queue('q').jobs.get(id)) ?? { state: 'ran' }
  console.log(
    reason === 'bad-payload' ? 'ok   ' : 'WRONG',
    id,
    state,
    reason ?? '',
    ran.find((one) => one.includes(` ${id} `)) ?? '',
  )
}
process.exit()
