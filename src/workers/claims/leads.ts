/** Leads: the queues and shards that this claimer alone asks again when something falls due, with their timers. */

import { timerMs } from '../../core/platform/timer.js'
import type { Wait } from '../../stores/contract/claim.js'
import { type ClaimTarget, targetName, targetOf } from '../shards/claim-target.js'

export class Leads {
  readonly #fellDue: () => void
  readonly #timers = new Map<string, NodeJS.Timeout>()
  #due: ClaimTarget[] = []
  #isStopped = false

  /** `fellDue`: called when targets have fallen due; `takeDue()` returns them. Targets of one moment share a call. */
  constructor(fellDue: () => void) {
    this.#fellDue = fellDue
  }

  /** Notes the leads in a claim's answer. */
  told(waits: readonly Wait[]): void {
    if (this.#isStopped) return
    for (const wait of waits) if (wait.reason !== 'suspect') this.#note(wait)
  }

  /** The targets that have fallen due and have no newer answer. */
  takeDue(): ClaimTarget[] {
    return this.#due.splice(0)
  }

  stop(): void {
    this.#isStopped = true
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
    this.#due = []
  }

  #note(wait: Wait): void {
    const target = targetOf(wait)
    const name = targetName(target)
    clearTimeout(this.#timers.get(name))
    this.#timers.delete(name)
    this.#due = this.#due.filter((one) => targetName(one) !== name)
    const { lead, forMs } = wait
    if (!lead || forMs === undefined) return
    const due = () => {
      this.#timers.delete(name)
      // Shards that share a limit are due together: one claim covers them all.
      if (this.#due.push(target) === 1) setImmediate(this.#fellDue)
    }
    this.#timers.set(name, setTimeout(due, timerMs(Math.max(1, Math.ceil(forMs)))).unref())
  }
}
