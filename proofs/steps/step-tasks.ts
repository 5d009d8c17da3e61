/**
 * The task of the steps drill, which does what the plan says, and writes into the ledger each call of the function of a
 * step, each result that it is given, and each signal. Each process of the drill loads this file.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { defineSignal, defineTask, type JobContext, millrace } from 'millrace'
import { type Act, nameOf, note, planOf, signalNames, versionIn } from './step-plan.js'

const { STEP_FOLDER: folder = '.', STEP_SEED = '0', MILLRACE_STORE = 'memory:' } = process.env
export const seed = Number(STEP_SEED)
const version = versionIn(folder)

/** The data says who sent it. */
export const signals = new Map(signalNames.map((name) => [name as string, defineSignal<string>({ name })]))

let calls = 0

/** The result of a step tells its call from all others. */
async function called(run: string, step: string, pauseMs: number, isToFail: boolean): Promise<string> {
  calls += 1
  const value = `${step}@${process.pid}.${calls}`
  note(folder, 'calls', run, step, value)
  await delay(pauseMs)
  if (isToFail) throw new Error(`${step} fails`)
  return value
}

async function done(act: Act, run: string, ctx: JobContext): Promise<void> {
  const step = async (name: string, pauseMs = 0, isToFail = false) => {
    const value = await ctx.step(name, () => called(run, name, pauseMs, isToFail))
    note(folder, 'gets', run, name, value)
  }
  if (act.kind === 'step') await step(act.name, act.pauseMs, act.failsAt.includes(ctx.job.attempt))
  else if (act.kind === 'side') await Promise.all(act.names.map((name) => step(name)))
  else if (act.kind === 'sleep') await ctx.sleep(act.name, act.ms)
  else {
    const signal = signals.get(act.name)!
    const data = act.ms === undefined ? await ctx.waitFor(signal) : await ctx.waitFor(signal, { timeout: act.ms })
    note(folder, 'hears', run, act.name, data ?? '-')
  }
}

export const run = defineTask({
  name: 'run',
  queue: 'runs',
  retry: { max: 10, backoff: () => 50 },
  run: async ({ number }: { number: number }, ctx) => {
    note(folder, 'begins', nameOf(number), version)
    for (const act of planOf(seed, number, version)) await done(act, nameOf(number), ctx)
    note(folder, 'ends', nameOf(number), version)
  },
})

export const connect = (store: string) =>
  millrace({
    store,
    queues: {
      runs: { lease: '3s', longPoll: '500ms', maxCrashes: 1_000, shards: 2, retention: { results: { age: '1h' } } },
    },
    tasks: [run],
  })

/** The mill of a process of the drill. */
export const ownMill = () => connect(MILLRACE_STORE)
