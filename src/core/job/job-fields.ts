/** The fields of a job: small named values that anyone with the job can add, at any time. */

import { InvalidArgumentError } from '../errors.js'
import { describe } from '../messages/describe.js'

export type JobFields = Readonly<Record<string, string | number | boolean>>

/** Values by name; null removes a name. */
export type FieldChanges = Readonly<Record<string, string | number | boolean | null>>

/** The fields of one job, to be set and read. */
export interface FieldWriter {
  /**
   * Sets these fields and leaves the others; the last write of a name counts. `null` removes a name. A job has at most
   * 32 fields and 4 KiB of them in all. A name has 1 to 64 of A-Z, a-z, 0-9, `_`, `.` and `-`; a value has at most 256
   * bytes as JSON. Resolves to false if nothing is kept of the job. Throws `InvalidArgumentError`.
   */
  set(fields: FieldChanges): Promise<boolean>
  /** The present fields of the job. They are empty if nothing is kept of it. */
  get(): Promise<JobFields>
}

export const mostFields = 32
/** The limit for the names and values of all fields of a job, with the values as JSON. */
export const mostFieldBytes = 4_096
const mostValueBytes = 256
const tooManyFields = `fields must be at most ${mostFields}, and at most ${mostFieldBytes} bytes with their names and their values as JSON.`
const nameForm = /^[A-Za-z0-9_.-]{1,64}$/

/** Throws `InvalidArgumentError` for names and values that no field can have. */
export function checkFields(changes: unknown): asserts changes is FieldChanges {
  const mistake = fieldsMistake(changes, ', or null, which takes it out')
  if (mistake !== undefined) throw new InvalidArgumentError(mistake)
}

/** Why a new job cannot have these fields; undefined if it can. */
export function newFieldsMistake(fields: unknown): string | undefined {
  return fieldsMistake(fields) ?? (areTooMany(fields as JobFields) ? tooManyFields : undefined)
}

/** `orNull`: what null means as a value; absent: it is none. */
function fieldsMistake(changes: unknown, orNull?: string): string | undefined {
  if (typeof changes !== 'object' || changes === null || Array.isArray(changes))
    return `fields must be an object of names and values; got ${describe(changes)}.`
  for (const [name, value] of Object.entries(changes)) {
    if (!nameForm.test(name) || name === '__proto__')
      return `the name of a field must be 1 to 64 of A-Z, a-z, 0-9, '_', '.' and '-'; got ${describe(name)}.`
    if (value === null && orNull !== undefined) continue
    const isValue = typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)
    if (!isValue || Buffer.byteLength(JSON.stringify(value)) > mostValueBytes)
      return `field '${name}' must be a text, a finite number or a boolean of at most ${mostValueBytes} bytes as JSON${orNull ?? ''}; got ${describe(value)}.`
  }
  return undefined
}

/** Whether a job cannot have so many fields, or so large ones. */
export function areTooMany(fields: JobFields): boolean {
  const all = Object.entries(fields)
  const bytes = all.reduce((sum, [name, value]) => sum + name.length + Buffer.byteLength(JSON.stringify(value)), 0)
  return all.length > mostFields || bytes > mostFieldBytes
}

/**
 * The result of `set()` for a store's answer: false if the job is gone. Throws `InvalidArgumentError` if the job would
 * have too many fields.
 */
export function areSet(id: string, answer: 'ok' | 'gone' | 'full'): boolean {
  if (answer !== 'full') return answer === 'ok'
  throw new InvalidArgumentError(
    `job '${id}' would have more than ${mostFields} fields, or more than ${mostFieldBytes} bytes of them; nothing was changed. Take some out by null, or store large values elsewhere.`,
  )
}
