/**
 * Findings about deaths, for `doctor`: those that wait to be reported for longer than a worker takes, and why no worker
 * reports them.
 */

import { formatDuration } from '../../../core/values/duration.js'
import type { Mill } from '../../../mill/mill.js'
import { attendanceOf } from '../../../runtime/process/process-peers.js'
import type { DeathBacklog } from '../../../stores/contract/job-records.js'
import type { StoredQueue } from '../../../stores/contract/queue-settings.js'
import type { FsckFinding } from '../../../stores/contract/store-health.js'
import type { WorkerRecord } from '../../../stores/contract/worker-registry.js'

/** Tasks whose deaths wait for longer are named. A worker looks every few seconds, and a minute after a refusal. */
const longMs = 120_000
/** The most deaths of a task that are counted, and the most tasks that are named. */
const mostCounted = 10_000
const mostNamed = 5

interface DeathFacts {
  readonly backlogs: readonly DeathBacklog[]
  /** On the clock of the store. */
  readonly now: number
  /** The workers that live; undefined if the store does not know. */
  readonly workers: readonly Pick<WorkerRecord, 'queues' | 'taskNames' | 'state'>[] | undefined
  /** Whether the task of this name has `onDead` in the configuration; undefined if there is no such task. */
  readonly hasOnDead: (task: string) => boolean | undefined
}

/**
 * The findings about the deaths in these queues; none if the store keeps no deaths. `leastMs`: how long they have waited, two
 * minutes unless a test says otherwise.
 */
export async function deathFindings(
  mill: Mill,
  stored: readonly StoredQueue[],
  leastMs = longMs,
): Promise<FsckFinding[]> {
  const { look, registry } = mill.adminParts
  const store = await look()
  const plain = stored.filter(({ kind }) => kind === 'plain').map(({ name }) => name)
  if (store.deaths === undefined || plain.length === 0) return []
  const backlogs = await store.deaths.backlog(plain, mostCounted)
  if (backlogs.length === 0) return []
  const { now } = await store.depth(plain.slice(0, 1))
  const long = backlogs.filter(({ since }) => now - since >= leastMs)
  if (long.length === 0) return []
  const seen = await store.workers?.list()
  const hasOnDead = (name: string) => {
    const task = registry.find(name)
    return task && task.onDead !== undefined
  }
  return judgeDeaths({ backlogs: long, now, workers: seen && attendanceOf(seen).serving, hasOnDead })
}

/** Judges deaths that have waited for long to be reported. Pure. */
export function judgeDeaths(facts: DeathFacts): FsckFinding[] {
  const backlogs = [...facts.backlogs].sort((a, b) => a.since - b.since)
  const texts = backlogs.slice(0, mostNamed).map((backlog) => textOf(backlog, facts))
  const others = backlogs.length - mostNamed
  if (others > 0) texts.push(`deaths of jobs of ${others === 1 ? '1 more task' : `${others} more tasks`} wait too.`)
  return texts.map((text) => ({ level: 'warning', what: 'deaths', text }))
}

function textOf(backlog: DeathBacklog, facts: DeathFacts): string {
  const { queue, task, count, since } = backlog
  const some = count === 1 ? '1 death' : count < mostCounted ? `${count} deaths` : `at least ${count} deaths`
  const which = `${some} of jobs of task '${task}' in queue '${queue}' ${count === 1 ? 'waits' : 'wait'} to be reported`
  return `${which}, the first for ${formatDuration(facts.now - since)}: ${reasonOf(backlog, facts)}`
}

/** Why nobody reports them, and the remedy. */
function reasonOf({ queue, task }: DeathBacklog, { workers, hasOnDead }: DeathFacts): string {
  const serving = workers?.filter(({ queues, state }) => state !== 'stopping' && queues.includes(queue))
  if (serving?.length === 0)
    return `no worker serves the queue. Start one that has the task with \`onDead\`: \`millrace work --queues ${queue}\`.`
  const isKnown = serving?.some(({ taskNames }) => taskNames?.includes(task) ?? true) ?? hasOnDead(task) !== undefined
  if (!isKnown)
    return `${serving === undefined ? 'this configuration has no such task' : 'none of its workers knows the task'}. Define it with \`onDead\`, or give its name to another task with \`onDead\` as one of its \`aliases\`.`
  if (hasOnDead(task) === false)
    return 'the task has no `onDead` in this configuration. Give it one again; a task that does nothing will do.'
  return "its workers may know the task. If the number does not fall, their event 'hook.failed' says why."
}
