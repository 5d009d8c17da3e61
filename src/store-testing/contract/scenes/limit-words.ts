/** The vocabulary of limits in contract cases: rules, throttles, and claims that meet them. */

import assert from 'node:assert/strict'
import type { Throttle, ThrottleRule } from '../../../core/queue/throttle.js'
import type { Claimed, Wait } from '../../../stores/contract/claim.js'
import type { Scene } from './scene.js'

export const even = { moderate: true } as const
export const elastic = (elasticBuffer: number) => ({ moderate: true, elasticBuffer })

export function rule(limit: number, windowMs: number, how: Partial<ThrottleRule> = {}): ThrottleRule {
  return { limit, windowMs, moderate: false, ...how }
}

/** A throttle of the scene's queue, counted together. */
export function throttle(...rules: ThrottleRule[]): Throttle {
  return { scope: 'mail', by: 'queue', rules }
}

export function byGroup(...rules: ThrottleRule[]): Throttle {
  return { scope: 'mail', by: 'group', rules }
}

/** Jobs named `job-01` and so on. */
export function jobs(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `job-${String(i + 1).padStart(2, '0')}`)
}

/** Jobs named after their group and a number: `x1` is one of group `x`. */
export function grouped(...ids: string[]): { readonly id: string; readonly group: string }[] {
  return ids.map((id) => ({ id, group: id.slice(0, -1) }))
}

/** Leases that outlast every wait of a case. */
export const longLeaseMs = 86_400_000

type ClaimWords = Parameters<Scene['claim']>[0]

/** How many jobs a claim takes that asks for many. */
export async function taken(scene: Scene, asking: ClaimWords = {}): Promise<number> {
  return (await scene.claim({ leaseMs: longLeaseMs, ...asking })).claims.length
}

/** The waits in the answer to a claim that takes nothing. */
export async function denied(scene: Scene, asking: ClaimWords = {}): Promise<readonly Wait[]> {
  const { claims, waits } = await scene.claim({ leaseMs: longLeaseMs, ...asking })
  assert.deepEqual(claims, [], 'nothing is granted')
  return waits
}

export function throttledFor(forMs: number, lead?: 'leads', queue = 'mail'): Wait {
  return { queue, reason: 'throttled', forMs, ...(lead === undefined ? {} : { lead: true }) }
}

/**
 * A case of the contract in one line. It opens the queue with this throttle, or calls `prepare`. It adds the given jobs, or
 * that number of jobs. Then it follows the steps, such as `takes 2, +10_000 waits 1, +1 takes x2 y1`. `verbs` explains each.
 */
export function timeline(
  prepare: Throttle | ((scene: Scene) => Promise<unknown>),
  given: number | readonly Parameters<Scene['add']>[0][],
  steps: string,
): (scene: Scene) => Promise<void> {
  return async (scene) => {
    await (typeof prepare === 'function' ? prepare(scene) : scene.openQueue({ throttle: prepare }))
    await scene.add(...(typeof given === 'number' ? jobs(given) : given))
    let done = ''
    for (const step of steps.split(/,? (?=\+|[a-z]{4})/)) {
      const [, verb, words] = /^(\+|[a-z]+) ?(.*)$/.exec(step)!
      done += ` ${step}`
      await verbs[verb as keyof typeof verbs](scene, words!.split(' '), done)
    }
  }
}

const number = (word: string | undefined) => Number(word?.replaceAll('_', ''))

/** The group of each job in words such as `x2 y1 -1`, sorted; `-` is for jobs without a group, and so is a mere number. */
const groupsIn = (words: readonly string[]): string[] =>
  words.flatMap((word) => Array<string>(number(word.replace(/^\D/, ''))).fill(/^\D/.exec(word)?.[0] ?? '-')).sort()

/** A message is the steps up to this one. */
const verbs = {
  /** Moves the clock by this number of ms. */
  '+': (scene: Scene, [ms]: string[]) => scene.advance(number(ms)),
  restarts: (scene: Scene) => scene.harness.restart(),
  deletes: (scene: Scene) => scene.records.delete(scene.queue, 'all'),
  /** Adds this number of jobs, or one number for each group. */
  adds: (scene: Scene, words: string[], message: string) =>
    scene.add(
      ...groupsIn(words).map((group, i) => ({ id: `${message.length}-${i}`, ...(group === '-' ? {} : { group }) })),
    ),
  /** A claim receives this number of jobs, or one number for each group. `of 5`: it asks for 5. */
  async takes(scene: Scene, words: string[], message: string) {
    const [given, limit] = words.join(' ').split(' of ')
    const asking = { leaseMs: longLeaseMs, ...(limit === undefined ? {} : { limit: number(limit) }) }
    const got = (await scene.claim(asking)).claims.map(({ group = '-' }) => group)
    if (/^\d+$/.test(given!)) assert.equal(got.length, number(given), message)
    else assert.deepEqual(got.sort(), groupsIn(given!.split(' ')), message)
  },
  /** A claim is denied, for this number of ms. */
  waits: async (scene: Scene, [ms]: string[], message: string) =>
    assert.equal((await denied(scene))[0]?.forMs, number(ms), message),
  /** The same; the claimer leads and learns no more. */
  leads: async (scene: Scene, [ms]: string[], message: string) =>
    assert.deepEqual(await denied(scene), [throttledFor(number(ms), 'leads')], message),
  /** The starts in each window. */
  hits: async (scene: Scene, counts: string[], message: string) =>
    assert.deepEqual((await scene.throttles.state(scene.queue))?.hits, counts.map(number), message),
  /** When jobs may start, by the state of the throttle. */
  opens: async (scene: Scene, [ms]: string[], message: string) =>
    assert.equal((await scene.throttles.state(scene.queue))?.forMs, number(ms), message),
  /** How many ms are left of a silence. */
  quiet: async (scene: Scene, [ms]: string[], message: string) =>
    assert.equal((await scene.throttles.state(scene.queue))?.quietForMs, number(ms), message),
}

export function idsOf({ claims }: Claimed): string[] {
  return claims.map(({ id }) => id)
}

/** The waits for suspects in the answer to a claim: whether its worker leads them. */
export function suspectsTold({ waits }: Claimed): ('leads' | 'follows')[] {
  return waits.flatMap(({ reason, lead }) => (reason === 'suspect' ? [lead ? 'leads' : 'follows'] : []))
}
