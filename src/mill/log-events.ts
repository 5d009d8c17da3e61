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

type LogLine = { readonly level: keyof Logger; readonly message: string; readonly fields: Record<string, unknown> }

const missedWords = {
  late: 'as no worker was there',
  paused: 'due when it was paused',
  changed: 'due when its times were changed',
} as const

const lines: { readonly [Name in EventName]?: (event: EventMap[Name]) => LogLine } = {
  'job.dropped': (job) => ({
    level: 'warn',
    message:
      "input dropped: the job of its id is dead. Revive or delete that one, or enqueue with ifWaiting: 'replace'",
    fields: { ...job },
  }),
  'expiry.short': ({ expiresMs, retryMs, ...task }) => ({
    level: 'warn',
    message: `its jobs expire after ${formatDuration(expiresMs)}, before a first retry, which comes after up to ${formatDuration(retryMs)}. Give a longer expiresIn, or a shorter retry: { backoff }`,
    fields: { ...task },
  }),
  'store.strayed': (store) => ({
    level: 'warn',
    message:
      'the file of the store was made in the working directory, because no package.json is above the configuration or the main script; started elsewhere, this program would not see these jobs. Give the path absolutely, or add a package.json',
    fields: { ...store },
  }),
  'schema.varied': (task) => ({
    level: 'warn',
    message:
      'its schema makes another value at each attempt, which cannot be stored because the schema transforms it. Make random values and times where you enqueue, or leave the transform to the handler',
    fields: { ...task },
  }),
  'task.unknown': ({ task, queue }) => ({
    level: 'warn',
    message: `no handler for task '${task}' here: its jobs on queue '${queue}' are left to workers that have one. If it belongs to another service, give each service a namespace or queues of its own; if not, add it to \`tasks\``,
    fields: { task, queue },
  }),
  'group.missing': ({ task, queue, limit }) => ({
    level: 'warn',
    message: `the ${limit === 'throttle' ? 'throttle' : '`maxRunning`'} of queue '${queue}' holds for each group, but jobs of task '${task}' have none: they all share the limit of one group. Give the task a \`group\`, or ${limit === 'throttle' ? "leave out `by: 'group'`" : 'give `maxRunning` a number'}`,
    fields: { task, queue },
  }),
  'join.failed': (join) => ({
    level: 'error',
    message: `join is dead: ${join.reason}`,
    fields: { ...join },
  }),
  'job.failed': ({ error, ...job }) => ({
    level: 'warn',
    message: `job failed: ${messageOf(error)}`,
    fields: { ...job },
  }),
  'job.buried': (job) => ({ level: 'error', message: `job buried: ${job.reason}`, fields: { ...job } }),
  'job.released': (job) => ({
    level: ['unknown-codec', 'unknown-key', 'not-loaded'].includes(job.reason) ? 'warn' : 'debug',
    message: `job released: ${job.reason}`,
    fields: { ...job },
  }),
  'suspension.swallowed': ({ text, ...job }) => ({
    level: 'warn',
    message: `its handler caught the error that ends its run (it ${text}), or did not await the call. Let that error through, and await ctx.sleep() and ctx.waitFor(): what the handler does after them happens again in the next run`,
    fields: { ...job },
  }),
  'job.cancelled': (job) => ({ level: 'info', message: 'job cancelled', fields: { ...job } }),
  'job.crashed': (job) => ({
    level: 'warn',
    message: job.charged
      ? `job crashed: its worker was lost while it ran this job alone, ${job.crashes} so far`
      : 'job crashed: its worker was lost; it is run again, alone',
    fields: { ...job },
  }),
  'job.adopted': (job) => ({
    level: 'info',
    message: `job adopted: its worker is gone, and process ${job.child} goes on with it`,
    fields: { ...job },
  }),
  'job.detached': (job) => ({
    level: 'info',
    message: `job detached: its worker stops, and process ${job.child} goes on with it`,
    fields: { ...job },
  }),
  'job.slow': (job) => ({
    level: 'warn',
    message: `job is slow: it has run for ${formatDuration(job.runMs)} and goes on`,
    fields: { ...job },
  }),
  'settle.refused': (job) => ({
    level: 'warn',
    message: `late ${job.kind} refused: the claim is ${job.answer}`,
    fields: { ...job },
  }),
  'lease.lost': (job) => ({
    level: 'warn',
    message: `lease lost${job.child === undefined ? '' : `, process ${job.child} was killed`}: another worker may run the job`,
    fields: { ...job },
  }),
  'process.failed': ({ error, ...job }) => ({
    level: 'error',
    message: `process of an isolated job could not run it: ${error}`,
    fields: { ...job },
  }),
  'process.ended': ({ child, state, ...job }) => ({
    level: 'info',
    message: `process ${child} of an adopted job has ended; ${state === undefined ? 'nothing is kept of the job' : `the job is ${state}`}`,
    fields: { ...job, child, state },
  }),
  'remains.ended': (remains) => ({
    level: 'warn',
    message: 'programs of a job were ended, because the process of the job had died',
    fields: { ...remains },
  }),
  'heap.unwatched': ({ worker, tasks }) => ({
    level: 'warn',
    message: `this system does not report the size of a process: maxHeap bounds only the heap of ${tasks.join(', ')}`,
    fields: { worker, tasks },
  }),
  'env.withheld': ({ task, queue, names }) => ({
    level: 'warn',
    message: `jobs of task '${task}' run in processes that do not get ${namesText(names)} from the environment: name in its \`env\` what it needs, or give \`env: []\``,
    fields: { task, queue, names },
  }),
  'permit.wasted': (job) => ({
    level: 'warn',
    message: `permit wasted: the throttle counts a job that was not started (${job.reason})`,
    fields: { ...job },
  }),
  'start.late': (job) => ({
    level: 'warn',
    message: `started ${job.lateMs}ms later than the throttle allows for`,
    fields: { ...job },
  }),
  'result.dropped': ({ error, ...job }) => ({
    level: 'warn',
    message: `result not kept: ${error}`,
    fields: { ...job },
  }),
  'slot.retired': (job) => ({
    level: 'warn',
    message: `slot retired: the handler goes on after its job was given up; slots left: ${job.left}`,
    fields: { ...job },
  }),
  'loop.blocked': ({ forMs, jobs, givenUp }) => ({
    level: givenUp ? 'error' : 'warn',
    message: `event loop was blocked for ${formatDuration(forMs)}${givenUp ? '; it gave up its leases' : ''}`,
    fields: { forMs, givenUp, jobs },
  }),
  'store.failed': ({ error, ...call }) => ({
    level: 'warn',
    message: `store call failed: ${messageOf(error)}`,
    fields: { ...call },
  }),
  'context.failed': ({ error, retryMs }) => ({
    level: 'error',
    message: `\`context\` could not open what the handlers need, ${retryMs === undefined ? 'and no job is taken' : 'and is tried again before a job is taken'}: ${messageOf(error)}`,
    fields: { retryMs },
  }),
  'queue.damaged': ({ error, ...queue }) => ({
    level: 'error',
    message: `queue damaged and left out, checked again in ${formatDuration(queue.retryMs)}: ${messageOf(error)}`,
    fields: { ...queue },
  }),
  'queue.mended': (queue) => ({
    level: 'info',
    message: 'queue mended: its jobs are taken again',
    fields: { ...queue },
  }),
  'queue.unserved': (job) => ({
    level: 'warn',
    message: `a result has not come for 10s: ${unservedText(job.queue)}`,
    fields: { ...job },
  }),
  'schedule.skipped': ({ ticks, ...schedule }) => ({
    level: 'info',
    message: `schedule skipped ${ticks === 1 ? 'a tick' : `${ticks} ticks`}: its last job is not done`,
    fields: { ...schedule, ticks },
  }),
  'schedule.missed': ({ enqueued, leftOut, ...schedule }) => ({
    level: 'warn',
    message: `schedule missed ticks, ${missedWords[schedule.reason]}: enqueued now ${enqueued}, left out ${leftOut}`,
    fields: { ...schedule, enqueued, leftOut },
  }),
  'schedule.refused': ({ error, ...schedule }) => ({
    level: 'warn',
    message: `schedule could not enqueue: ${error === undefined ? `its queue is ${schedule.reason}` : messageOf(error)}; tried again in ${formatDuration(schedule.retryMs)}`,
    fields: { ...schedule },
  }),
  'schedule.reconciled': (schedule) => ({
    level: schedule.change === 'removed' || schedule.takenFrom !== undefined ? 'warn' : 'info',
    message:
      schedule.takenFrom === undefined
        ? `schedule ${schedule.change}, to match the configuration`
        : `schedule taken from the configuration '${schedule.takenFrom}': if that is another service, each takes it from the other whenever it starts. Give the schedule another name, or each service a namespace of its own`,
    fields: { ...schedule },
  }),
  'schedule.foreign': ({ schedules, declaredBy, by }) => ({
    level: 'warn',
    message: `schedules of the configuration '${declaredBy}' are in this store and are left alone by '${by}': if that is a service of its own, a namespace keeps the two apart; if it is gone, remove them by \`millrace schedules remove <name>\``,
    fields: { schedules: schedules.slice(0, mostNamed), declaredBy },
  }),
  'schedule.lost': ({ restored }) => ({
    level: 'warn',
    message: `the store had lost its schedules: those of the configuration are written again (${restored.length}), those that were set at run time are gone`,
    fields: { restored: restored.slice(0, mostNamed) },
  }),
  'hook.failed': ({ hook, error }) => ({
    level: 'error',
    message: `${hook} threw: ${messageOf(error)}`,
    fields: { hook },
  }),
  'worker.started': (worker) => ({ level: 'info', message: 'worker started', fields: { ...worker } }),
  'worker.signalled': ({ worker, signal }) => ({
    level: 'info',
    message: `worker is told to ${signal}`,
    fields: { worker, signal },
  }),
  'worker.recycling': ({ worker, reason }) => ({
    level: 'info',
    message: `worker takes no more jobs, to be replaced: ${reason}`,
    fields: { worker, reason },
  }),
  'worker.failed': ({ worker, error }) => ({
    level: 'error',
    message: `worker failed, it takes no more jobs: ${messageOf(error)}`,
    fields: { worker },
  }),
  'worker.stopped': (worker) => ({ level: 'info', message: 'worker stopped', fields: { ...worker } }),
}

export function logEvents(events: Events, logger: Logger): void {
  if (logger === silentLogger) return
  for (const name of Object.keys(lines) as EventName[]) {
    const lineOf = lines[name] as (event: EventMap[EventName]) => LogLine
    events.on(name, (event) => {
      const { level, message, fields } = lineOf(event)
      logger[level](message, fields)
    })
  }
}
