/**
 * Option checks: the valibot parts for the shapes of our own options, and the error that lists every mistake at once.
 */

import * as v from 'valibot'
import { ConfigError, type ConfigIssue } from '../errors.js'
import { describe } from '../messages/describe.js'
import { hintFor } from '../messages/foreign-words.js'
import { probablyMeant } from '../messages/spelling.js'
import { byteSizeForm, parseByteSize } from './byte-size.js'
import { durationForm, exactDuration, parseDuration } from './duration.js'

/** A duration of at least `leastMs`, and at most `mostMs`, turned into milliseconds. */
export function duration(leastMs = 0, mostMs = Number.MAX_SAFE_INTEGER) {
  return v.pipe(
    v.custom<number | string>((value) => parseDuration(value) !== undefined, `must be ${durationForm}`),
    v.check((value) => parseDuration(value)! >= leastMs, `must be at least ${leastMs} ms`),
    v.check((value) => parseDuration(value)! <= mostMs, `must be at most ${exactDuration(mostMs)}`),
    v.transform((value) => parseDuration(value)!),
  )
}

/** A size such as `'512MB'`, or a number of bytes, turned into bytes. */
export function byteSize() {
  return v.pipe(
    v.custom<number | string>((value) => parseByteSize(value) !== undefined, `must be ${byteSizeForm}`),
    v.transform((value) => parseByteSize(value)!),
  )
}

/** A whole number from `least` to `most`. */
export function whole(least: number, most = Number.MAX_SAFE_INTEGER) {
  const form =
    most === Number.MAX_SAFE_INTEGER
      ? `must be a whole number of at least ${least}`
      : `must be a whole number from ${least} to ${most}`
  return v.pipe(v.number(form), v.integer(form), v.minValue(least, form), v.maxValue(most, form))
}

const strange = 'is not an option; check its spelling: there are '
const separator = ', '
/** The most options in the message for a value that is not an object. */
const mostShown = 8

/** An object with these keys and no others. Unlike valibot's own strict object it reports every unknown key, not only the first. */
export function exactly<E extends v.ObjectEntries>(entries: E): v.StrictObjectSchema<E, undefined> {
  const options = Object.keys(entries)
  const there = options.join(separator)
  const form = there === '' || options.length > mostShown ? 'must be an object' : `must be an object, with ${there}`
  const stranger = there === '' ? 'is not known: there is nothing to be given here' : `${strange}${there}`
  return v.objectWithRest(entries, v.never(stranger), form) as unknown as v.StrictObjectSchema<E, undefined>
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** An object with any keys; its values are checked elsewhere. valibot's own `record` leaves out `constructor` without a word. */
export function anyRecord<T = unknown>() {
  return v.custom<Readonly<Record<string, T>>>(isRecord, 'must be an object')
}

/** `form`: what to give, where `a function` alone says too little. */
export function callable<T extends (...args: never[]) => unknown>(form = 'a function') {
  return v.custom<T>((value) => typeof value === 'function', `must be ${form}`)
}

/** The parsed options. Throws `ConfigError` that lists every mistake. */
export function parsed<S extends v.GenericSchema>(schema: S, value: unknown, what: string): v.InferOutput<S> {
  const result = v.safeParse(schema, value, { abortPipeEarly: true })
  if (result.success) return result.output
  throw new ConfigError(
    what,
    result.issues.flatMap((issue) => mistakesOf(issue)),
  )
}

/** Every mistake in the options, with its path, or the first alone; none if all is well. */
export function mistakesIn(schema: v.GenericSchema, value: unknown, which: 'all' | 'first' = 'all'): ConfigIssue[] {
  const { issues } = v.safeParse(schema, value, which === 'all' ? { abortPipeEarly: true } : { abortEarly: true })
  return (issues ?? []).flatMap((issue) => mistakesOf(issue))
}

function mistakesOf(issue: v.BaseIssue<unknown>, above: readonly string[] = []): ConfigIssue[] {
  const steps = [...above, ...(issue.path ?? []).map((step) => String(step.key))]
  // If all forms of a union fail, the mistakes inside the form that was probably meant say more than “none fits”.
  const inner = issue.type === 'union' ? (issue.issues ?? []).filter((sub) => sub.path !== undefined) : []
  if (inner.length > 0) return inner.flatMap((sub) => mistakesOf(sub, steps))
  return [{ path: steps.join('.') || '(options)', message: messageOf(issue) }]
}

function strangeOption(option: string, message: string): string {
  if (!message.startsWith(strange)) return message
  const hint = hintFor(option)
  const meant = hint === '' ? probablyMeant(option, message.slice(strange.length).split(separator)) : undefined
  return `${message}${hint}${meant === undefined ? '' : `. Probably \`${meant}\` is meant`}`
}

/** The form that valibot expects, such as `("all" | Object)`, in words. */
function inWords(expected: string | null): string {
  const forms = (expected ?? 'another value').replace(/^\((.*)\)$/, '$1').split(' | ')
  return forms.map((form) => (Object.hasOwn(words, form) ? words[form] : form.replaceAll('"', "'"))).join(' or ')
}

const words: Readonly<Record<string, string>> = { Object: 'an object', Array: 'a list' }

function messageOf(issue: v.BaseIssue<unknown>): string {
  if (issue.expected === 'never') return strangeOption(String(issue.path?.at(-1)?.key), issue.message)
  if (issue.path?.at(-1)?.origin === 'key' && issue.input === undefined) return 'is missing'
  // valibot's own messages begin like this; they repeat the value.
  const form = issue.message.startsWith('Invalid ') ? `must be ${inWords(issue.expected)}` : issue.message
  // A file loaded by a transpiler may import a name that is not exported, or not yet.
  if (issue.input === undefined && issue.path !== undefined)
    return `${form}; it is undefined: is it exported under that name? Files that import each other in a circle see undefined, too`
  // A mistake between the options of an object: showing the object would not help.
  if (issue.type === 'check' && typeof issue.input === 'object') return form
  return `${form}; got ${describe(issue.input)}`
}
