/**
 * The codec: values to stored payloads and back.
 *
 * The default writes plain JSON that any language can read. Only if a value is not JSON (Date, Map, Set, BigInt, bytes,
 * undefined, NaN, ±Infinity, −0) does it wrap the JSON and add the types:
 * `{"$millrace":1,"json":…,"types":[["date","paidAt"],["set","tags"]]}`. Keys are sorted, so equal values give equal
 * text. As in JSON, fields of an object that are undefined are left out, and the codec calls an object's own `toJSON`.
 * An instance of any other class is refused: it would come back without its class, although its type would say
 * otherwise.
 */

import { types } from 'node:util'
import { CodecError, hasCode } from '../errors.js'
import { describe } from '../messages/describe.js'
import { exactJsonOfNode } from './json.js'

/** The stored form of a value. A store returns it unread, and of the same kind. */
export type Payload = string | Uint8Array

/** Bytes a payload takes in a store. */
export function payloadBytes(payload: Payload): number {
  return typeof payload === 'string' ? Buffer.byteLength(payload) : payload.byteLength
}

export interface Codec {
  /**
   * Stored with each job unless it is `json`, so that a worker with another codec leaves the job alone. 1 to 80
   * characters of A-Z a-z 0-9 . _ -, the first a letter or digit.
   */
  readonly name: string
  /**
   * Encodes a value. Must be deterministic: equal values give equal payloads. Throws `CodecError` for a value that it
   * cannot encode.
   */
  encode(value: unknown): Payload
  decode(payload: Payload): unknown
}

/** Deeper values are refused in both directions: they are cycles, mistakes or attacks. */
export const maxDepth = 100

const marker = '$millrace'
type TypeName = 'date' | 'map' | 'set' | 'bigint' | 'bytes' | 'buffer' | 'undefined' | 'number'
type PathStep = string | number
/** A type and the path to its value; inner values come before those that hold them. */
type TypeNote = [TypeName, ...PathStep[]]

/**
 * The default codec: JSON that also carries dates, maps, sets, big integers, bytes and `undefined`. Wrap it to change what it
 * is given.
 *
 * @example
 * const trimmed: Codec = { ...jsonCodec, name: 'trimmed', encode: (value) => jsonCodec.encode(value ?? null) }
 */
export const jsonCodec: Codec = {
  name: 'json',

  encode(value) {
    try {
      if (isSortedJson(value, 0)) return JSON.stringify(value)
      const writing: Writing = { path: [], notes: [] }
      const json = plain(value, writing)
      const wrap = writing.notes.length > 0 || (isObject(json) && Object.hasOwn(json, marker))
      return JSON.stringify(wrap ? { [marker]: 1, json, types: writing.notes } : json)
    } catch (error) {
      if (hasCode(error, 'codec-failed')) throw error
      // A user's getter, proxy or toJSON threw.
      throw new CodecError('the value cannot be read', { cause: error })
    }
  },

  decode(payload) {
    let json: unknown
    try {
      json = exactJsonOfNode(typeof payload === 'string' ? payload : utf8.decode(payload))
    } catch (error) {
      throw new CodecError(`not JSON: ${(error as Error).message}`, { cause: error })
    }
    return jsonContent(json)
  },
}

/**
 * The value of parsed JSON that the codec wrote: what it has wrapped is restored, and `json` itself may change. Throws
 * `CodecError` as `decode` does.
 */
export function jsonContent(json: unknown): unknown {
  refuseHostile(json, 0)
  if (!isObject(json) || !Object.hasOwn(json, marker)) return json
  if (json[marker] !== 1 || !Array.isArray(json.types) || !Object.hasOwn(json, 'json')) {
    throw new CodecError(`unknown '${marker}' wrapper; expected version 1`)
  }
  const root = { value: json.json }
  for (const note of json.types) restore(root, note)
  return root.value
}

/** Fatal: bytes that are not valid text must not turn into a text that was never sent. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The current place in the value, and the types noted so far. */
interface Writing {
  readonly path: PathStep[]
  readonly notes: TypeNote[]
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Whether `JSON.stringify` alone writes the value as the codec does: it is JSON with sorted keys, as most values are. A
 * copy would take longer than the writing. May be false for such a value, but never true for another.
 */
function isSortedJson(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case 'string':
      return value.isWellFormed()
    case 'boolean':
      return true
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0)
    case 'object':
      if (value === null) return true
      if (depth > maxDepth || 'toJSON' in value) return false
      if (!Array.isArray(value)) return areSortedFields(value, depth)
      return Object.getPrototypeOf(value) === Array.prototype && areSortedItems(value, depth)
    default:
      return false
  }
}

function areSortedItems(items: readonly unknown[], depth: number): boolean {
  // A hole is undefined here, which is not JSON.
  for (let i = 0; i < items.length; i += 1) if (!isSortedJson(items[i], depth + 1)) return false
  return true
}

function areSortedFields(value: object, depth: number): boolean {
  if (Object.getPrototypeOf(value) !== Object.prototype || tagOf(value) !== 'Object') return false
  let last = ''
  for (const key of Object.keys(value)) {
    const isOrdinary = key > last && key !== marker && key !== 'constructor' && key !== '__proto__'
    if (!(isOrdinary && key.isWellFormed() && isSortedJson((value as Record<string, unknown>)[key], depth + 1)))
      return false
    last = key
  }
  return true
}

/** As in `[object Arguments]`. */
function tagOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1)
}

/** The value as plain JSON data; notes the types that JSON lacks. */
function plain(value: unknown, writing: Writing): unknown {
  switch (typeof value) {
    case 'string':
      if (!value.isWellFormed()) throw new CodecError(`${at(writing.path)} is text with a lone surrogate`)
      return value
    case 'boolean':
      return value
    case 'number':
      if (Number.isFinite(value) && !Object.is(value, -0)) return value
      return noted('number', Object.is(value, -0) ? '-0' : String(value), writing)
    case 'bigint':
      return noted('bigint', String(value), writing)
    case 'undefined':
      return noted('undefined', null, writing)
    case 'object':
      return value === null ? null : plainObject(value, writing)
    default:
      throw new CodecError(`${at(writing.path)} is a ${typeof value}, which cannot be stored`)
  }
}

/** `asked`: its toJSON was called already. */
function plainObject(value: object, writing: Writing, asked = false): unknown {
  const { path } = writing
  if (path.length > maxDepth)
    throw new CodecError(`${at(path.slice(0, 5))}… is nested deeper than ${maxDepth} levels, or contains itself`)
  const kind = kindOf(value)
  if (kind !== undefined) {
    refuseSubclass(value, kind, path)
    return kinds[kind](value as never, writing)
  }
  refuseInstance(value, path)
  if (!asked && 'toJSON' in value && typeof value.toJSON === 'function') {
    // Only once, like JSON.stringify: the returned value may have a toJSON again, or be the object itself.
    const json: unknown = value.toJSON(String(path.at(-1) ?? ''))
    return typeof json === 'object' && json !== null ? plainObject(json, writing, true) : plain(json, writing)
  }
  return plainFields(value as Record<string, unknown>, writing)
}

/** The built-in classes whose instances come back as what they were, and how each is written. */
const kinds = {
  Array: (items: readonly unknown[], writing: Writing) => plainItems(items, writing),
  Date: (date: Date, writing: Writing) =>
    noted('date', Number.isNaN(date.getTime()) ? null : date.toISOString(), writing),
  Buffer: (bytes: Buffer, writing: Writing) => noted('buffer', bytes.toString('base64'), writing),
  Uint8Array: (bytes: Uint8Array, writing: Writing) => noted('bytes', Buffer.from(bytes).toString('base64'), writing),
  Map: (map: ReadonlyMap<unknown, unknown>, writing: Writing) => noted('map', plainItems([...map], writing), writing),
  Set: (set: ReadonlySet<unknown>, writing: Writing) => noted('set', plainItems([...set], writing), writing),
} as const

function kindOf(value: object): keyof typeof kinds | undefined {
  if (Array.isArray(value)) return 'Array'
  if (types.isDate(value)) return 'Date'
  if (Buffer.isBuffer(value)) return 'Buffer'
  if (value instanceof Uint8Array) return 'Uint8Array'
  if (value instanceof Map) return 'Map'
  return value instanceof Set ? 'Set' : undefined
}

/** Refuses an instance of a class of the user's below a built-in one: the methods and fields of its own would be lost. */
function refuseSubclass(value: object, kind: keyof typeof kinds, path: readonly PathStep[]): void {
  const made: unknown = Object.getPrototypeOf(value)?.constructor
  const name = typeof made === 'function' ? made.name : kind
  if (name !== kind) throw unstorable(path, name)
  const extra = kind === 'Date' || kind === 'Map' || kind === 'Set' ? Object.keys(value)[0] : undefined
  if (extra !== undefined)
    throw new CodecError(`${at(path)} is ${named(kind)} with a field '${extra}' of its own, which would be lost`)
}

/** With its article: `a Money`, `an Error`. */
function named(name: string): string {
  return `${/^[aeio]/i.test(name) ? 'an' : 'a'} ${name}`
}

function unstorable(path: readonly PathStep[], name: string): CodecError {
  const what = name === '' || name === 'Object' ? 'an object with a prototype of its own' : named(name)
  return new CodecError(
    `${at(path)} is ${what}, which cannot be stored: give its fields as a plain object, or its text, or give the mill a codec of yours`,
  )
}

/**
 * Refuses an instance that would come back as something else. A plain object of another realm, such as a test runner's,
 * is plain.
 */
function refuseInstance(value: object, path: readonly PathStep[]): void {
  const prototype: object | null = Object.getPrototypeOf(value)
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return
  const tag = tagOf(value)
  const made: unknown = prototype.constructor
  const name = tag === 'Object' && typeof made === 'function' ? made.name : tag
  throw unstorable(path, name)
}

/** Holes count as undefined. */
function plainItems(items: readonly unknown[], writing: Writing): unknown[] {
  return Array.from(items, (item, i) => within(i, item, writing))
}

function plainFields(value: Record<string, unknown>, writing: Writing): unknown {
  const tag = tagOf(value)
  if (tag !== 'Object') throw new CodecError(`${at(writing.path)} is ${named(tag)}, which cannot be stored`)
  const fields: Record<string, unknown> = {}
  for (const key of Object.keys(value).sort()) {
    const item = value[key]
    if (item === undefined) continue
    if (!key.isWellFormed()) throw new CodecError(`${at(writing.path)} has a key with a lone surrogate`)
    refuseProto(key)
    const json = within(key, item, writing)
    refuseConstructor(key, json)
    fields[key] = json
  }
  return fields
}

/** The plain JSON data of a value one step deeper. */
function within(step: PathStep, value: unknown, writing: Writing): unknown {
  writing.path.push(step)
  const json = plain(value, writing)
  writing.path.pop()
  return json
}

function noted(type: TypeName, json: unknown, { path, notes }: Writing): unknown {
  notes.push([type, ...path])
  return json
}

function at(path: readonly PathStep[]): string {
  return path.length === 0 ? 'the value' : `the value at '${path.join('.')}'`
}

/** Refuses keys by which careless code could be made to write to `Object.prototype`. */
function refuseProto(key: string): void {
  if (key === '__proto__') throw new CodecError(refusal(key))
}

function refuseConstructor(key: string, json: unknown): void {
  if (key === 'constructor' && isObject(json) && Object.hasOwn(json, 'prototype')) throw new CodecError(refusal(key))
}

function refusal(key: string): string {
  return `key '${key}' is refused: it could change the prototype of every object`
}

function refuseHostile(json: unknown, depth: number): void {
  if (typeof json !== 'object' || json === null) return
  // The wrapper of a value with types is one more level.
  if (depth > maxDepth + 1) throw new CodecError(`nested deeper than ${maxDepth} levels`)
  if (Array.isArray(json)) {
    for (const item of json) refuseHostile(item, depth + 1)
    return
  }
  for (const key of Object.keys(json)) {
    const item = (json as Record<string, unknown>)[key]
    refuseProto(key)
    refuseConstructor(key, item)
    refuseHostile(item, depth + 1)
  }
}

/** Puts the value of a note back in its place. */
function restore(root: { value: unknown }, note: unknown): void {
  if (!Array.isArray(note)) throw new CodecError('malformed type note')
  const [type, ...path] = note as unknown[]
  if (typeof type !== 'string' || !path.every(isStep)) throw new CodecError('malformed type note')
  let holder: Record<PathStep, unknown> = root
  let key: PathStep = 'value'
  for (const step of path) {
    const next = holder[key]
    if (!holds(next, step)) throw new CodecError(`type note for a value that is not there: ${at(path)}`)
    holder = next
    key = step
  }
  holder[key] = restored(type, holder[key])
}

function isStep(step: unknown): step is PathStep {
  return typeof step === 'string' || typeof step === 'number'
}

/** True also for the length of an array and the items of restored bytes, but they are numbers, which no note fits. */
function holds(value: unknown, step: PathStep): value is Record<PathStep, unknown> {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, step)
}

const oddNumbers = ['NaN', 'Infinity', '-Infinity', '-0']

function restored(type: string, json: unknown): unknown {
  if (type === 'undefined' && json === null) return undefined
  if (type === 'date' && json === null) return new Date(Number.NaN)
  if (type === 'date' && typeof json === 'string' && !Number.isNaN(Date.parse(json))) return new Date(json)
  if (type === 'number' && typeof json === 'string' && oddNumbers.includes(json)) return Number(json)
  if (type === 'bigint' && typeof json === 'string' && /^-?\d+$/.test(json)) return BigInt(json)
  if (type === 'buffer' && typeof json === 'string') return Buffer.from(json, 'base64')
  if (type === 'bytes' && typeof json === 'string') return new Uint8Array(Buffer.from(json, 'base64'))
  if (type === 'set' && Array.isArray(json)) return new Set(json)
  if (type === 'map' && Array.isArray(json) && json.every((pair) => Array.isArray(pair) && pair.length === 2))
    return new Map(json)
  throw new CodecError(`type note '${type}' does not fit its value`)
}

/**
 * The payload that the codec encodes a value to. Also throws `CodecError` if a user's codec returns something that no
 * store can keep.
 */
export function encodedBy(codec: Codec, value: unknown): Payload {
  const payload: unknown = codec.encode(value)
  if (typeof payload === 'string' || payload instanceof Uint8Array) return payload
  throw new CodecError(`codec '${codec.name}' made neither text nor bytes of the value, but ${describe(payload)}`)
}
