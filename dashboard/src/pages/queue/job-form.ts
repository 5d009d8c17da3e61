/** The job form: a new job as it is typed, the request made from it, and a form filled from an existing job. Pure. */

import { ApiError, type FieldMistake } from '../../api/api-error.js'
import { TypedJson } from '../../api/typed-json.js'
import type { JobDetail } from '../job/job-detail.js'

export interface JobForm {
  readonly task: string
  /** JSON. */
  readonly input: string
  readonly id: string
  readonly delay: string
  readonly priority: string
  readonly group: string
  readonly score: string
}

export const noTexts: JobForm = { task: '', input: '', id: '', delay: '', priority: '', group: '', score: '' }

interface FormResult {
  /** Absent if there is a mistake. */
  readonly job?: Readonly<Record<string, unknown>>
  readonly mistakes: readonly FieldMistake[]
}

/** Empty fields are left out. */
export function jobOf({ task, input, priority, score, ...texts }: JobForm): FormResult {
  const mistakes: FieldMistake[] = []
  const number = (path: string, text: string) => {
    const value = Number(text)
    if (text !== '' && Number.isNaN(value)) mistakes.push({ path, message: 'must be a number' })
    return text === '' ? undefined : value
  }
  if (task.trim() === '') mistakes.push({ path: 'task', message: 'must be the name of a task' })
  const { value, mistake } = jsonIn(input)
  if (mistake !== undefined) mistakes.push({ path: 'input', message: mistake })
  const given = Object.entries({
    task: task.trim(),
    input: value,
    ...texts,
    priority: number('priority', priority),
    score: number('score', score),
  }).filter(([, part]) => part !== undefined && part !== '')
  return mistakes.length > 0 ? { mistakes } : { job: Object.fromEntries(given), mistakes }
}

/** The form filled from an ordered job: its newest payload, as the others existed before it. */
export function againForm({ task, id, payloads }: JobDetail): Partial<JobForm> {
  const newest = payloads?.at(-1)
  return { task, id, input: jsonText(newest?.input), ...(newest && { score: String(newest.score) }) }
}

/** Of the same payload; sent along unchanged. */
export function againMeta({ payloads }: JobDetail): Readonly<Record<string, unknown>> | undefined {
  return payloads?.at(-1)?.meta
}

/**
 * The input of a field that was filled with `before`; none if the job keeps its own: the field is empty, or as it was. Throws an
 * `ApiError` for a text that is not JSON.
 */
export function otherInput(text: string, before: string): { readonly input?: TypedJson } {
  if (text === before) return {}
  const { value, mistake } = jsonIn(text)
  if (mistake !== undefined) throw new ApiError(0, 'argument-invalid', mistake, [{ path: 'input', message: mistake }])
  return value === undefined ? {} : { input: value }
}

/** The value of a field with JSON; undefined if the field is empty. */
export function jsonIn(text: string): { readonly value?: TypedJson; readonly mistake?: string } {
  try {
    return text.trim() === '' ? {} : { value: new TypedJson(text) }
  } catch (error) {
    return { mistake: `is not JSON: ${error instanceof Error ? error.message : error}` }
  }
}

/** The text of such a field. */
export function jsonText(value: unknown): string {
  return value === undefined ? '' : JSON.stringify(value, undefined, 2)
}
