/**
 * Proof of selectors: the reduced lottery gives full queues of weights 100, 40 and 5 their shares of the first place.
 * Caveat: the generator of the seeds is a small one (mulberry32, 2³² states). A worker draws from `Math.random`.
 */

import { defaultSelector, selectorNamed } from '#src/selectors/named-selectors.js'
import type { Candidate } from '#src/selectors/selector.js'
import { seededRandom } from '../../test/seeded-random.js'
import type { Report, Summary } from '../report.js'
import { idleClaims } from './idle.js'

export const seed = 1

const queues: readonly Candidate[] = [
  { name: 'high', weight: 100 },
  { name: 'default', weight: 40 },
  { name: 'low', weight: 5 },
]
const tickets = 145
const draws = 1_450_000
const seeds = 20
const tolerance = 0.02
const leastP = 0.001

export async function prove(report: Report): Promise<Summary> {
  const expected = queues.map((queue) => queue.weight / tickets)
  report.say(
    `selector ${defaultSelector}, weights 100/40/5, all queues full, ${draws.toLocaleString('en')} draws a seed`,
  )
  report.say(`expected shares ${expected.map(percent).join(' / ')}`)
  const runs = Array.from({ length: seeds }, (_, i) => {
    const drawn = counts(seed + i)
    const shares = drawn.map((count) => count / draws)
    const statistic = chiSquare(drawn)
    // Q(1, χ²/2), the regularised gamma function for 2 degrees of freedom.
    const p = Math.exp(-statistic / 2)
    const furthest = Math.max(...shares.map((share, q) => Math.abs(share / expected[q]! - 1)))
    report.say(
      `seed ${String(seed + i).padStart(2)}  ${shares.map(percent).join(' / ')}  furthest off ${percent(furthest)}` +
        `  χ² ${statistic.toFixed(3).padStart(6)}  p ${p.toFixed(4)}`,
    )
    return { p, furthest }
  })
  report.claim(
    "with every seed, each share is within ±2 % (relative) of its weight's",
    runs.every((run) => run.furthest <= tolerance),
  )
  report.claim(
    `with every seed, chi-square gives p > ${leastP}`,
    runs.every((run) => run.p > leastP),
  )
  const idleFor = 12_000
  // One claim over all queues, or one for each if the selector names one at a time. Then again every 5 s.
  const looks = 1 + Math.floor(idleFor / 5_000)
  const idle: Record<string, number> = {}
  for (const [selector, perLook] of [
    ['reduced-lottery', 1],
    ['lottery', 3],
  ] as const) {
    const { claims, cpuMs } = await idleClaims(selector, idleFor)
    idle[selector] = claims
    report.say(
      `idle worker, three empty queues, ${selector}: ${claims} claims and ${cpuMs.toFixed(0)} ms of CPU in ${idleFor / 1_000} s`,
    )
    report.claim(`no busy loop: at most ${looks * perLook} claims`, claims <= looks * perLook)
  }
  return {
    draws,
    seeds,
    idle,
    furthestOff: Math.max(...runs.map((run) => run.furthest)),
    smallestP: Math.min(...runs.map((run) => run.p)),
  }
}

/** How often each queue was first. */
function counts(from: number): number[] {
  const selector = selectorNamed(defaultSelector)
  const random = seededRandom(from)
  const first = new Map(queues.map((queue) => [queue.name, 0]))
  for (let i = 0; i < draws; i += 1) {
    const [name] = selector(queues, random)
    first.set(name!, first.get(name!)! + 1)
  }
  return queues.map((queue) => first.get(queue.name)!)
}

function chiSquare(observed: readonly number[]): number {
  return queues.reduce((sum, { weight }, i) => {
    const expected = (draws * weight) / tickets
    return sum + (observed[i]! - expected) ** 2 / expected
  }, 0)
}

function percent(share: number): string {
  return `${(share * 100).toFixed(2).padStart(5)} %`
}
