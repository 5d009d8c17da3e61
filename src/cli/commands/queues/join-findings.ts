/**
 * Findings about joins, for `doctor`: those that have waited for longer than a day, for a dead member that nobody revives,
 * or for a queue that no worker serves. Of each queue only the joins that were enqueued first are read.
 */

import { formatDuration } from '../../../core/values/duration.js'
import { pagesOf } from '../../../core/values/pages.js'
import { workersByQueue } from '../../../measures/worker-counts.js'
import type { Mill } from '../../../mill/mill.js'
import { attendanceOf } from '../../../runtime/process/process-peers.js'
import type { StoredJob } from '../../../stores/contract/job-records.js'
import type { StoredJoin, StoredSet } from '../../../stores/contract/joins.js'
import type { StoredQueue } from '../../../stores/contract/queue-settings.js'
import type { Store } from '../../../stores/contract/store.js'
import type { FsckFinding } from '../../../stores/contract/store-health.js'
import { warning } from '../../../stores/rules/findings.js'
import { doneIn, memberId } from '../../../stores/rules/join-rules.js'

/** A join that has waited for longer is named. */
const longMs = 86_400_000
/** The most joins of a queue that are read, the most pages for them, and the most joins that are named for one reason. */
const mostRead = 100
const mostPages = 10
const mostNamed = 5

/** A join that waits. */
export interface WaitingJoin {
  readonly queue: string
  readonly id: string
  readonly task: string
  readonly waitedMs: number
  readonly join: StoredJoin
  /** The first member for which it waits, if it has waited for long; undefined if nothing of that is kept. */
  readonly oldest?: Pick<StoredJob, 'state'> | undefined
}

interface JoinFacts {
  readonly waiting: readonly WaitingJoin[]
  /** The queues of which more jobs wait, for others or for signals, than were examined. */
  readonly unread: ReadonlyMap<string, { readonly waiting: number; readonly examined: number }>
  /** How many workers take jobs of each queue; undefined if the store does not know. */
  readonly workers: ReadonlyMap<string, number> | undefined
}

/** The findings about the joins of these queues; none if the store has no joins. */
export async function joinFindings(mill: Mill, stored: readonly StoredQueue[]): Promise<FsckFinding[]> {
  const store = await mill.adminParts.look()
  const plain = stored.filter(({ kind }) => kind === 'plain').map(({ name }) => name)
  if (store.joins === undefined || store.records === undefined || plain.length === 0) return []
  const { now, depths } = await store.depth(plain)
  const waiting: WaitingJoin[] = []
  const unread = new Map<string, { waiting: number; examined: number }>()
  for (const { queue, waiting: count } of depths) {
    if (count === 0) continue
    const { examined, jobs } = await joinsIn(store, queue)
    waiting.push(...(await waitingAs(jobs, store, queue, now)))
    if (count > examined) unread.set(queue, { waiting: count, examined })
  }
  if (waiting.length === 0) return []
  const seen = await store.workers?.list()
  return judgeJoins({ waiting, unread, workers: seen && workersByQueue(attendanceOf(seen).serving) })
}

/** The first jobs of a queue that wait for others. A job that waits for a signal no longer does, though it is a join. */
async function joinsIn({ records }: Store, queue: string): Promise<{ examined: number; jobs: StoredJob[] }> {
  const jobs: StoredJob[] = []
  let examined = 0
  let pages = 0
  const limit = () => mostRead - jobs.length
  const query = { state: 'waiting', by: 'time' } as const
  for await (const page of pagesOf((from) => records!.list(queue, { ...query, limit: limit(), ...from }))) {
    jobs.push(...page.jobs.filter(({ isJoin, awaits }) => isJoin && awaits === undefined))
    examined += page.jobs.length
    pages += 1
    if (pages === mostPages || limit() === 0) break
  }
  return { examined, jobs }
}

async function waitingAs(
  jobs: readonly StoredJob[],
  { records, joins }: Store,
  queue: string,
  now: number,
): Promise<WaitingJoin[]> {
  const found = await Promise.all(
    jobs.map(async ({ id, task, createdAt }): Promise<WaitingJoin | undefined> => {
      const join = await joins!.look({ queue, id })
      return join && { queue, id, task, waitedMs: now - createdAt, join }
    }),
  )
  const waiting = found.filter((one) => one !== undefined)
  const long = waiting.filter(({ waitedMs }) => waitedMs > longMs).slice(0, mostNamed)
  const withOldest = await Promise.all(
    long.map(async (one) => {
      const set = openSets(one)[0]
      const oldest = set?.oldest === undefined ? undefined : await records!.get(set.queue, memberId(set, set.oldest))
      return { ...one, oldest }
    }),
  )
  return waiting.map((one) => withOldest.find(({ id }) => id === one.id) ?? one)
}

/** Judges joins that wait. Pure. */
export function judgeJoins({ waiting, unread, workers }: JoinFacts): FsckFinding[] {
  const held = waiting.filter((one) => heldSets(one).length > 0)
  const long = waiting.filter((one) => one.waitedMs > longMs && !held.includes(one))
  return [
    ...unservedFindings(waiting, workers),
    ...named(held, heldText, (queue, count) => `${more(count)} of queue '${queue}' ${waits(count)} for dead members.`),
    ...named(
      long,
      longText,
      (queue, count) =>
        `${more(count)} of queue '${queue}' ${count === 1 ? 'has' : 'have'} waited for longer than a day.`,
    ),
    ...[...unread].map(([queue, { waiting: count, examined }]) =>
      warning(
        'joins',
        `of the ${count} jobs that wait in queue '${queue}', the ${examined} that were enqueued first were examined.`,
      ),
    ),
  ]
}

/** The sets for which it waits. */
function openSets({ join: { sets } }: WaitingJoin): StoredSet[] {
  return sets.filter((set) => set.size === undefined || doneIn(set) < set.size)
}

/** Those whose dead members it waits for: they hold, or the join was revived without them. */
function heldSets({ join: { sets } }: WaitingJoin): StoredSet[] {
  return sets.filter(({ onDead, counts }) => onDead !== 'go-on' && counts.dead > 0)
}

/** One finding for each queue of members that no worker serves. */
function unservedFindings(waiting: readonly WaitingJoin[], workers: JoinFacts['workers']): FsckFinding[] {
  if (workers === undefined) return []
  const counts = new Map<string, number>()
  for (const one of waiting) {
    const unserved = openSets(one).flatMap(({ queue }) => ((workers.get(queue) ?? 0) > 0 ? [] : [queue]))
    for (const queue of new Set(unserved)) counts.set(queue, (counts.get(queue) ?? 0) + 1)
  }
  return [...counts].map(([queue, count]) =>
    warning(
      'joins',
      `${count === 1 ? '1 join waits' : `${count} joins wait`} for jobs of queue '${queue}', which no worker serves. Start one: \`millrace work --queues ${queue}\`.`,
    ),
  )
}

/** A finding for each of the first joins of a queue, and one for the number of the others. */
function named(
  joins: readonly WaitingJoin[],
  text: (one: WaitingJoin) => string,
  others: (queue: string, count: number) => string,
): FsckFinding[] {
  const queues = new Set(joins.map(({ queue }) => queue))
  return [...queues].flatMap((queue) => {
    const some = joins.filter((one) => one.queue === queue)
    const texts = some.slice(0, mostNamed).map(text)
    if (some.length > mostNamed) texts.push(others(queue, some.length - mostNamed))
    return texts.map((one) => warning('joins', one))
  })
}

function heldText(one: WaitingJoin): string {
  const [{ name, queue, counts }] = heldSets(one) as [StoredSet]
  const { waitsUntil } = one.join
  const members = counts.dead === 1 ? 'a dead member' : `${counts.dead} dead members`
  const until = waitsUntil === undefined ? '' : `, at the latest until ${new Date(waitsUntil).toISOString()}`
  return `${joinName(one)} waits until ${members} of set '${name}' in queue '${queue}' ${counts.dead === 1 ? 'is' : 'are'} revived and ${counts.dead === 1 ? 'completes' : 'complete'}${until}. \`millrace morgue list ${queue}\` shows them, \`millrace morgue revive ${queue} <id>\` brings one back.`
}

function longText(one: WaitingJoin): string {
  const sets = openSets(one)
  const members = sets.reduce((sum, { size, added }) => sum + (size ?? added), 0)
  const left = sets.reduce((sum, set) => sum + (set.size ?? set.added) - doneIn(set), 0)
  const [set] = sets
  const waited = `${joinName(one)} has waited for ${formatDuration(one.waitedMs)}`
  if (set?.size === undefined)
    return `${waited}, and its members are still being added: if its producer has died, enqueue it again under the same id, or cancel it: \`millrace jobs cancel ${one.queue} ${inShell(one.id)}\`.`
  if (set.oldest === undefined) return `${waited} for ${left} of ${members} members.`
  const id = memberId(set, set.oldest)
  const state = one.oldest === undefined ? 'of which nothing is kept' : `which is ${one.oldest.state}`
  return `${waited} for ${left} of ${members} members, first for '${id}' in queue '${set.queue}', ${state}. \`millrace jobs show ${set.queue} ${inShell(id)}\` says more; to bound such waits, enqueue with \`within\`.`
}

function joinName({ id, task, queue }: WaitingJoin): string {
  return `join '${id}' of task '${task}' in queue '${queue}'`
}

/** An id as it can be pasted into a shell. */
function inShell(id: string): string {
  return /^[\w.:@-]+$/.test(id) ? id : `'${id.replaceAll("'", `'\\''`)}'`
}

function more(count: number): string {
  return count === 1 ? '1 more join' : `${count} more joins`
}

function waits(count: number): string {
  return count === 1 ? 'waits' : 'wait'
}
