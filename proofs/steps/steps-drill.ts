/**
 * The drill of the steps: workers and senders of signals die by SIGKILL, a second version of the code is deployed when
 * half of the runs have ended, and in the end every run must have done all of its steps, each of them once.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { JobState, Mill } from 'millrace'
import { Dice } from '#src/store-testing/sequences/dice.js'
import { LastingProcess } from '../lasting-process.js'
import { judged, type StepsSeen } from './step-judge.js'
import { deployedIn, ledgerIn, nameOf } from './step-plan.js'
import { connect, run } from './step-tasks.js'

export interface DrillPlan {
  readonly seed: number
  readonly runs: number
  readonly kills: number
  readonly workers: number
  readonly senders: number
}

export interface DrillSeen extends StepsSeen {
  readonly kills: number
  readonly disturbances: number
  readonly seconds: number
}

/** No drill takes longer, however slow the machine. */
const longestMs = 1_200_000
const disturbEveryMs = 4_000

/** `disturb`: something that happens to the store, or to all clocks, about every four seconds. */
export async function stepsDrill(
  plan: DrillPlan,
  url: string | undefined,
  disturb: (dice: Dice) => Promise<void>,
): Promise<DrillSeen> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-steps-'))
  const store = url ?? `sqlite:${join(folder, 'jobs.db')}`
  const env = { MILLRACE_STORE: store, STEP_FOLDER: folder, STEP_SEED: String(plan.seed) }
  const startedAt = performance.now()
  const isLate = () => performance.now() - startedAt > longestMs
  const dice = new Dice(plan.seed)
  const mill = connect(store)
  writeFileSync(ledgerIn(folder), '')
  const numbers = Array.from({ length: plan.runs }, (_, number) => ({ number }))
  await mill.enqueueMany(run, numbers, ({ number }) => ({ id: nameOf(number) }))
  const started = (program: string, ...args: readonly number[]) =>
    new LastingProcess(join(import.meta.dirname, program), args.map(String), env)
  const senders = Array.from({ length: plan.senders }, (_, i) => started('step-sender.ts', plan.runs, i))
  const workers = Array.from({ length: plan.workers }, () => started('step-worker.ts'))
  const crew = [...senders, ...workers]
  let [kills, disturbances] = [0, 0]
  try {
    for (let left = plan.runs; left > 0 && !isLate(); ) {
      const victims = crew.filter(({ isDone, isReady }) => !isDone && isReady)
      if (kills < plan.kills && victims.length > 0 && dice.chance(0.4)) {
        await dice.pick(victims).kill()
        kills += 1
      }
      if ((performance.now() - startedAt) / disturbEveryMs > disturbances) {
        disturbances += 1
        await disturb(dice)
      }
      await delay(dice.whole(20, 250))
      left = await leftIn(mill).catch(() => left)
      if (left >= plan.runs / 2 || existsSync(deployedIn(folder))) continue
      writeFileSync(deployedIn(folder), '')
      for (const worker of workers) await worker.kill()
    }
    const seen = judged(plan.seed, plan.runs, readFileSync(ledgerIn(folder), 'utf8'), await statesOf(mill, plan))
    return { ...seen, kills, disturbances, seconds: Math.round((performance.now() - startedAt) / 1_000) }
  } finally {
    await Promise.all(crew.map((one) => one.end()))
    await mill.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Dead runs are left too: the drill then goes on to its longest time, and says so. */
async function leftIn(mill: Mill): Promise<number> {
  const { ready, scheduled, running, waiting, dead } = await mill.queue('runs').depth()
  return ready + scheduled + running + waiting + dead
}

async function statesOf(mill: Mill, { runs }: DrillPlan): Promise<Map<string, JobState | 'gone'>> {
  const states = new Map<string, JobState | 'gone'>()
  for (let number = 0; number < runs; number += 1) {
    const name = nameOf(number)
    states.set(name, (await mill.job(run, name).status()) ?? 'gone')
  }
  return states
}
