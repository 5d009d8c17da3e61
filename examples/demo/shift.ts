/** The shift: the work of some worker processes from their start to their end, as it is shown. */

import { setTimeout as delay } from 'node:timers/promises'
import { type Bar, Display, seconds } from './display.js'
import { orInterrupted } from './interruption.js'
import { Workers } from './workers.js'

/** No job done for so long: something hangs. */
const patienceMs = 60_000
const processes = 2
/** Of each process. Small, so that claims are small and there are many draws to count. */
const concurrency = 4

/** How far the work is. */
export interface Progress {
  readonly bars: readonly Bar[]
  readonly more: string
  readonly isOver: boolean
}

export interface ShiftHooks {
  /** What else is done; the shift is not over before it. */
  readonly meanwhile?: (workers: Workers) => Promise<void>
  /** Called where the shift fails or is interrupted, before the workers stop. */
  readonly abandoned?: () => Promise<void>
}

/** Starts workers for these queues, shows what they do, and stops them when it is over and `meanwhile` too. Resolves with them. */
export async function workShift(
  queues: readonly string[],
  look: () => Promise<Progress>,
  { meanwhile = async () => {}, abandoned = async () => {} }: ShiftHooks = {},
): Promise<Workers> {
  const workers = new Workers(queues, processes, concurrency)
  try {
    await orInterrupted(Promise.race([workers.failed, untilOver(look, () => meanwhile(workers))]))
  } catch (error) {
    // What went wrong first is what matters.
    await abandoned().catch(() => {})
    await workers.stop().catch(() => {})
    throw error
  }
  await workers.stop()
  return workers
}

async function untilOver(look: () => Promise<Progress>, meanwhile: () => Promise<void>): Promise<void> {
  let isAlone = false
  const other = async () => {
    await meanwhile()
    isAlone = true
  }
  await Promise.all([watch(look, () => isAlone), other()])
}

/** Shows how far the work is until it is over and nobody adds to it. */
async function watch(look: () => Promise<Progress>, isAlone: () => boolean): Promise<void> {
  const display = new Display()
  let [last, changedAt] = [0, performance.now()]
  for (;;) {
    await delay(display.everyMs)
    // Asked before the look, which would else miss what is added in between.
    const wasAlone = isAlone()
    const { bars, more, isOver } = await look()
    const done = bars.reduce((sum, bar) => sum + bar.done, 0)
    if (done !== last) [last, changedAt] = [done, performance.now()]
    display.show(bars, more, isOver && wasAlone)
    if (isOver && wasAlone) return
    if (performance.now() - changedAt > patienceMs)
      throw new Error(`no job was done for ${seconds(patienceMs)}; ${done} are`)
  }
}
