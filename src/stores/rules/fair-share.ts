/**
 * Fair share: which ready jobs of a queue a claim is given, as far as limits go — in the order of the queue, or in turn from the
 * lanes of its groups. The stores in JavaScript deal by it, at one moment of one claim; Lua has a translation.
 */

/** Most lanes that one claim looks into: those that turn out to be shut are passed over. */
export const mostVisits = 1_000

/** Where jobs are taken from: those without a group, the lane of one, or the suspects. */
export type ReadyPool = 'free' | 'suspects' | { readonly group: string }

/** A queue, or a shard of an ordered one, as a claim deals its jobs out. Groups are those of its lanes; `''` has those of none. */
export interface DealtQueue {
  /** Its ready jobs, suspects apart. */
  readonly ordinary: number
  /** How many more may run; Infinity where nothing bounds them. */
  readonly room: number
  /** Whether jobs or limits make it go round its lanes. */
  readonly hasLanes: boolean
  readonly throttle: DealtThrottle | undefined
  /** The group of the first suspect; undefined if there is none. */
  firstSuspect(): string | undefined
  /** Opens the lanes whose time has come, a bounded number. */
  openDue(): void
  /** Puts the lane of no group into the turns, if it has jobs and room and is neither there nor shut. */
  openFree(): void
  /** How many lanes stand in the turns. */
  openLanes(): number
  /** Takes the next lane out of the turns; at most so many jobs are still to be granted. */
  nextLane(left: number): string | undefined
  readyIn(group: string): number
  roomIn(group: string): number
  /** For how long the group is held back; 0 or less: it is not. */
  heldForMs(group: string): number
  /** The lane has been visited: it stands in the turns again, or not. */
  visited(group: string, isOpen: boolean): void
  close(group: string, forMs: number): void
  /** Nothing of the queue is granted for so long. */
  shut(forMs: number): void
  /** Makes the first jobs of a pool, at most so many, running ones. How many that were. */
  take(pool: ReadyPool, most: number): number
  /** Whether the claim can carry no more. */
  isFull(): boolean
}

/** Its throttle; the subject is a group, or `''` where it counts by queue. */
interface DealtThrottle {
  readonly by: 'queue' | 'group'
  permits(subject: string): { readonly permits: number; readonly forMs: number }
  started(subject: string, count: number): void
  /** Whether anything in its scope could be started; of the group, where it counts by group. */
  hasMore(subject: string): boolean
  /** Nothing is left that could start. */
  rests(): void
}

/** At most so many; with none, the lanes are opened for others. Alone one, a suspect first: nobody else is ever given them. How many were taken. */
export function deal(queue: DealtQueue, limit: number, alone: boolean): number {
  if (limit <= 0) {
    queue.openDue()
    return 0
  }
  const whole = queue.throttle?.by === 'queue' ? queue.throttle : undefined
  const suspect = alone ? queue.firstSuspect() : undefined
  if (suspect === undefined && queue.ordinary === 0) {
    if (whole !== undefined && !whole.hasMore('')) whole.rests()
    return 0
  }
  const most = Math.min(alone ? 1 : limit, queue.room, whole?.permits('').permits ?? Number.POSITIVE_INFINITY)
  const taken = most > 0 ? dealSome(queue, most, suspect) : 0
  if (whole !== undefined) {
    const forMs = deniedForMs(whole, '', taken)
    if (forMs !== undefined && (queue.ordinary > 0 || queue.firstSuspect() !== undefined)) queue.shut(forMs)
  }
  return taken
}

function dealSome(queue: DealtQueue, most: number, suspect: string | undefined): number {
  const mayTake = (group: string) =>
    queue.roomIn(group) > 0 && queue.heldForMs(group) <= 0 && permitsIn(queue, group) > 0
  if (suspect !== undefined && mayTake(suspect)) {
    const taken = queue.take('suspects', 1)
    startedIn(queue, suspect, taken)
    return taken
  }
  return queue.hasLanes ? goRound(queue, most) : queue.take('free', most)
}

/** Lane by lane, as far as their own limits go. */
function goRound(queue: DealtQueue, most: number): number {
  queue.openDue()
  queue.openFree()
  let taken = 0
  // Lanes that have not had their turn in this round.
  let unvisited = 0
  for (let visits = 0; visits < mostVisits && taken < most && !queue.isFull(); visits += 1) {
    if (unvisited === 0) unvisited = queue.openLanes()
    const group = unvisited === 0 ? undefined : queue.nextLane(most - taken)
    if (group === undefined) break
    // Its share of what is left, rounded up, so that a claim goes round once where it can.
    taken += visit(queue, group, Math.ceil((most - taken) / unvisited))
    unvisited -= 1
  }
  return taken
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
  queue.visited(group, queue.readyIn(group) > 0 && queue.roomIn(group) > 0)
  startedIn(queue, group, taken)
  return taken
}

/** How many the throttle permits of a group, where it counts by that. */
function permitsIn({ throttle }: DealtQueue, group: string): number {
  return throttle?.by === 'group' ? throttle.permits(group).permits : Number.POSITIVE_INFINITY
}

/** So many of a group have been taken, perhaps none. What is left and may not start now is shut. */
function startedIn(queue: DealtQueue, group: string, count: number): void {
  if (queue.throttle?.by !== 'group') return
  const forMs = deniedForMs(queue.throttle, group, count)
  if (forMs !== undefined && queue.readyIn(group) > 0 && queue.roomIn(group) > 0) queue.close(group, forMs)
}

/** After how long the next may start, once so many have; undefined where it may now. */
function deniedForMs(throttle: DealtThrottle, subject: string, count: number): number | undefined {
  if (count > 0) throttle.started(subject, count)
  const { permits, forMs } = throttle.permits(subject)
  return permits > 0 ? undefined : forMs
}
