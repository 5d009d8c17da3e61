/**
 * The failures of a job: when each of its latest attempts failed, and why. They travel behind the text of the last error, so that
 * no store need know of them; users see the two apart.
 */

/** An attempt that failed. */
export interface JobFailure {
  /** Which attempt it was, from 1. After a revival they are counted anew. */
  readonly attempt: number
  /** By the clock of the worker. */
  readonly at: Date
  /** The last one whole, of those before it the first 400 characters. */
  readonly error: string
}

/** A text of an error does not hold the record separator: it is taken out. */
const mark = '\n\u001efailures '
const mostFailures = 10
const longestBefore = 400
/** Of all but the last error; the oldest give way. */
const mostStored = 4_096

/** Attempt, instant and error; the error of the last one is the text before the mark. */
type StoredFailure = readonly [attempt: number, at: number, error?: string]

interface ReadError {
  readonly text: string
  readonly failures: readonly StoredFailure[]
}

/**
 * The text that is stored of an error. `before`: what was stored until now. `failed`: the attempt that failed with it; absent where
 * it tells of something else, such as a payload that no worker can read.
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

/** The error itself. */
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

/** Behind another error each has a text of its own. */
function settled({ text, failures }: ReadError): readonly StoredFailure[] {
  return failures.map(([attempt, at, error = text]) => [attempt, at, shortened(error)])
}

function shortened(error: string): string {
  return error.length <= longestBefore ? error : `${error.slice(0, longestBefore - 1).toWellFormed()}…`
}

function withoutMark(error: string): string {
  return error.includes('\u001e') ? error.replaceAll('\u001e', ' ') : error
}

/** A text without failures, or whose failures are none, as another program may have written it, is an error and nothing else. */
function readError(stored: string): ReadError {
  const at = stored.lastIndexOf(mark)
  if (at < 0) return { text: stored, failures: [] }
  try {
    const failures: unknown = JSON.parse(stored.slice(at + mark.length))
    if (Array.isArray(failures) && failures.every(isStoredFailure)) return { text: stored.slice(0, at), failures }
  } catch {
    // No JSON: it is part of the error.
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
