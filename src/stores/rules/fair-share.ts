/**
 * Fair share: which ready jobs of a queue a claim receives, as far as limits permit: in the order of the queue, or in
 * turn from the lanes of its groups. The stores in JavaScript use it, at one moment of one claim; Lua has a
 * translation.
 */

import { groupRules, type Throttle } from '../../core/queue/throttle.js'
import { subjectOf } from './throttle/throttle-subjects.js'

/** The most lanes that one claim looks into: lanes that turn out to be shut are passed over. */
export const mostVisits = 1_000

/** The most suspects of which a claim looks at the groups: suspects of groups that may start none are passed over. */
export const mostSuspects = 100

/**
 * Turns are numbered in steps, so that the number of a lane's turn also says how many turns of its round it has had. More than
 * the turns of a group in a round, which are its weight.
 */
export const turnStep = 128

/** How many turns a group has in a round, by its name. */
type GroupWeights = Readonly<Record<string, number>>

/** The source of jobs: those without a group, the lane of one group, or the suspects of one group, perhaps of `''`. */
export type ReadyPool = 'free' | { readonly group: string } | { readonly suspectsOf: string }

/** The group of the jobs of a pool, or `''`. */
export function groupIn(pool: ReadyPool): string {
  if (pool === 'free') return ''
  return 'group' in pool ? pool.group : pool.suspectsOf
}

/**
 * A queue, or a shard of an ordered one, as a claim sees it. Groups are those of its lanes; `''` has the jobs without a
 * group.
 */
export interface DealtQueue {
  /** The number of ready jobs without the suspects. */
  readonly ordinary: number
  /** The number of suspects. */
  readonly suspects: number
  /** How many more may run; Infinity without a limit. */
  readonly room: number
  /** Whether its jobs or limits make claims go round its lanes. */
  readonly hasLanes: boolean
  /** Its throttle for all jobs together, and that for the jobs of each group. Both may hold. */
  readonly whole: DealtThrottle | undefined
  readonly perGroup: DealtThrottle | undefined
  /** How many turns groups have in a round; those that it does not name have one. Undefined: all have one. */
  readonly weights: GroupWeights | undefined
  /** The groups of the first suspects, of at most `mostSuspects`, each once and in their order. */
  suspectGroups(): readonly string[]
  /** Opens the lanes whose time has come, a bounded number. */
  openDue(): void
  /** Puts the lane of no group into the turns, if it has jobs and room and is neither there nor shut. */
  openFree(): void
  /** The number of lanes in the turns. */
  openLanes(): number
  /** Takes the next lane out of the turns; at most `left` jobs are still to be granted. */
  nextLane(left: number): string | undefined
  /** How many turns of its round the lane that was taken last has had before. */
  turnsHad(): number
  /** The same of a lane in the turns; undefined if it is not in them. */
  turnsHadBy(group: string): number | undefined
  /** The lane that was taken last has had one turn more, and has the next one too. */
  keepTurn(): void
  readyIn(group: string): number
  roomIn(group: string): number
  /** For how long the group is held; 0 or less: it is not. */
  heldForMs(group: string): number
  /** The lane has been visited: it goes back into the turns if `isOpen`. */
  visited(group: string, isOpen: boolean): void
  close(group: string, forMs: number): void
  /** Nothing of the queue is granted for `forMs`. */
  shut(forMs: number): void
  /**
   * Makes the first jobs of a pool, at most `most`, running ones. Returns their number. A store that must decide before it
   * takes anything counts them as taken and notes the pool: its notes are the plan that it then carries out at once.
   */
  take(pool: ReadyPool, most: number): number
  /** Whether the claim can carry no more. */
  isFull(): boolean
}

/** A throttle of the queue; `group` is `''` if it counts all jobs together. */
interface DealtThrottle {
  permits(group: string): { readonly permits: number; readonly forMs: number }
  started(group: string, count: number): void
  /** Whether anything in its scope could start; in the group, if it counts by group. */
  hasMore(group: string): boolean
  /** Nothing is left that could start. */
  rests(): void
}

/** The counters of a throttle, by the subjects that it counts, at the moment of the claim. */
interface SubjectCounters {
  permits(subject: string): { readonly permits: number; readonly forMs: number }
  /** `hasMore`: whether anything is left that could start. */
  started(subject: string, count: number, hasMore: boolean): void
  rests(subject: string): void
}

/**
 * The throttle of a queue for all jobs together, and that for each group. `hasMore`: whether any queue of its scope has
 * a ready job, or one of this group.
 * @internal
 */
export function dealtThrottles(
  throttle: Throttle,
  counters: SubjectCounters,
  hasMore: (group?: string) => boolean,
): Pick<DealtQueue, 'whole' | 'perGroup'> {
  const counting = (subjectIn: (group: string) => string, hasMore: (group: string) => boolean): DealtThrottle => ({
    hasMore,
    permits: (group) => counters.permits(subjectIn(group)),
    started: (group, count) => counters.started(subjectIn(group), count, hasMore(group)),
    rests: () => counters.rests(subjectIn('')),
  })
  const isOfAll = throttle.by === 'queue'
  const isOfGroups = groupRules(throttle) !== undefined
  return {
    whole: isOfAll
      ? counting(
          () => '',
          () => hasMore(),
        )
      : undefined,
    perGroup: isOfGroups ? counting((group) => subjectOf(throttle, group), hasMore) : undefined,
  }
}

/**
 * Grants at most `limit` jobs; with 0 it only opens lanes for others. Alone it grants one job, a suspect first: only
 * claims made alone receive suspects. Returns the number taken.
 */
export function deal(queue: DealtQueue, limit: number, alone: boolean): number {
  if (limit <= 0) {
    queue.openDue()
    return 0
  }
  const { whole } = queue
  const suspects = alone && queue.suspects > 0 ? queue.suspectGroups() : []
  if (suspects.length === 0 && queue.ordinary === 0) {
    if (whole !== undefined && !whole.hasMore('')) whole.rests()
    return 0
  }
  const most = Math.min(alone ? 1 : limit, queue.room, whole?.permits('').permits ?? Number.POSITIVE_INFINITY)
  const taken = most > 0 ? dealSome(queue, most, suspects) : 0
  if (whole !== undefined) {
    const forMs = deniedForMs(whole, '', taken)
    if (forMs !== undefined && (queue.ordinary > 0 || queue.suspects > 0)) queue.shut(forMs)
  }
  return taken
}

function dealSome(queue: DealtQueue, most: number, suspects: readonly string[]): number {
  const suspect = suspects.find((group) => groupOpensInMs(queue, group) === 0)
  if (suspect !== undefined) {
    const taken = queue.take({ suspectsOf: suspect }, 1)
    startedIn(queue, suspect, taken)
    return taken
  }
  return queue.hasLanes ? goRound(queue, most) : queue.take('free', most)
}

/**
 * Ms until the group of one of the first suspects lets it start, whatever the queue as a whole does; 0: now; Infinity: that
 * does not happen by itself, or there is none.
 */
export function suspectInMs(queue: DealtQueue): number {
  return Math.min(Number.POSITIVE_INFINITY, ...queue.suspectGroups().map((group) => groupOpensInMs(queue, group)))
}

/** Ms until the group lets a job start; Infinity: not by itself, because it is full or paused. */
function groupOpensInMs(queue: DealtQueue, group: string): number {
  if (queue.roomIn(group) <= 0) return Number.POSITIVE_INFINITY
  const heldForMs = Math.max(0, queue.heldForMs(group))
  if (queue.perGroup === undefined) return heldForMs
  const { permits, forMs } = queue.perGroup.permits(group)
  return permits > 0 ? heldForMs : Math.max(heldForMs, forMs)
}

/** Lane by lane, as far as their own limits permit. */
function goRound(queue: DealtQueue, most: number): number {
  queue.openDue()
  queue.openFree()
  let taken = 0
  // The turns that are left of this round.
  let unvisited = 0
  for (let visits = 0; visits < mostVisits && taken < most && !queue.isFull(); visits += 1) {
    if (unvisited === 0) unvisited = turnsOf(queue, most - taken)
    const group = unvisited === 0 ? undefined : queue.nextLane(most - taken)
    if (group === undefined) break
    // Its share of the rest, rounded up, so that a claim goes round once if it can.
    taken += visit(queue, group, Math.ceil((most - taken) / unvisited))
    unvisited -= 1
  }
  return taken
}

/** The number of turns in a round. */
function turnsOf(queue: DealtQueue, most: number): number {
  const lanes = queue.openLanes()
  // With as many lanes as jobs to grant, each turn has one job, however many turns there are.
  if (queue.weights === undefined || lanes >= most) return lanes
  return Object.entries(queue.weights).reduce((turns, [group, weight]) => {
    const had = queue.turnsHadBy(group)
    return had === undefined ? turns : turns + Math.max(0, weight - 1 - had)
  }, lanes)
}

function visit(queue: DealtQueue, group: string, share: number): number {
  // Only jobs without a group may have gone without leaving the turns.
  if (queue.readyIn(group) === 0 || queue.roomIn(group) <= 0) return 0
  const heldForMs = queue.heldForMs(group)
  if (heldForMs > 0) {
    queue.close(group, heldForMs)
    return 0
  }
  const count = Math.min(share, queue.readyIn(group), queue.roomIn(group), permitsIn(queue, group))
  const taken = count > 0 ? queue.take(group === '' ? 'free' : { group }, count) : 0
  const isOpen = queue.readyIn(group) > 0 && queue.roomIn(group) > 0
  if (isOpen && queue.turnsHad() + 1 < (queue.weights?.[group] ?? 1)) queue.keepTurn()
  else queue.visited(group, isOpen)
  startedIn(queue, group, taken)
  return taken
}

/** How many jobs the throttle permits of a group, if it counts by group. */
function permitsIn({ perGroup }: DealtQueue, group: string): number {
  return perGroup?.permits(group).permits ?? Number.POSITIVE_INFINITY
}

/** `count` jobs of a group have been taken, perhaps 0. The rest is shut if it may not start now. */
function startedIn(queue: DealtQueue, group: string, count: number): void {
  if (queue.perGroup === undefined) return
  const forMs = deniedForMs(queue.perGroup, group, count)
  if (forMs !== undefined && queue.readyIn(group) > 0 && queue.roomIn(group) > 0) queue.close(group, forMs)
}

/** Ms until the next job may start, once `count` have; undefined if it may now. */
function deniedForMs(throttle: DealtThrottle, group: string, count: number): number | undefined {
  if (count > 0) throttle.started(group, count)
  const { permits, forMs } = throttle.permits(group)
  return permits > 0 ? undefined : forMs
}
