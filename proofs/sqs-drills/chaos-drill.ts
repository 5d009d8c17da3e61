/** The chaos on SQS: jobs on worker processes that are killed and stopped, and what the ledger of their runs says of it. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { defineOrderedTask, defineTask, millrace } from 'millrace'
import * as v from 'valibot'
import { strictSqs } from '../../test/stores/sqs/strict-sqs.js'
import { attack } from '../attack.js'
import { Crew, leaseMs, type StopLeases } from '../crew.js'
import { type RunJudgement, runJudgement } from './run-judge.js'
import { RunLedger } from './run-ledger.js'

export interface ChaosPlan {
  readonly kind: 'plain' | 'ordered'
  readonly jobs: number
  /** Ids that the jobs of an ordered task are dealt out to, in turn. */
  readonly ids: number
  readonly processes: number
  /** How long a run takes on average. */
  readonly runMs: number
  readonly kills: number
  readonly stops: number
  /** The share of messages that is delivered twice, 0 … 1. FIFO queues have none. */
  readonly copies: number
  readonly random: () => number
  readonly withinMs: number
}

export interface ChaosOutcome extends RunJudgement {
  readonly seconds: number
  readonly kills: number
  readonly stops: number
  readonly shortestStopMs: number
  /** Messages that SQS delivered by a copy. */
  readonly copied: number
  /** What lies in the dead-letter queue. */
  readonly dead: number
  readonly refused: number
  readonly failedCalls: readonly string[]
  readonly calls: Readonly<Record<string, number>>
}

/** Of each worker. */
export const concurrency = 10
/** What a poll brings is hidden for a lease and 5 s, 8 s in all; who is stopped for longer has lost it. */
const stopLeases: StopLeases = [3, 4]
/** The producer is ahead of the workers by so many jobs at most, so that it goes on as long as they do. */
const mostAhead = 500
const perCall = 100
const lookMs = 50

const numbered = v.object({ id: v.string(), n: v.number() })

export function chaosTasks() {
  const plain = defineTask({ name: 'chaos', input: v.number() })
  const ordered = defineOrderedTask({ name: 'lanes', input: numbered, id: ({ id }: { readonly id: string }) => id })
  return { plain, ordered }
}

export const chaosQueues = ({ queue }: { readonly queue: string }) => ({ [queue]: { lease: leaseMs } })

export async function drillChaos(plan: ChaosPlan): Promise<ChaosOutcome> {
  const { kind, jobs, processes, random, withinMs } = plan
  const sqs = await strictSqs()
  const folder = mkdtempSync(join(tmpdir(), 'millrace-chaos-'))
  const file = join(folder, 'ledger.db')
  const ledger = await RunLedger.open(file)
  const store = `sqs://eu-central-1?endpoint=${sqs.endpoint}`
  const { plain, ordered } = chaosTasks()
  const task = kind === 'plain' ? plain : ordered
  const mill = millrace({ store, tasks: [task], queues: chaosQueues(task) })
  // Jobs come in no further ahead of the next fault than of the workers: no run is over before its last fault.
  let faultAt = 0
  const crew = new Crew(
    'sqs-drills/chaos-worker.ts',
    [store, file, kind, String(plan.runMs)],
    async (worker) => ledger.isAtWork(worker),
    async () => {
      faultAt += perCall / 10
    },
  )
  const startedAt = performance.now()
  const until = async (isSo: () => boolean | Promise<boolean>) => {
    while (!(await isSo())) {
      if (performance.now() > startedAt + withinMs) throw new Error(`not so within ${withinMs} ms: ${isSo}`)
      await delay(lookMs)
    }
  }
  const reached = (count: number) => until(() => ledger.done >= count)
  const isEmpty = async () => {
    const { ready, scheduled, running } = await mill.queue(task.queue).depth()
    return ready + scheduled + running === 0 && (await sqs.copies()).left === 0
  }
  const enqueueAll = async () => {
    for (let from = 0; from < jobs; from += perCall) {
      const some = Array.from({ length: Math.min(perCall, jobs - from) }, (_, i) => from + i)
      if (kind === 'plain') await mill.enqueueMany(plain, some)
      else
        await mill.enqueueMany(
          ordered,
          some.map((n) => ({ id: `id-${n % plan.ids}`, n })),
        )
      await until(() => Math.min(faultAt, ledger.done) >= from - mostAhead)
    }
  }
  try {
    await mill.createQueues()
    if (plan.copies > 0)
      await sqs.inject({ call: 'ReceiveMessage', copies: plan.copies, times: Number.POSITIVE_INFINITY })
    await Promise.all(Array.from({ length: processes }, () => crew.start()))
    const deeds = [
      { times: plan.kills, make: () => crew.killOne(random) },
      { times: plan.stops, make: () => crew.stopOne(random, stopLeases), lasts: true },
    ] as const
    const begunAt = performance.now()
    const assault = async () => {
      await attack(deeds, random, (share) => {
        faultAt = Math.max(faultAt, share * jobs)
        return reached(share * jobs)
      })
      faultAt = jobs
    }
    await Promise.all([enqueueAll(), assault()])
    await reached(jobs)
    await until(isEmpty)
    const seconds = (performance.now() - begunAt) / 1_000
    await crew.end()
    const { bodies } = await sqs.copies()
    const copied = kind === 'plain' ? bodies.map(numberIn) : []
    const { faults, refused, failedCalls } = crew
    const stops = faults.filter((fault) => fault.kind === 'stop')
    return {
      seconds,
      kills: faults.length - stops.length,
      stops: stops.length,
      shortestStopMs: Math.min(...stops.map(({ at, endedAt = at }) => endedAt - at)),
      copied: copied.length,
      dead: (await mill.queue(task.queue).depth()).dead,
      ...{ refused, failedCalls, calls: await sqs.calls() },
      ...runJudgement({ runs: ledger.runs(), faults, jobs, copied: new Set(copied) }),
    }
  } finally {
    crew.kill()
    ledger.close()
    await mill.close()
    await sqs.close()
    rmSync(folder, { recursive: true })
  }
}

/** The number of the job that is in a message. */
function numberIn(body: string): number {
  return Number((JSON.parse(body) as { payload: string }).payload)
}
