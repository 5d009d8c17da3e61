/**
 * Proof: of 1,000 transactions of a user, exactly the committed orders have jobs. The transactions write orders and
 * enqueue jobs by `mill.enqueueIn`, and end in commits, rollbacks and kill -9 at any step. The proof runs on each
 * installed driver: name the folder of `better-sqlite3` by NODE_PATH. It takes about a minute a driver.
 */

import { createRequire } from 'node:module'
import type { Report } from '../report.js'
import { type EnqueueInOutcome, orders, unrungStarts } from './enqueue-in.js'
import type { ProducerDriver } from './enqueue-in-words.js'

export const seed = 20_261_125
const rounds = 1_000

export async function prove(report: Report): Promise<Record<string, unknown>> {
  const drivers: ProducerDriver[] = ['@photostructure/sqlite']
  if (isThere('better-sqlite3')) drivers.push('better-sqlite3')
  else report.say('better-sqlite3 is not there and was not tried')
  const outcomes: Record<string, unknown> = {}
  for (const driver of drivers) {
    const outcome = await orders(driver, rounds, seed)
    judge(report, driver, outcome)
    outcomes[driver] = outcome
  }
  const starts = (await unrungStarts(20)).sort((one, other) => one - other)
  const [median, slowest] = [starts[10]!, starts.at(-1)!]
  report.say(
    `started after a commit that rang nobody: median ${median.toFixed(0)} ms, slowest ${slowest.toFixed(0)} ms`,
  )
  report.claim('an idle worker starts such a job within a second', slowest <= 1_000)
  return { ...outcomes, unrung: { median, slowest } }
}

function judge(report: Report, driver: string, outcome: EnqueueInOutcome): void {
  const { rounds: ended, orders: committed, ran, withoutJob, withoutOrder, ranTwice, findings } = outcome
  const told = Object.entries(ended).map(([end, count]) => `${end} ${count}`)
  report.say(`${driver}: ${rounds} transactions: ${told.join(', ')}`)
  report.say(`  ${committed} orders committed, ${ran} jobs ran`)
  report.claim(`${driver}: each committed order has its job`, withoutJob.length === 0)
  report.claim(`${driver}: no job is there for an order that was not committed`, withoutOrder.length === 0)
  report.claim(`${driver}: each ran once`, ranTwice.length === 0)
  report.claim(
    `${driver}: every kind of end came about`,
    Object.values(ended).every((count) => count > 0),
  )
  report.claim(`${driver}: what the store holds fits together ${findings.join(' · ')}`.trim(), findings.length === 0)
}

function isThere(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name)
    return true
  } catch {
    return false
  }
}
