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

export function idsOf({ claims }: Claimed): string[] {
  return claims.map(({ id }) => id)
}
