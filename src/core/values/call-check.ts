/**
 * Call checks: what a call refuses rather than ignores. An option with a spelling mistake, or an argument that the call does not
 * have, would else change more than its caller meant.
 */

import * as v from 'valibot'
import { InvalidArgumentError } from '../errors.js'
import { describe } from '../messages/describe.js'
import { callable, duration, exactly, mistakesIn } from './option-check.js'

/** An `AbortSignal`, also one of another realm. */
const abortSignal = v.custom<AbortSignal>(
  (value) => typeof (value as AbortSignal | null)?.addEventListener === 'function' && 'aborted' in (value as object),
  'must be an AbortSignal',
)

/** The forms of options that calls share. */
export const callForms = {
  signal: v.optional(abortSignal),
  hook: v.optional(callable()),
  flag: v.optional(v.boolean()),
  text: v.optional(v.string()),
  duration: v.optional(duration()),
  grace: v.optional(v.union([v.literal('none'), duration()])),
  /** Checked by the call itself, which says more. */
  own: v.optional(v.any()),
} as const

/** A check of the options of a call. It throws `InvalidArgumentError` that names each unknown or wrong one. */
export function callOptions(call: string, entries: v.ObjectEntries): (given: unknown) => void {
  const schema = exactly(entries)
  return (given) => {
    const mistakes = mistakesIn(schema, given)
    if (mistakes.length === 0) return
    const said = mistakes.map(({ path, message }) =>
      path === '(options)' ? `the options of ${call}() ${message}` : `${call}({ ${path} }) ${message}`,
    )
    throw new InvalidArgumentError(`${said.join('; ')}. Nothing was changed.`)
  }
}

/** The reason of an operator. Throws `InvalidArgumentError` for one that is no text. */
export function checkedReason(call: string, reason: unknown): string | undefined {
  if (reason === undefined || typeof reason === 'string') return reason
  throw new InvalidArgumentError(`the reason of ${call}() must be text; got ${shown(reason)}. Nothing was changed.`)
}

type Calls<T> = { readonly [Name in keyof T]?: number }

/**
 * Makes the calls of an object refuse more arguments than they know. `promised`: those that return a promise, which rejects,
 * with the most arguments of each. `direct`: the others, which throw.
 */
export function refuseMore<T extends object>(
  owner: string,
  target: T,
  { promised = {}, direct = {} }: { readonly promised?: Calls<T>; readonly direct?: Calls<T> },
): T {
  for (const [calls, isPromised] of [
    [promised, true],
    [direct, false],
  ] as const)
    for (const [name, most] of Object.entries(calls) as [keyof T & string, number][]) {
      const call = target[name] as (...args: unknown[]) => unknown
      const checked = function (this: unknown, ...args: unknown[]) {
        if (args.length <= most || args.slice(most).every((more) => more === undefined)) return call.apply(this, args)
        const error = tooMany(`${owner}${name}`, most, args[most])
        if (isPromised) return Promise.reject(error)
        throw error
      }
      Object.defineProperty(target, name, { value: checked, writable: true, configurable: true })
    }
  return target
}

/** The names of options, which say what was meant; any other value in a few words. */
function shown(given: unknown): string {
  const names = typeof given === 'object' && given !== null && !Array.isArray(given) ? Object.keys(given) : []
  return names.length === 0 ? describe(given) : `{ ${names.slice(0, 5).join(', ')} }`
}

function tooMany(call: string, most: number, more: unknown): InvalidArgumentError {
  const known = most === 0 ? 'no arguments' : most === 1 ? 'one argument' : `${most} arguments`
  return new InvalidArgumentError(`${call}() takes ${known}, and would ignore ${shown(more)}. Nothing was changed.`)
}
