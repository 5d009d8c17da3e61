/**
 * A marked checkpoint: the value that a handler stored, together with the names of its enqueue calls that are done.
 * Users see only the value. If nothing was enqueued, the value is stored as it is.
 */

/** The reserved key of stored checkpoints. */
export const marksKey = 'millrace:enqueued'

export interface MarkedCheckpoint {
  /** Undefined if the handler has stored none. */
  readonly value: unknown
  /** Names of calls. */
  readonly marks: readonly string[]
}

export function storedCheckpoint({ value, marks }: MarkedCheckpoint): unknown {
  if (marks.length === 0) return value
  return { [marksKey]: marks, ...(value === undefined ? {} : { value }) }
}

export function readCheckpoint(stored: unknown): MarkedCheckpoint {
  if (!isMarked(stored)) return { value: stored, marks: [] }
  const { [marksKey]: marks, value } = stored
  return { value, marks: Array.isArray(marks) ? marks.filter((mark) => typeof mark === 'string') : [] }
}

export function isMarked(value: unknown): value is { readonly [marksKey]: unknown; readonly value?: unknown } {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, marksKey)
}
