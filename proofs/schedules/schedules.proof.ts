/**
 * Proof: five processes tick a schedule 200 times under twenty kills, on SQLite and on Redis, and each instant ticks
 * once. The same holds in memory, where a process is a handle that falls silent. The proof also covers three days of
 * downtime with each `onMissed`, and schedules that are changed, removed and renamed in code while old workers run. The
 * table of times is `test/core/schedule-rule.test.ts`. It takes some minutes.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { jsonCodec } from 'millrace'
import { type HarnessMaker, memoryHarness, startRedis } from 'millrace/store-testing'
import { Events } from '#src/core/events.js'
import { Packing } from '#src/core/packing/packing.js'
import { systemClock, systemRandom } from '#src/core/platform/clock.js'
import type { OnMissed } from '#src/core/schedule/due-ticks.js'
import { redisHarness } from '#src/store-testing/harness/redis-harness.js'
import { sqliteHarness } from '#src/store-testing/harness/sqlite-harness.js'
import type { Store } from '#src/stores/contract/store.js'
import { ScheduleLead } from '#src/workers/schedule-loop.js'
import { seededRandom } from '../../test/seeded-random.js'
import type { Report } from '../report.js'
import { ScheduleCrew } from './schedule-crew.js'
import { deploy } from './schedule-deploy.js'
import { queue, ScheduleSite, ticking } from './schedule-site.js'

export const seed = 20_261_125

const ticks = 200
const kills = 20
const processes = 5
/** A dead lead lapses after 15 s, which is within one step. */
const stepMs = 20_000
/** Time to wait until a due tick has been enqueued, or until no process leads. */
const patienceMs = 400
const dayMs = 86_400_000

export async function prove(report: Report): Promise<unknown> {
  const random = seededRandom(seed)
  for (const kind of ['sqlite', 'redis'] as const) await contend(report, kind, random)
  await inMemory(report, random)
  const redis = await startRedis()
  const makers = { memory: memoryHarness, sqlite: sqliteHarness, redis: redisHarness(redis.url) }
  for (const [name, maker] of Object.entries(makers)) await downtime(report, name, maker)
  for (const store of ['sqlite', redis.url]) await deploy(report, store)
  await redis.stop()
  return { ticks, kills, processes }
}

/** The steps that bring a kill. Each tick is three steps, and most kills happen at the tick itself. */
function killSteps(random: () => number): Set<number> {
  return new Set(
    Array.from(
      { length: kills },
      (_, i) => (i * (ticks / kills) + 2 + Math.floor(random() * 6)) * 3 + (random() < 0.7 ? 2 : 1),
    ),
  )
}

async function contend(report: Report, kind: 'sqlite' | 'redis', random: () => number): Promise<void> {
  const site = await ScheduleSite.on(kind)
  const { store } = site
  const startAt = site.now
  await store.open([queue])
  await store.schedules!.put(ticking(startAt), undefined)
  const crew = new ScheduleCrew(site.words)
  await crew.start(processes)
  const dying = killSteps(random)
  const found: string[] = []
  for (let step = 0; step < ticks * 3 + 6; step += 1) {
    // The last steps are for ticks that a kill has delayed.
    if (step < ticks * 3) site.advance(stepMs)
    else if (step > ticks * 3) site.advance(stepMs / 2 - 1)
    if (dying.has(step)) {
      await delay(random() * 12)
      await crew.kill()
    }
    await ticked(store, site.now)
    found.push(...(await drained(store)))
  }
  await crew.stop()
  const { ticked: counted } = (await store.schedules!.get('minutely'))!
  await site.close()
  tell(report, `${kind}: ${processes} processes, ${crew.kills} × kill -9, of the lead ${crew.killedLeads} times`, {
    ...{ found, counted, startAt },
  })
  report.claim('twenty were killed', crew.kills === kills)
}

async function ticked(store: Store, now: number): Promise<void> {
  const until = performance.now() + patienceMs
  while (performance.now() < until) {
    const schedule = await store.schedules!.get('minutely')
    if (schedule!.nextAt! > now) return
    await delay(5)
  }
}

/** Takes and completes the waiting jobs. Returns their ids. */
async function drained(store: Store): Promise<string[]> {
  const ids: string[] = []
  for (;;) {
    const { claims } = await store.claim([{ queue: queue.name, limit: 100 }], { worker: 'reader', leaseMs: 3_600_000 })
    if (claims.length === 0) return ids
    await store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' }) as const))
    ids.push(...claims.map(({ id }) => id))
  }
}

async function inMemory(report: Report, random: () => number): Promise<void> {
  const harness = await memoryHarness()
  const store = await harness.open()
  await store.open([queue])
  const { now: startAt } = await store.depth([queue.name])
  await store.schedules!.put(ticking(startAt), undefined)
  let workers = 0
  const started = async () => ({ isSilent: false, lead: leadOn(await harness.open(), `worker-${++workers}`) })
  const crew = await Promise.all(Array.from({ length: processes }, started))
  const dying = killSteps(random)
  const found: string[] = []
  for (let step = 0; step < ticks * 3 + 6; step += 1) {
    if (step < ticks * 3) await harness.advance(stepMs)
    else if (step > ticks * 3) await harness.advance(stepMs / 2 - 1)
    if (dying.has(step)) {
      // Kills the leader, possibly during its look.
      const looks = await Promise.all(crew.map(({ lead }) => (random() < 0.5 ? lead.look() : undefined)))
      const at = Math.max(
        0,
        looks.findIndex((look) => look?.isLead),
      )
      crew[at] = await started()
    }
    await Promise.all(crew.map(({ lead }) => lead.look()))
    found.push(...(await drained(store)))
  }
  const { ticked: counted } = (await store.schedules!.get('minutely'))!
  await harness.close()
  tell(report, `memory: ${processes} handles, ${kills} fall silent and are replaced`, { found, counted, startAt })
}

function tell(
  report: Report,
  what: string,
  {
    found,
    counted,
    startAt,
  }: { readonly found: readonly string[]; readonly counted: number; readonly startAt: number },
): void {
  const idAt = (n: number) => `minutely@${new Date(startAt + n * 60_000).toISOString().replace('.000Z', 'Z')}`
  const expected = Array.from({ length: ticks }, (_, i) => idAt(i + 1))
  const twice = found.filter((id, i) => found.indexOf(id) !== i)
  const lost = expected.filter((id) => !found.includes(id))
  const strange = found.filter((id) => !expected.includes(id))
  report.say(`${what}: ${found.length} jobs of ${ticks} ticks`)
  report.claim(
    `each tick was enqueued once ${[...twice, ...lost, ...strange].slice(0, 3).join(' · ')}`.trim(),
    twice.length + lost.length + strange.length === 0,
  )
  report.claim('and counted once', counted === ticks)
}

function leadOn({ schedules }: Store, worker: string): ScheduleLead {
  let ids = 0
  const newId = () => `${worker}-${++ids}`
  const surroundings = { clock: systemClock, random: systemRandom, packing: new Packing(jsonCodec) }
  return new ScheduleLead({ ...surroundings, worker, events: new Events(), newId }, schedules!)
}

/** The interval, the rule for missed ticks, the number of ticks that are enqueued, and the number left out. */
const rows: readonly (readonly [everyMs: number, onMissed: OnMissed, enqueued: number, leftOut: number])[] = [
  [3_600_000, 'skip', 0, 72],
  [3_600_000, 'latest', 1, 71],
  [3_600_000, 'all', 72, 0],
  [60_000, 'all', 1_000, 1_000],
]

async function downtime(report: Report, name: string, makeHarness: HarnessMaker): Promise<void> {
  for (const [everyMs, onMissed, enqueued, leftOut] of rows) {
    const harness = await makeHarness()
    const store = await harness.open()
    await store.open([queue])
    const { now } = await store.depth([queue.name])
    const { definition, ...change } = ticking(now, everyMs)
    await store.schedules!.put({ ...change, definition: { ...definition, onMissed } }, undefined)
    await harness.advance(3 * dayMs + 1_800_000)
    await leadOn(store, 'worker').look()
    const found = await drained(store)
    const { missed, nextAt } = (await store.schedules!.get('minutely'))!
    await harness.close()
    const isNext = nextAt! > now + 3 * dayMs + 1_800_000 && nextAt! <= now + 3 * dayMs + 1_800_000 + everyMs
    report.claim(
      `${name}: after three days of downtime, ${everyMs / 60_000} min apart, '${onMissed}': ${found.length} enqueued, ${missed} left out`,
      found.length === enqueued && new Set(found).size === enqueued && missed === leftOut && isNext,
    )
  }
}
