/** Deaths of servers under load: a Redis killed and started again, and a master whose replica lags behind when it dies. */

import { setTimeout as delay } from 'node:timers/promises'
import { startRedis } from 'millrace/store-testing'
import { Traffic, type Verdict } from './traffic.js'

export interface KillsOutcome extends Verdict {
  /** From the moment the server answers again to the next claim that brings jobs, and to the next enqueue accepted. */
  readonly resumedMs: readonly number[]
  readonly acceptedMs: readonly number[]
}

/**
 * `kill -9` of a server, which is away for a second each time. With `everysec` it may lose up to 2 s of what it acknowledged
 * where the disk takes long to sync, with `always` nothing.
 */
export async function killedServer(plan: {
  readonly appendfsync: 'everysec' | 'always'
  readonly kills: number
  readonly betweenMs: number
}): Promise<KillsOutcome> {
  const server = await startRedis({ config: ['appendonly yes', `appendfsync ${plan.appendfsync}`] })
  // More comes in than is worked off: what is lost is what waits.
  const traffic = await Traffic.start({ url: server.url, concurrency: 2 })
  try {
    const resumedMs: number[] = []
    const acceptedMs: number[] = []
    for (let i = 0; i < plan.kills; i += 1) {
      await delay(plan.betweenMs)
      await server.kill()
      await delay(1_000)
      await server.restart()
      const [claimed, accepted] = await Promise.all([traffic.claimed(), traffic.accepted()])
      resumedMs.push(Math.round(claimed))
      acceptedMs.push(Math.round(accepted))
    }
    await traffic.stopProducing()
    await traffic.work(30)
    return { resumedMs, acceptedMs, ...(await traffic.verdict()) }
  } finally {
    await traffic.close()
    await server.stop()
  }
}

export interface FailoverOutcome extends Verdict {
  /** Accepted while the replica lagged. */
  readonly acknowledgedInLag: number
  /** From the death of the master until another is named, until a claim brings jobs, and until an enqueue is accepted. */
  readonly electedMs: number
  readonly resumedMs: number
  readonly acceptedMs: number
}

/** A replica is stopped for so long, then its master is killed, then it goes on and is promoted. */
export async function failover(plan: { readonly replicas: 0 | 1; readonly lagMs: number }): Promise<FailoverOutcome> {
  const redis = await startRedis({ mode: 'sentinel' })
  const [master, replica] = redis.servers as [(typeof redis.servers)[0], (typeof redis.servers)[0]]
  // Large jobs: what fits into the buffers of a connection would still reach a replica that goes on.
  const traffic = await Traffic.start({
    url: redis.url,
    replicas: plan.replicas,
    bytes: 50_000,
    everyMs: 4,
    concurrency: 1,
  })
  try {
    // There is a backlog: what is run before the master dies could not be lost any more.
    await delay(1_000)
    await replica.kill('SIGSTOP')
    const before = traffic.acknowledged.size
    await delay(plan.lagMs)
    const acknowledgedInLag = traffic.acknowledged.size - before
    await master.kill()
    const diedAt = performance.now()
    await replica.kill('SIGCONT')
    const since = () => Math.round(performance.now() - diedAt)
    const election = redis.masterAfter(master).then(since)
    // The old master comes back as a replica: without it nothing would ever be confirmed.
    const comeback = plan.replicas === 0 ? undefined : election.then(() => master.restart())
    const [electedMs, resumedMs, acceptedMs] = await Promise.all([
      election,
      traffic.claimed().then(since),
      traffic.accepted().then(since),
      comeback,
    ])
    await traffic.stopProducing()
    await traffic.work(20)
    return { acknowledgedInLag, electedMs, resumedMs, acceptedMs, ...(await traffic.verdict()) }
  } finally {
    await traffic.close()
    await redis.stop()
  }
}
