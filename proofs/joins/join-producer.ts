/**
 * A producer of the joins drill, in a process of its own: enqueues the joins from one number to another, and begins with
 * the first that it had not noted as enqueued when it was killed.
 */

import { existsSync, readFileSync } from 'node:fs'
import type { Mill } from 'millrace'
import { type JoinPlan, ledgerIn, note, planOf, rowsOf } from './join-plan.js'
import { crown, looseSum, order, ownMill, row, seed, sums, top } from './join-tasks.js'

const { JOIN_FOLDER: folder = '.' } = process.env
const [from, to] = process.argv.slice(2).map(Number) as [number, number]
const mill = ownMill()

await mill.ready()
process.send?.('ready')
const done = new Set(existsSync(ledgerIn(folder)) ? enqueuedIn(readFileSync(ledgerIn(folder), 'utf8')) : [])
for (let number = from; number < to; number += 1) {
  const plan = planOf(seed, number)
  if (done.has(plan.name)) continue
  if (plan.isOrdered) await mill.enqueue(order, { number })
  else await enqueued(plan)
  note(folder, 'enqueued', plan.name)
}
await mill.close()
process.exit(0)

async function enqueued({ name, form, rule, size, within }: JoinPlan): Promise<void> {
  const rows = rowsOf(name, size)
  if (form === 'alone') await mill.enqueue(sums[rule], { name }, { id: name, after: { rows }, within })
  else if (form === 'loose') await mill.enqueue(looseSum, { name }, { id: name, after: { rows }, within })
  else if (form === 'graph')
    await mill.flow((f) => {
      const shared = f.jobs(row, rows)
      const a = treeIn(f, `${name}-a`, shared, shared)
      const b = treeIn(f, `${name}-b`, shared, shared)
      f.job(crown, { name }, { id: name, after: { rows: shared, a, b }, within })
    })
  else
    await mill.flow((f) => {
      const left = f.jobs(row, rowsOf(`${name}-left`, size))
      const right = form === 'shared' ? left : f.jobs(row, rowsOf(`${name}-right`, size))
      treeIn(f, name, left, right, { id: name, within })
    })
}

type Flow = Parameters<Parameters<Mill['flow']>[0]>[0]
type Rows = ReturnType<typeof rowsIn>

function rowsIn(f: Flow) {
  return f.jobs(row, [])
}

function treeIn(f: Flow, name: string, rows: Rows, others: Rows, how: { id?: string; within?: '4s' | '30m' } = {}) {
  const left = f.job(sums['go-on'], { name: `${name}-left` }, { after: { rows } })
  const right = f.job(sums['go-on'], { name: `${name}-right` }, { after: { rows: others } })
  return f.job(top, { name }, { ...how, after: { left, right } })
}

function* enqueuedIn(ledger: string): Generator<string> {
  for (const line of ledger.split('\n')) {
    const [what, name] = line.split('\t')
    if (what === 'enqueued') yield name!
  }
}
