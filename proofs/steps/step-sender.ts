/**
 * A sender of the steps drill, in a process of its own: sends every signal of every run once, in an order of its own, and
 * begins with the first that it had not noted as sent when it was killed.
 */

import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { Dice } from '#src/store-testing/sequences/dice.js'
import { ledgerIn, nameOf, note, waitsOf } from './step-plan.js'
import { ownMill, seed, signals } from './step-tasks.js'

const { STEP_FOLDER: folder = '.' } = process.env
const [runs, sender] = process.argv.slice(2).map(Number) as [number, number]
/** Between two signals: senders are about as quick as workers. */
const pauseMs = 30

const mill = ownMill()
await mill.ready()
process.send?.('ready')
const done = new Set(readFileSync(ledgerIn(folder), 'utf8').split('\n').flatMap(sentIn))
const dice = new Dice(seed + sender)
const all = Array.from({ length: runs }, (_, number) =>
  waitsOf(seed, number).map(({ name }) => ({ number, name })),
).flat()
for (let left = all.length; left > 0; left -= 1) {
  const at = dice.whole(0, left - 1)
  const { number, name } = all[at]!
  all[at] = all[left - 1]!
  const data = `${sender}:${nameOf(number)}:${name}`
  if (done.has(data)) continue
  await sent(number, name, data)
  await delay(dice.whole(0, 2 * pauseMs))
}
await mill.close()
process.exit(0)

/** Sends it until there is an answer. */
async function sent(number: number, name: string, data: string): Promise<void> {
  for (;;) {
    note(folder, 'sends', nameOf(number), name, data)
    try {
      note(folder, 'sent', nameOf(number), name, data, await mill.signal(nameOf(number), signals.get(name)!, data))
      return
    } catch {
      await delay(pauseMs)
    }
  }
}

function sentIn(line: string): string[] {
  const [what, , , data] = line.split('\t')
  return what === 'sent' ? [data!] : []
}
