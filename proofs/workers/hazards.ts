/** Hazards: poison, signals, blocked loops and deaf handlers. Each is a scenario that returns its figures. */

import { setTimeout as delay } from 'node:timers/promises'
import type { Duration } from 'millrace'
import type { AuditEntry } from 'millrace/store-testing'
import type { OpenGround } from '../ground.js'
import { batched, deaf, innocent, type Poison, patient, poison, spin, spinOnce, stubborn } from './hazards.config.js'
import { Supervised } from './supervised.js'

/** One job kills every process that runs it, among other jobs that run one by one. */
export async function poisonAmong(
  plan: {
    readonly kind: Poison
    readonly innocents: number
    readonly everyMs: number
    readonly processes: number
    readonly concurrency: number
  },
  open?: OpenGround,
) {
  const scene = await Supervised.on(open)
  try {
    const env = plan.kind === 'memory' ? { NODE_OPTIONS: '--max-old-space-size=96' } : {}
    const work = await scene.work(['--concurrency', String(plan.concurrency)], { processes: plan.processes, env })
    const startedAt = performance.now()
    // In the middle of the others.
    const at = Math.floor(plan.innocents / 5)
    for (let i = 0; i < plan.innocents; i += 1) {
      if (i === at) await scene.mill.enqueue(poison, plan.kind, { id: 'culprit' })
      await scene.mill.enqueue(innocent, 50, { id: `innocent-${i}` })
      await delay(plan.everyMs)
    }
    await scene.until(
      async () => {
        const [depth] = await scene.mill.depths(['default'])
        return depth!.dead + depth!.processed >= plan.innocents + 1
      },
      'all jobs ended',
      300_000,
    )
    const seconds = (performance.now() - startedAt) / 1_000
    const record = await scene.mill.job(poison, 'culprit').record()
    const crashes = work.said('job.crashed')
    return {
      seconds,
      culprit: record && {
        state: record.state,
        reason: record.reason,
        crashes: record.crashes,
        attempt: record.attempt,
      },
      culpritRuns: scene.handlerCalls('poison').length,
      othersCharged: crashes.filter((crash) => crash['charged'] === true && crash['id'] !== 'culprit').length,
      restarts: work.said('process.exited').length,
      ...ends(await scene.ground.audit(), (id) => id !== 'culprit'),
    }
  } finally {
    await scene.close()
  }
}

/** Ten jobs of one claim, one of which kills its process. */
export async function poisonInBatch(open?: OpenGround) {
  const scene = await Supervised.on(open)
  try {
    const ids = Array.from({ length: 10 }, (_, i) => (i === 4 ? 'culprit' : `innocent-${i}`))
    await scene.mill.enqueueMany(innocent, Array(4).fill(200), (_, i) => ({ id: ids[i]! }))
    await scene.mill.enqueue(poison, 'abort', { id: 'culprit' })
    await scene.mill.enqueueMany(innocent, Array(5).fill(200), (_, i) => ({ id: ids[i + 5]! }))
    await scene.work(['--concurrency', '10'])
    await scene.until(async () => {
      const [depth] = await scene.mill.depths(['default'])
      return depth!.dead === 1 && depth!.processed === 9
    }, 'nine jobs done and one dead')
    return {
      culpritRuns: scene.handlerCalls('poison').length,
      ...ends(await scene.ground.audit(), (id) => id !== 'culprit'),
    }
  } finally {
    await scene.close()
  }
}

/**
 * SIGTERM while one slot has a batch of jobs: when the other jobs are back, when they run elsewhere, and when the
 * process ends.
 */
export async function termDuringBatch(open?: OpenGround) {
  const scene = await Supervised.on(open)
  try {
    const first = await scene.work(['--concurrency', '1', '--queues', 'batches', '--grace', '10s'])
    const jobs = await scene.mill.enqueueMany(batched, [4_000, 200, 200, 200, 200, 200])
    await scene.until(() => scene.handlerCalls('begin').length === 1, 'the first job begins')
    const at = Date.now()
    const stopping = first.stop()
    let back: Awaited<ReturnType<typeof scene.ground.audit>> = []
    const isBack = async () => {
      back = (await scene.ground.audit()).filter(({ kind }) => kind === 'requeue')
      return back.length >= 5
    }
    await scene.until(isBack, 'what was not begun is put back')
    await scene.work(['--concurrency', '5', '--queues', 'batches'])
    await scene.until(() => scene.handlerCalls('begin').length >= 2, 'another job begins')
    const elsewhereMs = Date.now() - at
    const { code, ms } = await stopping
    await scene.until(async () => (await scene.mill.depths(['batches']))[0]!.processed === 6, 'all jobs done')
    return {
      code,
      stopMs: ms,
      putBack: back.length,
      putBackMs: Math.max(...back.map((entry) => entry.at - at)),
      elsewhereMs,
      failed: (await scene.mill.depths(['batches']))[0]!.failed,
      runs: scene.handlerCalls('begin').length,
      jobs: jobs.length,
    }
  } finally {
    await scene.close()
  }
}

/** A handler that takes longer than the grace: how its process ends, and the state of its job afterwards. */
export async function graceExceeded(how: 'patient' | 'deaf', open?: OpenGround) {
  const scene = await Supervised.on(open)
  try {
    const work = await scene.work(['--grace', '1s'])
    const job = await (how === 'deaf' ? scene.mill.enqueue(stubborn, 0) : scene.mill.enqueue(patient, 60_000))
    await scene.until(() => scene.handlerCalls('begin').length === 1, 'the job begins')
    const { code, ms } = await work.stop()
    const { state, attempt, crashes } = (await job.record())!
    return { code, stopMs: ms, job: { state, attempt, crashes } }
  } finally {
    await scene.close()
  }
}

/** A second signal while the process still obeys the first. */
export async function secondSignal(open?: OpenGround) {
  const scene = await Supervised.on(open)
  try {
    const work = await scene.work()
    await scene.mill.enqueue(patient, 60_000)
    await scene.until(() => scene.handlerCalls('begin').length === 1, 'the job begins')
    work.signal('SIGTERM')
    await work.events('worker.stopping')
    const { code, ms } = await work.stop()
    return { code, stopMs: ms }
  } finally {
    await scene.close()
  }
}

/** A stop while the store does not answer, with a job in hand and without. */
export async function stopWithoutStore(withJob: boolean, open?: OpenGround) {
  const scene = await Supervised.on(open)
  try {
    const work = await scene.work(['--grace', '2s'])
    if (withJob) {
      await scene.mill.enqueue(patient, 500)
      await scene.until(() => scene.handlerCalls('begin').length === 1, 'the job begins')
    }
    await scene.mill.close()
    const giveBack = await scene.ground.withhold()
    try {
      const { code, ms } = await work.stop()
      return { code, stopMs: ms }
    } finally {
      giveBack()
    }
  } finally {
    await scene.close()
  }
}

/** A handler that blocks the event loop for longer than its lease. */
export async function spinThroughLease(lease: Duration & string, spinMs: number, open?: OpenGround) {
  const scene = await Supervised.on(open, lease)
  try {
    const work = await scene.work([], { processes: 2 })
    const job = await scene.mill.enqueue(spin, spinMs)
    await scene.until(
      async () => (await scene.mill.depths(['default']))[0]!.processed === 1,
      'the job is done',
      120_000,
    )
    const audit = await scene.ground.audit()
    return {
      runs: scene.handlerCalls('spin').length,
      claims: audit.filter(({ kind, id }) => kind === 'claim' && id === job.id).length,
      processesLost: work.said('process.exited').length,
    }
  } finally {
    await scene.close()
  }
}

/** A handler that blocks the event loop for longer than `maxBlock`. */
export async function spinPastMaxBlock(open?: OpenGround) {
  const scene = await Supervised.on(open)
  try {
    const work = await scene.work(['--max-block', '2s'], { processes: 2 })
    const at = performance.now()
    await scene.mill.enqueue(spinOnce, 120_000)
    await scene.until(async () => (await scene.mill.depths(['default']))[0]!.processed === 1, 'the job is done')
    const doneMs = performance.now() - at
    await work.events('worker.started', 3)
    const calls = scene.handlerCalls('spin')
    return {
      runs: calls.length,
      processes: new Set(calls.map(({ pid }) => pid)).size,
      doneMs,
      recycled: work.said('process.exited').length,
    }
  } finally {
    await scene.close()
  }
}

/** A handler that never resolves and ignores its signal. */
export async function neverResolves(open?: OpenGround) {
  const scene = await Supervised.on(open)
  try {
    const work = await scene.work(['--concurrency', '4'])
    const job = await scene.mill.enqueue(deaf, 0)
    await work.events('slot.retired')
    await work.events('worker.recycling')
    await work.events('worker.started', 2)
    await scene.mill.enqueue(innocent, 1, { id: 'after' })
    await scene.until(async () => (await scene.mill.depths(['default']))[0]!.processed === 1, 'another job is done')
    const { state, error } = (await job.record())!
    return { state, isTimeLimit: error?.includes('TimeLimitError') ?? false, runs: scene.handlerCalls('deaf').length }
  } finally {
    await scene.close()
  }
}

/** Cancels running jobs from another process: ms until the handler knows. */
export async function cancelLatency(leaseMs: number, rounds: number, open?: OpenGround): Promise<number[]> {
  const scene = await Supervised.on(open, `${leaseMs}ms`)
  try {
    await scene.work()
    const latencies: number[] = []
    for (let i = 0; i < rounds; i += 1) {
      const job = await scene.mill.enqueue(patient, 60_000)
      await scene.until(() => scene.handlerCalls('begin').length === i + 1, 'the job begins')
      // At any time between two beats.
      await delay((leaseMs / 3) * (i / rounds))
      const at = performance.now()
      await job.cancel()
      await scene.until(() => scene.handlerCalls('abort').length === i + 1, 'the handler is told')
      latencies.push(performance.now() - at)
    }
    return latencies.sort((a, b) => a - b)
  } finally {
    await scene.close()
  }
}

/**
 * For the jobs with these ids: how many completed, how many completed more than once, and how many are in the morgue.
 */
function ends(audit: readonly AuditEntry[], fits: (id: string) => boolean) {
  const completed = new Map<string, number>()
  let buried = 0
  for (const { id, kind, from } of audit) {
    if (!fits(id)) continue
    if (kind === 'bury') buried += 1
    else if (from === 'running' && (kind === 'leave' || kind === 'keep'))
      completed.set(id, (completed.get(id) ?? 0) + 1)
  }
  return {
    completed: completed.size,
    completedTwice: [...completed.values()].filter((times) => times > 1).length,
    buried,
  }
}
