/** The API error: what the window answered instead of what was asked, in words that say what to do. */

export interface FieldMistake {
  readonly path: string
  readonly message: string
}

interface ToldFailure {
  readonly error?: {
    readonly code?: string
    readonly message?: string
    readonly fields?: readonly FieldMistake[]
  }
}

export class ApiError extends Error {
  /** 0: there was no answer. */
  readonly status: number
  /** As docs/errors.md and docs/http-api.md list them; `network` where there was no answer. */
  readonly code: string
  readonly fields: readonly FieldMistake[]

  constructor(status: number, code: string, message: string, fields: readonly FieldMistake[] = []) {
    super(message)
    this.status = status
    this.code = code
    this.fields = fields
  }
}

/** The error that an answer tells; a proxy's answer tells none. */
export async function toldError(response: Response): Promise<ApiError> {
  const told = (await response.json().catch(() => ({}))) as ToldFailure
  const { code = 'unknown', message = `The server answered with status ${response.status}.`, fields } = told.error ?? {}
  return new ApiError(response.status, code, message, fields)
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Whether it says that somebody stopped asking, as a page that is left does. */
export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError'
}
