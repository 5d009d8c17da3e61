/** The task counters: the ends of attempts by task, as this process sees them from the first look at its metrics on. */

import * as v from 'valibot'
import type { Events, JobRef, TaskCounter } from '../core/events.js'
import type { AnyTask } from '../core/task/any-task.js'
import { runTimeBoundsMs, runTimeClass } from '../stores/rules/history-slots.js'
import { type MetricSamples, seconds } from './exposition.js'

/** The most rows of one process: pairs of a queue and a task. Further pairs are not counted. */
export const mostTaskRows = 200
/** The task of all jobs whose task the mill does not declare: as a label, any text could stand there. */
const undeclared = '*'

const amount = v.pipe(v.number(), v.finite(), v.minValue(0))

const rowShape = v.object({
  ...{ queue: v.string(), task: v.string() },
  ...v.entriesFromList(['completed', 'failed', 'dead', 'runMs'], amount),
  runTimes: v.pipe(v.array(amount), v.length(runTimeBoundsMs.length + 1)),
})

/** The counts of one task in one queue. */
type TaskRow = v.InferOutput<typeof rowShape>

/** The form in which they travel between processes. */
export const taskRowsShape = v.pipe(v.array(rowShape), v.maxLength(mostTaskRows))

interface CountedMill {
  readonly tasks: ReadonlyMap<string, AnyTask>
  readonly runParts: { readonly events: Events }
}

export class TaskCounters implements TaskCounter {
  /** The declared names, by those and by old ones. */
  readonly #names: ReadonlyMap<string, string>
  /** By queue, then by task. */
  readonly #queues = new Map<string, Map<string, TaskRow>>()
  #size = 0

  constructor(tasks: Iterable<AnyTask>) {
    this.#names = new Map([...tasks].flatMap(({ name, aliases }) => [name, ...aliases].map((one) => [one, name])))
  }

  /** Those of the mill, which count from the first call on as long as the process lives. */
  static of({ tasks, runParts: { events } }: CountedMill): TaskCounters {
    const known = events.taskCounter
    if (known instanceof TaskCounters) return known
    const counters = new TaskCounters(tasks.values())
    events.taskCounter = counters
    return counters
  }

  get rows(): TaskRow[] {
    return [...this.#queues.values()].flatMap((tasks) => [...tasks.values()])
  }

  completed(job: Pick<JobRef, 'queue' | 'task'>, runMs: number): void {
    const row = this.#of(job)
    if (row === undefined) return
    row.completed += 1
    addRun(row, runMs)
  }

  failed(job: Pick<JobRef, 'queue' | 'task'>, runMs: number): void {
    const row = this.#of(job)
    if (row === undefined) return
    row.failed += 1
    addRun(row, runMs)
  }

  buried(job: Pick<JobRef, 'queue' | 'task'>): void {
    const row = this.#of(job)
    if (row !== undefined) row.dead += 1
  }

  #of({ queue, task }: Pick<JobRef, 'queue' | 'task'>): TaskRow | undefined {
    const name = this.#names.get(task) ?? undeclared
    const tasks = this.#queues.get(queue)
    const row = tasks?.get(name)
    if (row !== undefined || this.#size === mostTaskRows) return row
    const added = emptyRow(queue, name)
    this.#size += 1
    if (tasks === undefined) this.#queues.set(queue, new Map([[name, added]]))
    else tasks.set(name, added)
    return added
  }
}

function emptyRow(queue: string, task: string): TaskRow {
  const runTimes = new Array<number>(runTimeBoundsMs.length + 1).fill(0)
  return { queue, task, completed: 0, failed: 0, dead: 0, runMs: 0, runTimes }
}

function addRun(row: TaskRow, runMs: number): void {
  row.runTimes[runTimeClass(runMs)]! += 1
  row.runMs += runMs
}

/** The sums of both. */
export function addedTaskRows(one: readonly TaskRow[], other: readonly TaskRow[]): TaskRow[] {
  const rows = new Map<string, TaskRow>()
  for (const row of [...one, ...other]) {
    const key = JSON.stringify([row.queue, row.task])
    const before = rows.get(key) ?? emptyRow(row.queue, row.task)
    rows.set(key, {
      ...before,
      completed: before.completed + row.completed,
      failed: before.failed + row.failed,
      dead: before.dead + row.dead,
      runMs: before.runMs + row.runMs,
      runTimes: before.runTimes.map((count, i) => count + row.runTimes[i]!),
    })
  }
  return [...rows.values()]
}

const taskEvents = ['completed', 'failed', 'dead'] as const
const boundsInSeconds = runTimeBoundsMs.map(seconds)

export function addTasks(samples: MetricSamples, rows: readonly TaskRow[]): void {
  for (const row of rows) {
    const labels = { queue: row.queue, task: row.task }
    for (const event of taskEvents) samples.add('millrace_task_events_total', { ...labels, event }, row[event])
    const times = { bounds: boundsInSeconds, counts: row.runTimes, sum: seconds(row.runMs) }
    samples.addHistogram('millrace_task_duration_seconds', labels, times)
  }
}
