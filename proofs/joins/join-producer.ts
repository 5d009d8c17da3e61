/**
 * A producer of the joins drill, in a process of its own: enqueues the joins from one number to another, and begins with
 * the first that it had not noted as enqueued when it was killed.
 */

import { existsSync, readFileSync } from 'node:fs'
import { ledgerIn, nameOf, note, planOf } from './join-plan.js'
import { mill, row, sums, top } from './join-tasks.js'

const { JOIN_FOLDER: folder = '.', JOIN_SEED = '0' } = process.env
const [from, to] = process.argv.slice(2).map(Number) as [number, number]

const done = new Set(existsSync(ledgerIn(folder)) ? enqueuedIn(readFileSync(ledgerIn(folder), 'utf8')) : [])
for (let number = from; number < to; number += 1) {
  const plan = planOf(Number(JOIN_SEED), number)
  const name = nameOf(plan)
  if (done.has(name)) continue
  const rowsOf = (of: string) => Array.from({ length: plan.size }, (_, n) => ({ of, n }))
  if (plan.tree === undefined)
    await mill.enqueue(sums[plan.rule], { name }, { id: name, after: { rows: rowsOf(name) }, within: '30m' })
  else
    await mill.flow((f) => {
      const first = f.jobs(row, rowsOf(`${name}-left`))
      const second = plan.tree === 'shared' ? first : f.jobs(row, rowsOf(`${name}-right`))
      const left = f.job(sums['go-on'], { name: `${name}-left` }, { after: { rows: first } })
      const right = f.job(sums['go-on'], { name: `${name}-right` }, { after: { rows: second } })
      f.job(top, { name }, { id: name, after: { left, right } })
    })
  note(folder, 'enqueued', name)
}
await mill.close()
process.exit(0)

function* enqueuedIn(ledger: string): Generator<string> {
  for (const line of ledger.split('\n')) {
    const [what, name] = line.split('\t')
    if (what === 'enqueued') yield name!
  }
}
