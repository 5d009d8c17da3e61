/** The job form: a new job as it is typed, and the request made from it. Pure. */

import type { FieldMistake } from '../../api/api-error.js'

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
  let value: unknown
  try {
    value = input.trim() === '' ? undefined : JSON.parse(input)
  } catch (error) {
    mistakes.push({ path: 'input', message: `is not JSON: ${error instanceof Error ? error.message : error}` })
  }
  const given = Object.entries({
    task: task.trim(),
    input: value,
    ...texts,
    priority: number('priority', priority),
    score: number('score', score),
  }).filter(([, part]) => part !== undefined && part !== '')
  return mistakes.length > 0 ? { mistakes } : { job: Object.fromEntries(given), mistakes }
}
