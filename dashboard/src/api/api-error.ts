/** The API error: an error that the window answered, in words that say what to do. */

export interface FieldMistake {
  readonly path: string
  readonly message: string
}

interface ToldFailure {
  readonly error?: {
    readonly code?: string
    readonly message?: string
    readonly fields?: readonly FieldMistake[]
    readonly changed?: number
  }
}

export class ApiError extends Error {
  /** 0: there was no answer. */
  readonly status: number
  /** One of the codes in docs/errors.md and docs/http-api.md; `network` if there was no answer. */
  readonly code: string
  readonly fields: readonly FieldMistake[]
  /** The number of things that were changed all the same. */
  readonly changed: number

  constructor(status: number, code: string, message: string, fields: readonly FieldMistake[] = [], changed = 0) {
    super(message)
    this.status = status
    this.code = code
    this.fields = fields
    this.changed = changed
  }
}

/** The error in an answer; a proxy's answer has none of ours. */
export async function toldError(response: Response): Promise<ApiError> {
  const told = (await response.json().catch(() => ({}))) as ToldFailure
  const { code = 'unknown', fields, changed, ...rest } = told.error ?? {}
  const { message = `The server answered with status ${response.status}.` } = rest
  return new ApiError(response.status, code, message, fields, changed)
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Whether the request was aborted, for instance because the page was left. */
export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}
