/**
 * The input that is stored: what the task's schema made of the given one, so that every attempt gets the same defaults.
 *
 * A worker validates the stored input again, because its version of the schema may be another. What is stored must
 * therefore be an input of the schema: its output is one if the schema leaves it as it is. That holds for defaults,
 * coercions, trimmed texts and removed keys. It does not hold for a transform such as text to number, and not for an
 * output that cannot be encoded: the given input is then stored, and the schema runs for each attempt.
 */

import type { AnyTask } from '../../core/task/any-task.js'
import { made, type SchemaResult } from '../../core/task/schema.js'
import type { Payload } from '../../core/values/codec.js'
import type { DraftRules } from './draft-content.js'

/** `input`: what is stored; `payload`: the same, encoded, if that is known already. */
export interface MadeInput {
  readonly input: unknown
  readonly payload?: Payload
}

/** `output`: what the schema made of `input`. A promise only if the schema answers with one. */
export function madeInput(
  task: AnyTask,
  input: unknown,
  output: unknown,
  rules: DraftRules,
): MadeInput | Promise<MadeInput> {
  const payload = encodedOr(rules, output)
  if (payload === undefined) return { input }
  if (output === input || isSame(payload, encodedOr(rules, input))) return { input: output, payload }
  return after(made(task.input!, output), (again) =>
    isSame(payload, payloadOf(again, rules)) ? { input: output, payload } : given(task, input, payload, rules),
  )
}

/** The input as it was given, for a schema whose output is no input. It must then make the same for each attempt. */
function given(task: AnyTask, input: unknown, payload: Payload, rules: DraftRules): MadeInput | Promise<MadeInput> {
  return after(made(task.input!, input), (again) => {
    if (!isSame(payload, payloadOf(again, rules))) rules.warnings.schemaVaries(task)
    return { input }
  })
}

function after<From, To>(from: From | Promise<From>, next: (from: From) => To | Promise<To>): To | Promise<To> {
  return from instanceof Promise ? from.then(next) : next(from)
}

function payloadOf(result: SchemaResult<unknown>, rules: DraftRules): Payload | undefined {
  return result.issues === undefined ? encodedOr(rules, result.value) : undefined
}

/** Undefined if the value cannot be encoded. */
function encodedOr({ packing }: DraftRules, value: unknown): Payload | undefined {
  try {
    return packing.encode(value)
  } catch {
    return undefined
  }
}

function isSame(a: Payload, b: Payload | undefined): boolean {
  if (typeof a === 'string' || typeof b === 'string' || b === undefined) return a === b
  return Buffer.compare(a, b) === 0
}
