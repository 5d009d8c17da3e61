/**
 * One mutant under trial: prints what shows the difference between its store and a good one, or nothing. `mutants.ts`
 * runs it.
 */

import { pathToFileURL } from 'node:url'
import { compareStores, type HarnessMaker, modelOf } from 'millrace/store-testing'
import type { Draws } from './mutants.js'

/** For one sequence or one case. A good store needs a few seconds. */
const withinMs = 60_000

const [dist = '', store = '', how = ''] = process.argv.slice(2)
const broken = (path: string) => import(pathToFileURL(`${dist}/store-testing/${path}`).href)
const testing: typeof import('millrace/store-testing') = await broken('store-testing.js')
const makeSubject = await harnessOf(store)

async function harnessOf(store: string): Promise<HarnessMaker> {
  if (store === 'memory') return testing.memoryHarness
  if (store === 'sqlite') return (await broken('harness/sqlite-harness.js')).sqliteHarness
  if (store.startsWith('postgres:')) return (await broken('harness/postgres-harness.js')).postgresHarness(store)
  return (await broken('harness/redis-harness.js')).redisHarness(store)
}

/** Reports a difference, or an error of the broken store. In both cases the mutant is caught. */
function tell(what: string): never {
  console.log(what)
  process.exit(0)
}

/** What the work makes, or the end of this process: a mutant that hangs is caught by that. */
async function bounded<Made>(what: string, work: Promise<Made>): Promise<Made> {
  const timer = setTimeout(() => tell(`${what}, which hangs`), withinMs)
  return work.finally(() => clearTimeout(timer))
}

async function compare({ kind = 'plain', seed, sequences, steps }: Draws): Promise<void> {
  for (let i = 0; i < sequences; i += 1) {
    const subject = await makeSubject()
    // The model comes from the good copy, because the mutation may be in rules that all stores share.
    const model = await modelOf(subject)
    const sequence = `sequence ${i + 1}`
    await bounded(sequence, compareStores(model, subject, { kind, seed: seed + i, steps })).catch(() => tell(sequence))
    await model.close()
    // Some harnesses examine what is stored.
    await bounded(sequence, subject.close()).catch(() => tell(`what ${sequence} has left`))
  }
}

async function examine(concern: string): Promise<void> {
  const { cases } = testing.storeContract.find((one) => one.concern === concern)!
  for (const one of cases) {
    const title = `'${one.title}'`
    await bounded(title, testing.runContractCase(makeSubject, one)).catch(() => tell(title))
  }
}

const task = JSON.parse(how) as Draws | { readonly concern: string }
await ('concern' in task ? examine(task.concern) : compare(task))
// Connections of harnesses may be open.
process.exit(0)
