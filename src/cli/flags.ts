/** Flags: texts of the command line turned into values, or refused with the expected form. */

import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { InvalidArgumentError, type Option } from 'commander'
import { byteSizeForm, parseByteSize } from '../core/values/byte-size.js'
import { durationForm, parseDuration } from '../core/values/duration.js'
import { exactJson } from '../core/values/json.js'
import { shortened } from './printable.js'
import { UsageError } from './process/exit-code.js'
import { textOf } from './streaming/input-text.js'
import { count } from './terminal/figures.js'

export function wholeFlag(least: number, most: number): (given: string) => number {
  return (given) => {
    const n = /^[+-]?\d{1,15}$/.test(given) ? Number(given) : Number.NaN
    if (n >= least && n <= most) return n
    throw new InvalidArgumentError(`Expected a whole number from ${count(least)} to ${count(most)}.`)
  }
}

/** An option that falls back to an environment variable. An empty variable counts as not set. */
export function fromEnvironment(variable: string, option: Option): Option {
  return process.env[variable] === '' ? option : option.env(variable)
}

/** A flag that may be repeated: all its values, in order. */
export function eachFlag(given: string, before: readonly string[] = []): readonly string[] {
  return [...before, given]
}

/** Any finite number in JavaScript's notation. */
export function numberFlag(given: string): number {
  const n = given.trim() === '' ? Number.NaN : Number(given)
  if (Number.isFinite(n)) return n
  throw new InvalidArgumentError('Expected a finite number, such as 12 or -0.5.')
}

/** `a,b,c` */
export function namesFlag(given: string): string[] {
  const names = given.split(',').map((name) => name.trim())
  if (names.every((name) => name !== '')) return [...new Set(names)]
  throw new InvalidArgumentError('Expected names with commas between them, such as high,default.')
}

/** In ms. A bare number is one of milliseconds. */
export function durationFlag(given: string): number {
  const ms = parseDuration(/^\d+$/.test(given) ? Number(given) : given)
  if (ms !== undefined) return ms
  throw new InvalidArgumentError(`Expected ${durationForm}.`)
}

/** In ms, or `never`. */
export function expiryFlag(given: string): number | 'never' {
  return given === 'never' ? given : durationFlag(given)
}

/** In ms; `none` is infinite. */
export function graceFlag(given: string): number {
  return given === 'none' ? Number.POSITIVE_INFINITY : durationFlag(given)
}

/** `536870912` or `512MB`, in bytes. */
export function bytesFlag(given: string): number {
  const bytes = parseByteSize(given)
  if (bytes !== undefined) return bytes
  throw new InvalidArgumentError(`Expected ${byteSizeForm}.`)
}

/** JSON given as text, as `@file`, or as `-` for standard input. Throws `UsageError`, which names `what`. */
export async function jsonGiven(given: string, what: string): Promise<unknown> {
  const [source, read] = sourceOf(given)
  try {
    return exactJson(await read())
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(
      `${what} must be JSON, @file with JSON, or - for standard input; ${source}: ${(error as Error).message}`,
    )
  }
}

function sourceOf(given: string): [string, () => Promise<string>] {
  if (given === '-') return ['standard input', async () => textOf(await buffer(process.stdin), 'standard input')]
  const file = `file '${given.slice(1)}'`
  if (given.startsWith('@')) return [file, async () => textOf(await readFile(given.slice(1)), file)]
  return [`'${shortened(given, 60)}'`, async () => given]
}

export const affinityHelp =
  'a name for what only this worker has, such as a GPU: it first adopts processes that one of the same name has started (default: the GPUs of its environment)'
