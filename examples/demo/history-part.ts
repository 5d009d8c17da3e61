/**
 * The second part of the demo: the changes of a history as payloads of one job per id, merged and in order. Scores bring in
 * order what waits together. So the older half comes in any order before the workers begin; the newer half comes in calls
 * of consecutive changes once runs go on, in any order within each, as all of an id's in one call arrive in one step.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { figure, say, seconds } from './display.js'
import type { Change, History } from './history.js'
import { differencesOf } from './history-verdict.js'
import { orInterrupted } from './interruption.js'
import type { Place } from './place.js'
import { type Progress, workShift } from './shift.js'
import { shuffled } from './shuffled.js'
import { follow, followAsSent } from './tasks.js'
import type { Workers } from './workers.js'

const seed = 5
/** At most: what a store is sent in one call. */
const changesPerCall = 200
/** At least, for the newer half, and with a pause between them: runs go on meanwhile. */
const newerCalls = 40
const pauseMs = 20

export interface OrderedFigures {
  readonly verified: true
  readonly ids: number
  readonly payloads: number
  /** Payloads that joined a job which waited, or ran. */
  readonly merged: number
  /** Runs of an id, the failed ones among them. */
  readonly runs: number
  readonly failed: number
  /** Failed runs whose next had more payloads. */
  readonly grown: number
  /** Most payloads of one run. */
  readonly most: number
  /** Payloads that were delivered again though they had been applied; the handler left them out. */
  readonly again: number
}

/** Throws where an id is not in the state that a run without a queue leaves. */
export async function historyPart(place: Place, { title, ids, changes }: History): Promise<OrderedFigures> {
  if (changes.length === 0) throw new Error(`there is no history to follow: ${title}`)
  say('')
  say(`${title}, one job for each`)
  const startedAt = performance.now()
  const middle = Math.ceil(changes.length / 2)
  const [older, newer] = [changes.slice(0, middle), changes.slice(middle)]
  let merged = 0
  // Where payloads do not merge, they are handed over as they are sent.
  const mixed = (some: readonly Change[], by: number) => (place.isWhole ? shuffled(some, by) : [...some])
  for (const call of callsOf(mixed(older, seed), changesPerCall))
    merged += await orInterrupted(enqueueCall(place, call))
  const order = place.isWhole ? 'in a random order' : 'in its order'
  say(`enqueued the older half ${order}; two worker processes begin, and the newer half comes meanwhile`)
  const size = Math.min(Math.max(Math.ceil(newer.length / newerCalls), 1), changesPerCall)
  const workers = await workShift([follow.queue], () => progressOf(place, changes), {
    meanwhile: async () => {
      while (place.ledger.applied() === 0) await delay(pauseMs)
      for (const [i, call] of callsOf(newer, size).entries()) {
        merged += await enqueueCall(place, mixed(call, seed + i))
        await delay(pauseMs)
      }
    },
  })
  const { refused, ...figures } = place.ledger.figures()
  const problems = [...differencesOf(changes, place.ledger.states()), ...trespasses(refused, workers)]
  if (problems.length > 0) throw new Error(`not verified:\n${problems.map((problem) => `  ${problem}`).join('\n')}`)
  say(`verified: each change was applied once and in order, and every id is as a run without the queue leaves it`)
  say(
    `${figure(changes.length)} changes in ${figure(figures.runs)} runs, at most ${figure(figures.most)} in one; ${figure(figures.failed)} runs failed, and ${figure(figures.grown)} of them came back with more changes`,
  )
  say(`${seconds(performance.now() - startedAt)} in all`)
  return { verified: true, ids, payloads: changes.length, merged, ...figures }
}

function callsOf(changes: readonly Change[], size: number): Change[][] {
  return Array.from({ length: Math.ceil(changes.length / size) }, (_, i) => changes.slice(i * size, (i + 1) * size))
}

/** In one call, so that the changes of one id arrive in one step. Resolves with how many joined a job that was there. */
async function enqueueCall({ mill, isWhole }: Place, changes: readonly Change[]): Promise<number> {
  const jobs = await mill.enqueueMany(isWhole ? follow : followAsSent, changes, ({ place }) =>
    place % 11 === 10 ? { meta: { failsFirst: true } } : {},
  )
  return jobs.filter(({ outcome }) => outcome === 'merged').length
}

async function progressOf(place: Place, changes: readonly Change[]): Promise<Progress> {
  const [depth] = await place.depths([follow.queue])
  const { ready, scheduled, running, payloads, failed } = depth!
  const done = place.ledger.applied()
  return {
    bars: [{ name: follow.queue, done, of: changes.length, ready }],
    more: `${figure(running)} running, ${figure(payloads)} changes waiting, ${figure(failed)} failed once`,
    // SQS counts roughly.
    isOver: ready + scheduled + running === 0 && (place.isWhole || done === changes.length),
  }
}

/** A run may go on when another has begun with its id only where it had been given up. */
function trespasses(refused: number, workers: Workers): string[] {
  if (refused === 0 || workers.haveLostRuns) return []
  return [`${refused} runs were overtaken by another run of their id, though none was given up`]
}
