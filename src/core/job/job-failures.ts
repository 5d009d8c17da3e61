/**
 * The failures of a job: when its latest attempts failed, and why. They are stored behind the text of the last error,
 * so a store need not know of them; users see the two apart.
 */

/** An attempt that failed. */
export interface JobFailure {
  /** The number of the attempt, from 1. It starts again after a revival. */
  readonly attempt: number
  /** By the worker's clock. */
  readonly at: Date
  /** The whole text for the last failure, the first 400 characters for earlier ones. */
  readonly error: string
}

/** The text of an error never holds the record separator, because `storedError` replaces it. */
const mark = '\n\u001efailures '
const mostFailures = 10
const longestBefore = 400
/** The limit in characters for all failures as JSON; the oldest are dropped first. */
const mostStored = 4_096

/** Attempt, instant and error. The last one has no error here: its error is the text before the mark. */
type StoredFailure = readonly [attempt: number, at: number, error?: string]

interface ReadError {
  readonly text: string
  readonly failures: readonly StoredFailure[]
}

/**
 * The stored text of an error. `before`: the text stored so far. `failed`: the attempt that failed with this error;
 * absent if the error is about something else, such as a payload that no worker can read.
 */
export function storedError(
  error: string,
  before: string | undefined,
  failed?: { readonly attempt: number; readonly at: number },
): string {
  const text = withoutMark(error)
  const earlier = before === undefined ? [] : settled(readError(before))
  const last: readonly StoredFailure[] = failed === undefined ? [] : [[failed.attempt, failed.at]]
  let kept = [...earlier, ...last].slice(-mostFailures)
  let stored = JSON.stringify(kept)
  while (stored.length > mostStored) {
    kept = kept.slice(1)
    stored = JSON.stringify(kept)
  }
  return kept.length === 0 ? text : `${text}${mark}${stored}`
}

/** The error itself, without the failures. */
export function ownError(stored: string): string {
  return readError(stored).text
}

/** The failures, oldest first; undefined if none is known. */
export function failuresIn(stored: string | undefined): readonly JobFailure[] | undefined {
  if (stored === undefined) return undefined
  const { text, failures } = readError(stored)
  if (failures.length === 0) return undefined
  return failures.map(([attempt, at, error = text]) => ({ attempt, at: new Date(at), error }))
}

/** The failures, each with its own text, as they are kept when another error follows. */
function settled({ text, failures }: ReadError): readonly StoredFailure[] {
  return failures.map(([attempt, at, error = text]) => [attempt, at, shortened(error)])
}

function shortened(error: string): string {
  return error.length <= longestBefore ? error : `${error.slice(0, longestBefore - 1).toWellFormed()}…`
}

function withoutMark(error: string): string {
  return error.includes('\u001e') ? error.replaceAll('\u001e', ' ') : error
}

/**
 * Reads a stored text. A text without failures, or with invalid ones from another program, is an error and nothing
 * else.
 */
function readError(stored: string): ReadError {
  const at = stored.lastIndexOf(mark)
  if (at < 0) return { text: stored, failures: [] }
  try {
    const failures: unknown = JSON.parse(stored.slice(at + mark.length))
    if (Array.isArray(failures) && failures.every(isStoredFailure)) return { text: stored.slice(0, at), failures }
  } catch {
    // Not JSON: it is part of the error.
  }
  return { text: stored, failures: [] }
}

function isStoredFailure(value: unknown): value is StoredFailure {
  if (!Array.isArray(value)) return false
  const [attempt, at, error] = value as unknown[]
  return (
    Number.isSafeInteger(attempt) &&
    Number.isSafeInteger(at) &&
    Math.abs(at as number) <= 8.64e15 &&
    (error === undefined || typeof error === 'string')
  )
}
