/**
 * Proof of the joins: a join runs when all of its members have ended, never before, never twice and with the results of
 * its own members, whatever dies or moves meanwhile; also if every report comes twice, and every one that travels comes late.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { type ClusterServers, type RedisServer, startRedis } from 'millrace/store-testing'
import type { Dice } from '#src/store-testing/sequences/dice.js'
import { redisVersion } from '../redis-version.js'
import type { Report, Summary } from '../report.js'
import { type JoinPlan, joinsOf, planOf } from './join-plan.js'
import { type DrillSeen, joinsDrill } from './joins-drill.js'

export const seed = 520_000

/** `JOINS_LEGS`: some of the legs, by their names. All take hours on a machine that has other things to do. */
const { JOINS_SCALE: scale = '1', JOINS_LEGS: legs } = process.env
export const part = legs?.replaceAll(',', '-')
const joins = Math.round(1_000 * Number(scale))
const plan = { seed, joins, kills: Math.round(300 * Number(scale)), workers: 4, producers: 2 }
/** A server that is killed every few seconds would else load all commands since the beginning, each time. */
const durable = ['appendonly yes', 'appendfsync always', 'auto-aof-rewrite-min-size 8mb']

export async function prove(report: Report): Promise<Summary> {
  const all = {
    sqlite: (isUnkind: boolean) => joinsDrill({ ...plan, isUnkind }),
    redis: (isUnkind: boolean) => onRedis(report, isUnkind),
    cluster: onCluster,
  }
  const names = {
    sqlite: 'SQLite',
    redis: 'Redis with restarts',
    cluster: 'Redis Cluster with slot moves and restarts',
  }
  tellPlan(report)
  const summary: Record<string, unknown> = {}
  for (const isUnkind of [false, true])
    for (const [leg, drill] of Object.entries(all)) {
      const key = isUnkind ? `${leg}Twice` : leg
      if (legs !== undefined && !legs.split(',').includes(key)) continue
      const name = names[leg as keyof typeof all]
      summary[key] = told(
        report,
        isUnkind ? `${name}, reports twice${leg === 'sqlite' ? '' : ' and late'}` : name,
        await drill(isUnkind),
      )
    }
  return summary
}

/** What the plan has must be what the proof says that it has. */
function tellPlan(report: Report): void {
  const plans = Array.from({ length: joins }, (_, number) => planOf(seed, number))
  const counts = (of: (plan: JoinPlan) => string) => {
    const found = new Map<string, number>()
    for (const one of plans) found.set(of(one), (found.get(of(one)) ?? 0) + 1)
    return [...found].map(([what, times]) => `${times} ${what}`).join(', ')
  }
  const sizes = plans.map(({ size }) => size).filter((size) => size <= 300)
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)]
  const open = plans.length - sizes.length
  const inner = plans.reduce((sum, one) => sum + joinsOf(one).length - 1, 0)
  report.say(
    `the plan: ${joins} joins (${counts(({ form }) => form)}; ${counts(({ rule }) => rule)}; ${counts(({ within }) => within)} at most), ${inner} that they wait for, ${open} of 1,200 members`,
  )
  report.claim(`the others have ${least} to ${most} members`, least === 1 && most === 300)
}

async function onRedis(report: Report, isUnkind: boolean): Promise<DrillSeen> {
  const redis = await startRedis({ config: durable })
  try {
    if (!isUnkind) report.say(`the server: ${await redisVersion(redis)}`)
    const restart = async (dice: Dice) => {
      if (!dice.chance(0.5)) return
      await redis.kill()
      await redis.restart()
    }
    return await joinsDrill({ ...plan, isUnkind }, redis.url, restart)
  } finally {
    await redis.stop()
  }
}

async function onCluster(isUnkind: boolean): Promise<DrillSeen> {
  const cluster = await startRedis({ mode: 'cluster', config: durable })
  const counts = { moves: 0, restarts: 0 }
  const mover = new SlotMover(cluster)
  try {
    const disturb = async (dice: Dice) => {
      if (dice.chance(0.1)) {
        const server = dice.pick(cluster.servers)
        await server.kill()
        await server.restart()
        counts.restarts += 1
      } else if (await mover.moves(dice)) counts.moves += 1
    }
    const seen = await joinsDrill({ ...plan, isUnkind }, cluster.url, disturb)
    return { ...seen, acts: { ...seen.acts, 'slot moves': counts.moves, restarts: counts.restarts } }
  } finally {
    await cluster.stop()
  }
}

/** The shards of the drill's queues, by the tags of their keys. */
const tags = ['rows:0', 'rows:1', 'rows:2', 'sums:0', 'sums:1', 'tops', 'loose'].map((shard) => `{millrace:${shard}}`)

interface SlotMove {
  readonly slot: number
  readonly from: RedisServer
  readonly to: RedisServer
}

/**
 * Moves the slot of a shard to another master, a few keys at a time. A move that a restart has interrupted goes on before
 * another begins: a slot that is half moved to two masters loses keys.
 */
class SlotMover {
  readonly #cluster: ClusterServers
  #halfDone: SlotMove | undefined

  constructor(cluster: ClusterServers) {
    this.#cluster = cluster
  }

  /** False: the cluster is not whole after a restart. */
  async moves(dice: Dice): Promise<boolean> {
    try {
      this.#halfDone ??= await this.#another(dice)
      const { slot, from, to } = this.#halfDone
      if ((await this.#cluster.masterOf(slot)) === from)
        for await (const _ of this.#cluster.moveSlot(slot, from, to, { batch: 4 })) await delay(dice.whole(0, 30))
      this.#halfDone = undefined
      return true
    } catch {
      return false
    }
  }

  async #another(dice: Dice): Promise<SlotMove> {
    const { servers } = this.#cluster
    const slot = Number(await servers[0]!.ask('CLUSTER', 'KEYSLOT', dice.pick(tags)))
    const from = await this.#cluster.masterOf(slot)
    return { slot, from, to: dice.pick(servers.filter((server) => server !== from)) }
  }
}

function told(report: Report, store: string, seen: DrillSeen): Summary {
  const { early, foreign, stuck, wronglyEnded, ...figures } = seen
  report.say(`— ${store}: ${JSON.stringify(figures)}`)
  const none = (what: string, found: readonly string[]) =>
    report.claim(
      `${store}: ${what}: ${found.length}${found.length > 0 ? ` (${found.slice(0, 5).join('; ')})` : ''}`,
      found.length === 0,
    )
  none('joins that ran before a member had ended', early)
  report.claim(`${store}: joins that completed twice: ${seen.twice}`, seen.twice === 0)
  none('missing and foreign results', foreign)
  none('joins without an end', stuck)
  none('joins that are dead or cancelled without a reason', wronglyEnded)
  return figures
}
