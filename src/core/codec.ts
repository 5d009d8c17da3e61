/**
 * The codec: values to stored payloads and back.
 *
 * The default writes plain JSON that any language can read. Only where a value is not JSON (Date, Map, Set, BigInt,
 * bytes, undefined, NaN, ±Infinity, −0) does it wrap the JSON and put the types beside it:
 * `{"$millrace":1,"json":…,"types":[["date","paidAt"],["set","tags"]]}`. Keys are sorted, so equal values give equal text.
 */

import { CodecError } from './errors.js'

/** What a store keeps and hands back unread, of the kind it was given. */
export type Payload = string | Uint8Array

export interface Codec {
  /** Stored with each job when it is not `json`, so that a worker with another codec leaves the job alone. */
  readonly name: string
  /** Must be deterministic: equal values give equal payloads. Throws `CodecError` for what it cannot hold. */
  encode(value: unknown): Payload
  decode(payload: Payload): unknown
}

/** Deeper values are refused in both directions: they are cycles, mistakes or attacks. */
export const maxDepth = 100

const marker = '$millrace'
type TypeName = 'date' | 'map' | 'set' | 'bigint' | 'bytes' | 'undefined' | 'number'
/** A type and the path to the value it stands for; inner values come before those that hold them. */
type TypeNote = [TypeName, ...(string | number)[]]

export const jsonCodec: Codec = {
  name: 'json',

  encode(value) {
    const notes: TypeNote[] = []
    const json = plain(value, [], notes)
    const wrap = notes.length > 0 || (isObject(json) && Object.hasOwn(json, marker))
    return JSON.stringify(wrap ? { [marker]: 1, json, types: notes } : json)
  },

  decode(payload) {
    const text = typeof payload === 'string' ? payload : Buffer.from(payload).toString('utf8')
    let json: unknown
    try {
      json = JSON.parse(text)
    } catch (error) {
      throw new CodecError(`not JSON: ${(error as Error).message}`, { cause: error })
    }
    refuseHostile(json, 0)
    if (!isObject(json) || !Object.hasOwn(json, marker)) return json
    const { json: inner, types, [marker]: version } = json as { json: unknown; types: unknown; [marker]: unknown }
    if (version !== 1 || !Array.isArray(types)) throw new CodecError(`unknown '${marker}' wrapper; expected version 1`)
    const root = { value: inner }
    for (const note of types) restore(root, note)
    return root.value
  },
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The JSON-able form of `value`; types that JSON lacks are noted. */
function plain(value: unknown, path: (string | number)[], notes: TypeNote[]): unknown {
  switch (typeof value) {
    case 'string':
      if (!value.isWellFormed()) throw new CodecError(`${at(path)} is text with a lone surrogate`)
      return value
    case 'boolean':
      return value
    case 'number':
      if (Number.isFinite(value) && !Object.is(value, -0)) return value
      notes.push(['number', ...path])
      return Object.is(value, -0) ? '-0' : String(value)
    case 'bigint':
      notes.push(['bigint', ...path])
      return String(value)
    case 'undefined':
      notes.push(['undefined', ...path])
      return null
    case 'object':
      return value === null ? null : plainObject(value, path, notes)
    default:
      throw new CodecError(`${at(path)} is a ${typeof value}, which cannot be stored`)
  }
}

function plainObject(value: object, path: (string | number)[], notes: TypeNote[]): unknown {
  if (path.length > maxDepth)
    throw new CodecError(`${at(path.slice(0, 5))}… is nested deeper than ${maxDepth} levels, or contains itself`)
  if (Array.isArray(value)) return value.map((item, i) => plain(item, [...path, i], notes))
  if (value instanceof Date)
    return noted('date', Number.isNaN(value.getTime()) ? null : value.toISOString(), path, notes)
  if (value instanceof Uint8Array) return noted('bytes', Buffer.from(value).toString('base64'), path, notes)
  if (value instanceof Map) return noted('map', plainObject([...value], path, notes), path, notes)
  if (value instanceof Set) return noted('set', plainObject([...value], path, notes), path, notes)
  if ('toJSON' in value && typeof value.toJSON === 'function') return plain(value.toJSON(), [...path], notes)
  const tag = Object.prototype.toString.call(value)
  if (tag !== '[object Object]') throw new CodecError(`${at(path)} is a ${tag.slice(8, -1)}, which cannot be stored`)
  const result: Record<string, unknown> = {}
  for (const key of Object.keys(value).sort()) {
    const item = (value as Record<string, unknown>)[key]
    if (item === undefined) continue
    refuseKey(key, item)
    result[key] = plain(item, [...path, key], notes)
  }
  return result
}

function noted(type: TypeName, json: unknown, path: (string | number)[], notes: TypeNote[]): unknown {
  notes.push([type, ...path])
  return json
}

function at(path: readonly (string | number)[]): string {
  return path.length === 0 ? 'the value' : `the value at '${path.join('.')}'`
}

/** Keys by which careless code downstream could be made to write to `Object.prototype`. */
function refuseKey(key: string, item: unknown): void {
  if (key === '__proto__' || (key === 'constructor' && isObject(item) && Object.hasOwn(item, 'prototype'))) {
    throw new CodecError(`key '${key}' is refused: it could change the prototype of every object`)
  }
}

function refuseHostile(json: unknown, depth: number): void {
  if (typeof json !== 'object' || json === null) return
  // The wrapper of a value with types is one level of its own.
  if (depth > maxDepth + 1) throw new CodecError(`nested deeper than ${maxDepth} levels`)
  if (Array.isArray(json)) {
    for (const item of json) refuseHostile(item, depth + 1)
    return
  }
  for (const key of Object.keys(json)) {
    const item = (json as Record<string, unknown>)[key]
    refuseKey(key, item)
    refuseHostile(item, depth + 1)
  }
}

/** Puts the value that a note stands for back in its place. */
function restore(root: { value: unknown }, note: unknown): void {
  if (!Array.isArray(note) || typeof note[0] !== 'string') throw new CodecError('malformed type note')
  const [type, ...path] = note as [string, ...unknown[]]
  let holder: Record<PropertyKey, unknown> = root
  let key: PropertyKey = 'value'
  for (const step of path) {
    const next = holder[key]
    const found = (typeof step === 'string' || typeof step === 'number') && typeof next === 'object' && next !== null
    if (!found || !Object.hasOwn(next, step))
      throw new CodecError(`type note for a value that is not there: ${at(path as string[])}`)
    holder = next as Record<PropertyKey, unknown>
    key = step
  }
  holder[key] = restored(type, holder[key])
}

function restored(type: string, json: unknown): unknown {
  if (type === 'undefined') return undefined
  if (type === 'date' && json === null) return new Date(Number.NaN)
  if (type === 'date' && typeof json === 'string') return new Date(json)
  if (type === 'number' && typeof json === 'string') return Number(json)
  if (type === 'bigint' && typeof json === 'string' && /^-?\d+$/.test(json)) return BigInt(json)
  if (type === 'bytes' && typeof json === 'string') return new Uint8Array(Buffer.from(json, 'base64'))
  if (type === 'set' && Array.isArray(json)) return new Set(json)
  if (type === 'map' && Array.isArray(json) && json.every((pair) => Array.isArray(pair) && pair.length === 2))
    return new Map(json)
  throw new CodecError(`type note '${type}' does not fit its value`)
}

/** Bytes a payload takes in a store. */
export function payloadBytes(payload: Payload): number {
  return typeof payload === 'string' ? Buffer.byteLength(payload) : payload.byteLength
}
