/**
 * The schedule loop of a worker: looks when a tick is due, when a schedule was written, or when the lead may have
 * lapsed. It also hears that the store has lost its schedules.
 */

import { setTimeout as delay } from 'node:timers/promises'
import type { Random } from '../../core/platform/clock.js'
import { outageDelayMs, timerMs } from '../../core/platform/timer.js'
import type { Schedules } from '../../stores/contract/schedules.js'
import { ScheduleLead, type ScheduleLeadParts } from './schedule-lead.js'

/** The longest pause after a failed look. */
const mostPauseMs = 5_000

interface ScheduleLoopParts extends ScheduleLeadParts {
  readonly schedules: Schedules
  readonly random: Random
  /** Called when the store has lost what it held. It may be called again after it has rejected. */
  readonly restore: () => Promise<void>
}

export class ScheduleLoop {
  readonly #parts: ScheduleLoopParts
  readonly #lead: ScheduleLead
  readonly #stopping = new AbortController()
  #running: Promise<void> | undefined

  constructor(parts: ScheduleLoopParts) {
    this.#parts = parts
    this.#lead = new ScheduleLead(parts)
  }

  /** Starting twice is harmless. */
  start(): void {
    this.#running ??= this.#run()
  }

  /** Resolves when the present look has ended; then another worker may lead. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { signal } = this.#stopping
    const { schedules, worker } = this.#parts
    let leads = false
    let known: string | undefined
    for (let failures = 0; !signal.aborted; ) {
      try {
        const { isLead, forMs, origin } = await this.#lead.look()
        leads = isLead
        if (known !== undefined && known !== origin) await this.#parts.restore()
        known = origin
        failures = 0
        if (isLead) await schedules.changed(forMs, signal)
        else await pause(forMs, signal)
      } catch (error) {
        if (signal.aborted) break
        failures += 1
        const retryMs = Math.min(mostPauseMs, 1_000 + outageDelayMs(failures, this.#parts.random))
        this.#parts.events.emit('store.failed', { call: 'schedules.due', error, retryMs })
        await pause(retryMs, signal)
      }
    }
    if (leads) await schedules.resign(worker).catch(() => {})
  }
}

/** Keeps no process alive. */
async function pause(forMs: number, signal: AbortSignal): Promise<void> {
  await delay(timerMs(forMs), undefined, { signal, ref: false }).catch(() => {})
}
