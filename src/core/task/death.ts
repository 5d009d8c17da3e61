/** The deaths of jobs as they are reported to a task: the input of the task that `onDead` of another names. */

import * as v from 'valibot'
import { isDefinition, type TaskHeader } from './task-definition.js'

/** The death of a job, as the task is given it that `onDead` of the job's own task names. It shows the job as it was then. */
export interface Death<Input = unknown> {
  /** The id of the dead job. */
  readonly job: string
  readonly queue: string
  readonly task: string
  /** As it was stored. Absent if it cannot be decoded, or is too large to be sent on with the rest. */
  readonly input?: Input
  /** Why the job is in the morgue: `max-retries`, `crashed`, … or a reason that its handler or an operator gave. */
  readonly reason?: string
  /** The last error, as in its record. Absent if there was none, or it is too large to be sent on with the rest. */
  readonly error?: string
  /** The last attempt that was made. */
  readonly attempt: number
  /** Crashes charged to it. */
  readonly crashes: number
  /** When it died, in ms since 1970, on the clock of the store. */
  readonly diedAt: number
}

/** Some task to which the deaths of jobs with this input can be reported: a plain one without `joins`, which takes a `Death`. */
// biome-ignore lint/suspicious/noExplicitAny: as of any task
export interface DeathTask<Input = any> extends TaskHeader<string, any, any, any, string, any> {
  readonly kind: 'plain'
  readonly joins: undefined
  readonly group: ((death: Death<Input>) => string | number) | undefined
}

const form = 'must be a task that takes a Death, made by defineTask()'
const words: readonly unknown[] = ['fail', 'go-on', 'hold']

/**
 * The option `onDead` of a task.
 * @internal
 */
export const onDeadOption = v.pipe(
  v.custom<DeathTask>(isDefinition, ({ input }) =>
    words.includes(input) ? `${form}; a set of \`joins\` takes that word: many(task, { onDead: '${input}' })` : form,
  ),
  v.check(
    ({ kind }) => kind === 'plain',
    'must not be an ordered task, whose payloads merge: let the handler of a plain task enqueue it',
  ),
  v.check(
    ({ joins }) => joins === undefined,
    'must not be a task with `joins`, whose jobs wait for others: let the handler of a plain task enqueue it',
  ),
)
