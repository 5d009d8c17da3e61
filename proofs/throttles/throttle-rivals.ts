/** Throttles as they are often written, which do not keep their limit. The judge must find that out. */

import { type Counter, decide, firstCounter } from '#src/stores/rules/throttle/throttle-counter.js'
import type { RunPlan } from './throttle-plan.js'
import type { Contestant } from './throttle-run.js'

/** Counts in fixed windows that begin with the first start of each: `INCR`, and `PEXPIRE` for the first. */
export function fixedWindows(): Contestant {
  let windows: { readonly limit: number; readonly windowMs: number; used: number; endsAt: number }[] = []
  return rival((plan) => {
    windows = plan.throttle.rules.map(({ limit, windowMs }) => ({ limit, windowMs, used: 0, endsAt: 0 }))
    return (_process, limit, now) => {
      for (const one of windows) {
        if (now < one.endsAt) continue
        one.used = 0
        one.endsAt = now + one.windowMs
      }
      const granted = Math.min(limit, ...windows.map((one) => one.limit - one.used))
      for (const one of windows) one.used += granted
      return granted
    }
  })
}

/** Keeps our rules, but by the clock of the process that asks. */
export function clientInstants(skewsMs: readonly number[]): Contestant {
  return rival(({ throttle: { rules } }) => {
    let state: Counter = firstCounter(rules)
    return (process, limit, now) => {
      const decision = decide(state, rules, now + skewsMs[process]!, limit, Number.POSITIVE_INFINITY)
      state = decision.state
      return decision.granted
    }
  })
}

/** A throttle in one process, with one count for all groups. */
function rival(grantsOf: (plan: RunPlan) => (process: number, limit: number, now: number) => number): Contestant {
  let now = 3_600_000 * 2
  let ready: string[] = []
  let granted: (process: number, limit: number, now: number) => number
  return {
    async begin(plan) {
      ready = []
      granted = grantsOf(plan)
    },
    async advance(afterMs, arrivals) {
      now += afterMs
      ready.push(...arrivals)
    },
    claim: async (process, limit) => ready.splice(0, granted(process, Math.min(limit, ready.length), now)),
  }
}
