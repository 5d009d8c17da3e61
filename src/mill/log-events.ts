/**
 * The log subscriber: writes the events that need a user's attention to the given logger. Millrace itself prints
 * nothing.
 */

import { unservedText } from '../client/jobs/unserved-queues.js'
import type { EventMap, EventName, Events } from '../core/events.js'
import { type Logger, silentLogger } from '../core/logger.js'
import { messageOf, namesText } from '../core/messages/describe.js'
import { formatDuration } from '../core/values/duration.js'

/** The most names in a line. */
const mostNamed = 20

/** `fields`: absent: all of the event. */
type LogLine = readonly [level: keyof Logger, message: string, fields?: Record<string, unknown>]

const missedWords = {
  late: 'as no worker was there',
  paused: 'due when it was paused',
  changed: 'due when its times were changed',
} as const

/** Words for an end that the store refused, in every log. `end`: its kind, perhaps with the job. */
export function refusedWords(end: string, { answer, inDoubt = false }: EventMap['settle.refused']): string {
  return inDoubt
    ? `${end} was sent again, as its first time had no answer, and the claim is ${answer}: the first may have ended it`
    : `late ${end} refused: the claim is ${answer}`
}

type NamedTrouble =
  | ('queue.damaged' | 'queue.mended')
  | ('schedule.missed' | 'schedule.refused' | 'schedule.foreign' | 'schedule.lost')

/** The troubles of queues and schedules, in the words of every log. The name of the queue or the schedule comes before. */
export const troubleWords: { readonly [Name in NamedTrouble]: (event: EventMap[Name]) => string } = {
  'queue.damaged': ({ error, retryMs }) =>
    `damaged and left out, checked again in ${formatDuration(retryMs)}: ${messageOf(error)}`,
  'queue.mended': () => 'mended: its jobs are taken again',
  'schedule.missed': ({ enqueued, leftOut, reason }) =>
    `missed ticks, ${missedWords[reason]}: enqueued now ${enqueued}, left out ${leftOut}`,
  'schedule.refused': ({ error, reason, retryMs }) =>
    `could not enqueue: ${error === undefined ? `its queue is ${reason}` : messageOf(error)}; tried again in ${formatDuration(retryMs)}`,
  'schedule.foreign': ({ declaredBy, by }) =>
    `schedules of the configuration '${declaredBy}' are in this store and are left alone by '${by}': if that is a service of its own, a namespace keeps the two apart; if it is gone, remove them by \`millrace schedules remove <name>\``,
  'schedule.lost': ({ restored }) =>
    `the store had lost its schedules: those of the configuration are written again (${restored.length}), those that were set at run time are gone`,
}

const lines: { readonly [Name in EventName]?: (event: EventMap[Name]) => LogLine } = {
  'job.dropped': () => [
    'warn',
    "input dropped: the job of its id is dead. Revive or delete that one, or enqueue with ifWaiting: 'replace' if it is no join",
  ],
  'expiry.short': ({ expiresMs, retryMs, ...task }) => [
    'warn',
    `its jobs expire after ${formatDuration(expiresMs)}, before a first retry, which comes after up to ${formatDuration(retryMs)}. Give a longer expiresIn, or a shorter retry: { backoff }`,
    task,
  ],
  'store.strayed': () => [
    'warn',
    'the file of the store was made in the working directory, because no package.json is above the configuration or the main script; started elsewhere, this program would not see these jobs. Give the path absolutely, or add a package.json',
  ],
  'schema.varied': () => [
    'warn',
    'its schema makes another value at each attempt, which cannot be stored because the schema transforms it. Make random values and times where you enqueue, or leave the transform to the handler',
  ],
  'task.unknown': ({ task, queue }) => [
    'warn',
    `no handler for task '${task}' here: its jobs on queue '${queue}' are left to workers that have one. If it belongs to another service, give each service a namespace or queues of its own; if not, add it to \`tasks\``,
  ],
  'group.missing': ({ task, queue, limit }) => [
    'warn',
    `the ${limit === 'throttle' ? 'throttle' : '`maxRunning`'} of queue '${queue}' holds for each group, but jobs of task '${task}' have none: they all share the limit of one group. Give the task a \`group\`, or ${limit === 'throttle' ? "leave out `by: 'group'`" : 'give `maxRunning` a number'}`,
    { task, queue },
  ],
  'join.failed': (join) => ['error', `join is dead: ${join.reason}`],
  'job.failed': ({ error, ...job }) => ['warn', `job failed: ${messageOf(error)}`, job],
  'job.buried': (job) => ['error', `job buried: ${job.reason}`],
  'job.released': (job) => [
    ['unknown-codec', 'unknown-key', 'not-loaded'].includes(job.reason) ? 'warn' : 'debug',
    `job released: ${job.reason}`,
  ],
  'suspension.swallowed': ({ text, ...job }) => [
    'warn',
    `its handler caught the error that ends its run (it ${text}), or did not await the call. Let that error through, and await ctx.sleep() and ctx.waitFor(): what the handler does after them happens again in the next run`,
    job,
  ],
  'job.cancelled': () => ['info', 'job cancelled'],
  'job.crashed': (job) => [
    'warn',
    job.charged
      ? `job crashed: its worker was lost while it ran this job alone, ${job.crashes} so far`
      : 'job crashed: its worker was lost; it is run again, alone',
  ],
  'job.adopted': (job) => ['info', `job adopted: its worker is gone, and process ${job.child} goes on with it`],
  'job.detached': (job) => ['info', `job detached: its worker stops, and process ${job.child} goes on with it`],
  'job.slow': (job) => ['warn', `job is slow: it has run for ${formatDuration(job.runMs)} and goes on`],
  'settle.refused': (job) => ['warn', refusedWords(job.kind, job)],
  'lease.lost': (job) => [
    'warn',
    `lease lost${job.child === undefined ? '' : `, process ${job.child} was killed`}: another worker may run the job`,
  ],
  'process.failed': ({ error, ...job }) => ['error', `process of an isolated job could not run it: ${error}`, job],
  'process.ended': ({ child, state }) => [
    'info',
    `process ${child} of an adopted job has ended; ${state === undefined ? 'nothing is kept of the job' : `the job is ${state}`}`,
  ],
  'remains.ended': () => ['warn', 'programs of a job were ended, because the process of the job had died'],
  'heap.unwatched': ({ tasks }) => [
    'warn',
    `this system does not report the size of a process: maxHeap bounds only the heap of ${tasks.join(', ')}`,
  ],
  'env.withheld': ({ task, names }) => [
    'warn',
    `jobs of task '${task}' run in processes that do not get ${namesText(names)} from the environment: name in its \`env\` what it needs, or give \`env: []\``,
  ],
  'permit.wasted': (job) => ['warn', `permit wasted: the throttle counts a job that was not started (${job.reason})`],
  'start.late': (job) => ['warn', `started ${job.lateMs}ms later than the throttle allows for`],
  'result.dropped': ({ error, ...job }) => ['warn', `result not kept: ${error}`, job],
  'slot.retired': (job) => [
    'warn',
    `slot retired: the handler goes on after its job was given up; slots left: ${job.left}`,
  ],
  'loop.blocked': ({ forMs, givenUp }) => [
    givenUp ? 'error' : 'warn',
    `event loop was blocked for ${formatDuration(forMs)}${givenUp ? '; it gave up its leases' : ''}`,
  ],
  'store.failed': ({ error, ...call }) => ['warn', `store call failed: ${messageOf(error)}`, call],
  'context.failed': ({ error, retryMs }) => [
    'error',
    `\`context\` could not open what the handlers need, ${retryMs === undefined ? 'and no job is taken' : 'and is tried again before a job is taken'}: ${messageOf(error)}`,
    { retryMs },
  ],
  'queue.damaged': (event) => {
    const { error: _, ...queue } = event
    return ['error', `queue ${troubleWords['queue.damaged'](event)}`, queue]
  },
  'queue.mended': (event) => ['info', `queue ${troubleWords['queue.mended'](event)}`],
  'queue.unserved': (job) => ['warn', `a result has not come for 10s: ${unservedText(job.queue)}`],
  'schedule.skipped': ({ ticks }) => [
    'info',
    `schedule skipped ${ticks === 1 ? 'a tick' : `${ticks} ticks`}: its last job is not done`,
  ],
  'schedule.missed': (event) => ['warn', `schedule ${troubleWords['schedule.missed'](event)}`],
  'schedule.refused': (event) => {
    const { error: _, ...schedule } = event
    return ['warn', `schedule ${troubleWords['schedule.refused'](event)}`, schedule]
  },
  'schedule.reconciled': (schedule) => [
    schedule.change === 'removed' || schedule.takenFrom !== undefined ? 'warn' : 'info',
    schedule.takenFrom === undefined
      ? `schedule ${schedule.change}, to match the configuration`
      : `schedule taken from the configuration '${schedule.takenFrom}': if that is another service, each takes it from the other whenever it starts. Give the schedule another name, or each service a namespace of its own`,
  ],
  'schedule.foreign': (event) => {
    const { schedules, declaredBy } = event
    return ['warn', troubleWords['schedule.foreign'](event), { schedules: schedules.slice(0, mostNamed), declaredBy }]
  },
  'schedule.lost': (event) => [
    'warn',
    troubleWords['schedule.lost'](event),
    { restored: event.restored.slice(0, mostNamed) },
  ],
  'hook.failed': ({ hook, error }) => ['error', `${hook} threw: ${messageOf(error)}`, { hook }],
  'worker.started': () => ['info', 'worker started'],
  'worker.signalled': ({ signal }) => ['info', `worker is told to ${signal}`],
  'worker.recycling': ({ reason }) => ['info', `worker takes no more jobs, to be replaced: ${reason}`],
  'worker.failed': ({ worker, error }) => [
    'error',
    `worker failed, it takes no more jobs: ${messageOf(error)}`,
    { worker },
  ],
  'worker.stopped': () => ['info', 'worker stopped'],
}

export function logEvents(events: Events, logger: Logger): void {
  if (logger === silentLogger) return
  for (const name of Object.keys(lines) as EventName[]) {
    const lineOf = lines[name] as (event: EventMap[EventName]) => LogLine
    events.on(name, (event) => {
      const [level, message, fields = { ...event }] = lineOf(event)
      logger[level](message, fields)
    })
  }
}
