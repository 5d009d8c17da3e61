/**
 * The schema: the interface through which inputs are validated, Standard Schema v1 (https://standardschema.dev). Zod,
 * Valibot, ArkType and others implement it. Only its types are needed, so there is nothing to install.
 */

import { InvalidJobError } from '../errors.js'
import { messageOf } from '../messages/describe.js'

/** A Standard Schema: `Input` is the type it accepts, `Output` the type it returns. */
export interface Schema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

export function isSchema(value: unknown): value is Schema {
  // ArkType's schemas are functions.
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const standard = (value as Partial<Schema>)['~standard']
  return standard?.version === 1 && typeof standard.validate === 'function'
}

/** The most issues in a message: a list of a thousand wrong items should not give a thousand lines. */
const mostIssues = 20

/** The validated value. Throws `InvalidJobError` that lists the issues with their paths, each on a line. */
export async function validated<Output>(
  schema: Schema<unknown, Output>,
  value: unknown,
  what: string,
): Promise<Output> {
  const pending = schema['~standard'].validate(value)
  return accepted('then' in pending ? await pending : pending, what)
}

/** Like `validated`, but synchronous. Also throws `InvalidJobError` for a schema that answers asynchronously. */
export function validatedNow<Output>(schema: Schema<unknown, Output>, value: unknown, what: string): Output {
  const result = schema['~standard'].validate(value)
  if (!('then' in result)) return accepted(result, what)
  // Nobody awaits this answer any more.
  Promise.resolve(result).catch(() => {})
  throw new InvalidJobError(
    `${what} has an asynchronous schema, and a transaction cannot wait for it. Give the task a synchronous schema, and make slow checks before the transaction.`,
  )
}

/** What the schema makes of the value; its issues too if it throws. A promise only if the schema answers with one. */
export function made(schema: Schema, value: unknown): SchemaResult<unknown> | Promise<SchemaResult<unknown>> {
  const failed = (error: unknown) => ({ issues: [{ message: messageOf(error) }] })
  try {
    const result = schema['~standard'].validate(value)
    return 'then' in result ? Promise.resolve(result).catch(failed) : result
  } catch (error) {
    return failed(error)
  }
}

function accepted<Output>(result: SchemaResult<Output>, what: string): Output {
  if (result.issues === undefined) return result.value
  const lines = result.issues.slice(0, mostIssues).map((issue) => `  ${pathOf(issue)}: ${issue.message}`)
  if (result.issues.length > mostIssues) lines.push(`  … and ${result.issues.length - mostIssues} more`)
  throw new InvalidJobError(`${what} does not match its schema:\n${lines.join('\n')}`)
}

function pathOf(issue: SchemaIssue): string {
  const keys = (issue.path ?? []).map((step) => String(typeof step === 'object' ? step.key : step))
  return keys.join('.') || '(input)'
}
