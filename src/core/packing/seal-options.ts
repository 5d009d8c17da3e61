/** The options of a seal, and their check. No message shows a key, or anything that may be one. */

import type { ConfigIssue } from '../errors.js'
import { isKeyId, keyIdForm, type Seal } from './seal.js'

export interface SealOptions {
  /**
   * The id of the key that seals new values. Left out: Millrace opens sealed values but seals nothing, which is the
   * first step of a rollout.
   */
  readonly current?: string
  /**
   * The keys by id, each of 32 bytes: as bytes, or as text in Base64 or hex. The current one seals; all of them open
   * the values that they sealed.
   */
  readonly keys: Readonly<Record<string, string | Uint8Array>>
  /** Refuses values that are not sealed: their job is buried as `bad-payload`. Default false. */
  readonly only?: boolean
}

/** The parts of a seal, from checked options. */
type SealKeys = Pick<Seal, 'current' | 'only'> & { readonly keys: ReadonlyMap<string, Uint8Array> }

const keyBytes = 32
const keyForm = '32 random bytes, as a Uint8Array or as text in Base64 or hex'
const known = ['current', 'keys', 'only']

/** The keys of the options. Adds every mistake to `issues`, and is undefined then. */
export function sealKeysOf(given: unknown, issues: ConfigIssue[]): SealKeys | undefined {
  const before = issues.length
  const refuse = (path: string, message: string) => issues.push({ path, message })
  if (!isRecord(given)) {
    refuse('seal', 'must be { current, keys }, with the keys by their ids')
    return undefined
  }
  const { current, keys, only = false } = given
  // Only the number is shown: if ids and keys were mixed up, the name of an option may be a key.
  const strange = Object.keys(given).filter((name) => !known.includes(name)).length
  if (strange > 0) refuse('seal', `has ${strange} unknown options; there are ${known.join(', ')}`)
  if (typeof only !== 'boolean') refuse('seal.only', 'must be true or false')
  const made = keysOf(keys, refuse)
  if (current !== undefined && made.size > 0 && !(typeof current === 'string' && made.has(current)))
    refuse('seal.current', `must be the id of one of \`keys\`; there are: ${[...made.keys()].join(', ')}`)
  if (only === true && current === undefined)
    refuse('seal.only', 'needs `current`: this mill would refuse what it stores itself')
  return issues.length > before
    ? undefined
    : { current: current as string | undefined, only: only as boolean, keys: made as ReadonlyMap<string, Uint8Array> }
}

/** The keys by their ids; an invalid key is undefined. */
function keysOf(
  given: unknown,
  refuse: (path: string, message: string) => void,
): ReadonlyMap<string, Uint8Array | undefined> {
  const made = new Map<string, Uint8Array | undefined>()
  if (!isRecord(given) || Object.keys(given).length === 0) {
    refuse('seal.keys', `must have at least one key: an object of ids, each with ${keyForm}`)
    return made
  }
  for (const [i, [id, value]] of Object.entries(given).entries()) {
    if (!isKeyId(id)) {
      refuse('seal.keys', `must have ids of ${keyIdForm}; the one at place ${i + 1} is another`)
      continue
    }
    const key = keyOf(value)
    made.set(id, key)
    if (key === undefined) refuse(`seal.keys.${id}`, `must be ${keyForm}; got ${shape(value)}`)
  }
  return made
}

function keyOf(value: unknown): Uint8Array | undefined {
  if (value instanceof Uint8Array) return value.length === keyBytes ? value : undefined
  if (typeof value !== 'string') return undefined
  if (/^[\da-f]{64}$/i.test(value)) return Buffer.from(value, 'hex')
  if (!/^[\w+/-]{43}=?$/.test(value)) return undefined
  const key = Buffer.from(value, 'base64')
  return key.length === keyBytes ? key : undefined
}

/** A description of an invalid key that does not show it. */
function shape(value: unknown): string {
  if (value instanceof Uint8Array) return `${value.length} bytes`
  if (typeof value === 'string') return `text of ${value.length} characters`
  return value === undefined ? 'undefined: is it set where this runs?' : `a ${value === null ? 'null' : typeof value}`
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)
}
