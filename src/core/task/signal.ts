/** Signals: messages to one job, which its handler waits for by `ctx.waitFor()`. */

import * as v from 'valibot'
import { isTaskName } from '../values/ids.js'
import { exactly, parsed } from '../values/option-check.js'
import { isSchema, type Schema } from './schema.js'
import { quotedName, taskName } from './task-definition.js'

declare const types: unique symbol

/** A signal: its name, and the schema of its data. `Input` is what its sender gives, `Data` what the handler gets. */
export interface DefinedSignal<Input = unknown, Data = Input> {
  readonly name: string
  readonly data: Schema<Input, Data> | undefined
  /** Carries the types; absent at run time. */
  readonly [types]?: { input: Input; data: Data }
}

/** Some signal. */
// biome-ignore lint/suspicious/noExplicitAny: as of any task
export type AnySignal = DefinedSignal<any, any>
type SignalInput<S extends AnySignal> = NonNullable<S[typeof types]>['input']
export type SignalData<S extends AnySignal> = NonNullable<S[typeof types]>['data']

/** The arguments after the signal when it is sent: its data, unless it has none. */
export type SignalArguments<S extends AnySignal> =
  undefined extends SignalInput<S> ? [data?: SignalInput<S>] : [data: SignalInput<S>]

const shape = exactly({
  name: taskName,
  data: v.optional(v.custom<Schema>(isSchema, 'must be a Standard Schema (Zod, Valibot, ArkType …)')),
})

/**
 * Defines a signal that a handler can wait for. Its data is checked by `data`, any Standard Schema, when it is sent and
 * when it is received. Without a schema it has no data, or data of the type that you name. The name is a task name:
 * a job gets each signal once. Throws `ConfigError`.
 *
 * @example
 * export const approved = defineSignal<{ yes: boolean }>({ name: 'approved' })
 */
export function defineSignal<Input, Data>(options: {
  readonly name: string
  readonly data: Schema<Input, Data>
}): DefinedSignal<Input, Data>
export function defineSignal<Data = undefined>(options: { readonly name: string }): DefinedSignal<Data, Data>
export function defineSignal(options: { readonly name: string; readonly data?: Schema }): AnySignal {
  const { name, data } = parsed(shape, options, `signal${quotedName(options)}`)
  return Object.freeze({ name, data })
}

/** Whether it is a signal: `defineSignal()` made it, in this or another copy of the package. */
export function isSignal(value: unknown): value is AnySignal {
  return typeof value === 'object' && value !== null && 'data' in value && 'name' in value && isTaskName(value.name)
}
