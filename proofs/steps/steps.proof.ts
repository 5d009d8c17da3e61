/**
 * Proof of the steps: a step whose result was stored is not called again, a signal is heard once and by its run, and no
 * run is stuck, whatever dies meanwhile: workers, senders, the server, with clocks that step and a deploy in the middle.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startRedis } from 'millrace/store-testing'
import type { Dice } from '#src/store-testing/sequences/dice.js'
import { redisVersion } from '../redis-version.js'
import type { Report, Summary } from '../report.js'
import { ClockShim } from '../starts/clock-shim.js'
import { type DrillSeen, stepsDrill } from './steps-drill.js'

export const seed = 530_000

/** `STEPS_LEGS`: some of the legs, by their names. */
const { STEPS_SCALE: scale = '1', STEPS_LEGS: legs } = process.env
const runs = Math.round(500 * Number(scale))
const plan = { seed, runs, kills: Math.round(300 * Number(scale)), workers: 4, senders: 2 }
const durable = ['appendonly yes', 'appendfsync always', 'auto-aof-rewrite-min-size 8mb']
const shiftsMs = [-2_000, 0, 0, 2_000, 10_000]

export async function prove(report: Report): Promise<Summary> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-clock-'))
  const shim = ClockShim.made(folder)
  // Everything that is started from here on has this clock: workers, senders and servers.
  Object.assign(process.env, shim.env)
  const step = async (dice: Dice) => shim.set(dice.pick(shiftsMs))
  const all = {
    SQLite: () => stepsDrill(plan, undefined, step),
    'Redis with restarts': () => onRedis(report, step),
  }
  const summary: Record<string, unknown> = {}
  try {
    for (const [name, drill] of Object.entries(all)) {
      if (legs !== undefined && !legs.split(',').some((leg) => name.toLowerCase().startsWith(leg))) continue
      shim.set(0)
      summary[name] = told(report, name, await drill())
    }
    return summary
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function onRedis(report: Report, step: (dice: Dice) => Promise<void>): Promise<DrillSeen> {
  const redis = await startRedis({ config: durable })
  try {
    report.say(`the server: ${await redisVersion(redis)}`)
    return await stepsDrill(plan, redis.url, async (dice) => {
      await step(dice)
      if (!dice.chance(0.5)) return
      await redis.kill()
      await redis.restart()
    })
  } finally {
    await redis.stop()
  }
}

function told(report: Report, store: string, seen: DrillSeen): Summary {
  const { calledAgain, changed, lost, twice, stuck, ...figures } = seen
  report.say(`— ${store}: ${JSON.stringify(figures)}`)
  const none = (what: string, found: readonly string[]) =>
    report.claim(
      `${store}: ${what}: ${found.length}${found.length > 0 ? ` (${found.slice(0, 5).join('; ')})` : ''}`,
      found.length === 0,
    )
  none('finished steps that were called again', calledAgain)
  none('steps whose results changed', changed)
  none('signals that were taken and not heard, or heard and not sent', lost)
  none('signals that were heard or taken twice', twice)
  none('runs that are stuck, or have not done all of their steps', stuck)
  report.claim(`${store}: runs that the deploy caught in the middle: ${seen.across}`, seen.across > 0)
  return figures
}
