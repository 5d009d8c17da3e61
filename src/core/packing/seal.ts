/**
 * The seal: AES-256-GCM around a payload. It opens only for the job and the part of it that it was made for. The id in
 * its header names the key that opens it. It is synchronous: AES takes microseconds, and a promise would cost each job
 * more.
 *
 * A sealed payload: the version (1 byte); flags (1 byte); the length of the key id (1 byte) and the key id; the nonce
 * (12 bytes); the content, encrypted; the tag (16 bytes). Everything before the nonce is authenticated too. Another
 * format would have another name in the stored codec.
 */

import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  type Hash,
  type Hmac,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { CodecError } from '../errors.js'
import type { Payload } from '../values/codec.js'

/**
 * The part of a job that a payload is. Parts of ordered jobs have names of their own and are not bound to their queue
 * and task, because `move` brings such a job into the queue of another task unchanged.
 */
export type JobPart =
  | 'payload'
  | 'meta'
  | 'ordered payload'
  | 'ordered meta'
  | 'result'
  | 'checkpoint'
  | 'step'
  | 'signal'

/** The job that a payload belongs to, with what is stored beside it. */
export interface Owner {
  readonly queue: string
  /** Of a step or a signal: with its name. */
  readonly id: string
  readonly task: string
  /** As it is stored. The meta of an ordered job is bound to its payload. */
  readonly payload?: Payload
  /** As it is stored. The payload of a plain job is bound to its meta, or to having none. */
  readonly meta?: Payload
}

/** The owner of a step or a signal: what is sealed is bound to its name too. */
export function stepOwner({ queue, id, task }: Pick<Owner, 'queue' | 'id' | 'task'>, name: string): Owner {
  return { queue, id: JSON.stringify([id, name]), task }
}

const version = 1
const headBytes = 3
const nonceBytes = 12
const tagBytes = 16
/** The header flag for a text content. */
const textFlag = 1

const keyId = /^[A-Za-z0-9._-]{1,32}$/
/** The limit is shorter than any key as text: a key put in the place of its id is refused, and is not shown. */
export const keyIdForm = '1 to 32 characters of A-Z a-z 0-9 . _ -'

export function isKeyId(value: unknown): value is string {
  return typeof value === 'string' && keyId.test(value)
}

/** A key as it was given, and the keys derived from it, one for each algorithm. */
interface SealKey {
  readonly given: KeyObject
  readonly content: KeyObject
  readonly nonce: KeyObject
  readonly name: KeyObject
}

export class Seal {
  /** The key that seals; undefined: the seal only opens. */
  readonly current: string | undefined
  /** Values that are not sealed are refused. */
  readonly only: boolean
  readonly #namespace: string
  /** Private, and as key objects, so that logging a mill does not log its keys. */
  readonly #keys: ReadonlyMap<string, SealKey>

  /** `keys`: of 32 bytes each. */
  constructor(
    { current, only, keys }: Pick<Seal, 'current' | 'only'> & { readonly keys: ReadonlyMap<string, Uint8Array> },
    namespace: string,
  ) {
    this.current = current
    this.only = only
    this.#namespace = namespace
    this.#keys = new Map([...keys].map(([id, key]) => [id, sealKey(key)]))
  }

  /** The ids of its keys. */
  get keyIds(): readonly string[] {
    return [...this.#keys.keys()]
  }

  /**
   * The keys in every form in which an environment variable may hold them. For code that must withhold them from
   * others; never to be shown.
   */
  secrets(): string[] {
    return [...this.#keys.values()].flatMap(({ given }) => {
      const key = given.export()
      const hex = key.toString('hex')
      // Without the `=`, which may be left out.
      return [key.toString('base64').slice(0, -1), key.toString('base64url'), hex, hex.toUpperCase()]
    })
  }

  /**
   * Seals the payload by the current key. `chain`: the codec's text that is stored with it. Equal payloads of an
   * ordered job must give equal bytes, because the store merges them: their nonce is a keyed digest of the payload and
   * of its place. All other nonces are random.
   */
  seal(payload: Payload, part: JobPart, chain: string, owner: Owner): Uint8Array {
    const id = this.current!
    const { content, nonce: nonceKey } = this.#keys.get(id)!
    const head = headOf(id, typeof payload === 'string')
    const bound = this.#boundTo(head, part, chain, owner)
    const nonce = part === 'ordered payload' ? digestOf(nonceKey, bound, payload) : randomBytes(nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', content, nonce).setAAD(bound)
    const encrypted = typeof payload === 'string' ? cipher.update(payload, 'utf8') : cipher.update(payload)
    // In this mode the rest is empty; the call sets the tag.
    cipher.final()
    return Buffer.concat([head, nonce, encrypted, cipher.getAuthTag()])
  }

  /** A hash of content for a name that is stored readable, keyed by this key; undefined: it has no key. */
  hash(id: string | undefined): Hash | Hmac {
    return id === undefined ? createHash('sha256') : createHmac('sha256', this.#keys.get(id)!.name)
  }

  /** The id of the key that is missing to open it; undefined if none is missing, or if it is not a sealed payload. */
  lacks(sealed: Payload): string | undefined {
    const id = sealedBy(sealed)
    return id === undefined || this.#keys.has(id) ? undefined : id
  }

  /**
   * The payload that was sealed. Throws `CodecError` if it is not a sealed payload, was changed, or belongs elsewhere.
   */
  open(sealed: Payload, part: JobPart, chain: string, owner: Owner): Payload {
    const id = sealedBy(sealed)
    const key = id === undefined ? undefined : this.#keys.get(id)
    if (typeof sealed === 'string' || id === undefined || key === undefined)
      throw new CodecError('it is marked as sealed, and is no sealed payload')
    const nonceAt = headBytes + id.length
    const contentAt = nonceAt + nonceBytes
    const tagAt = sealed.length - tagBytes
    const head = sealed.subarray(0, nonceAt)
    const decipher = createDecipheriv('aes-256-gcm', key.content, sealed.subarray(nonceAt, contentAt))
      .setAAD(this.#boundTo(head, part, chain, owner))
      .setAuthTag(sealed.subarray(tagAt))
    const payload = decipher.update(sealed.subarray(contentAt, tagAt))
    try {
      decipher.final()
    } catch (error) {
      throw new CodecError(
        `its seal does not open by key '${id}': it or what belongs to it was changed, or it belongs to another job, task, queue or namespace, or the key that sealed it is another one of that id`,
        { cause: error },
      )
    }
    return (sealed[1]! & textFlag) === 0 ? payload : payload.toString()
  }

  /**
   * The bytes that the tag covers besides the content. Only the last field can hold NUL, so no other fields give the
   * same bytes.
   */
  #boundTo(head: Uint8Array, part: JobPart, chain: string, owner: Owner): Buffer {
    const { queue, task, id } = part.startsWith('ordered') ? { ...owner, queue: '', task: '' } : owner
    return Buffer.concat([
      head,
      Buffer.from([part, chain, this.#namespace, queue, task, companionTag(part, owner), id].join('\0')),
    ])
  }
}

/** The seal of a mill without keys: it lacks every key. */
export const noSeal = new Seal({ current: undefined, only: false, keys: new Map() }, '')

function sealKey(key: Uint8Array): SealKey {
  const derived = (use: string) => createSecretKey(Buffer.from(hkdfSync('sha256', key, '', `millrace seal ${use}`, 32)))
  return { given: createSecretKey(key), content: derived('content'), nonce: derived('nonce'), name: derived('name') }
}

function headOf(id: string, isText: boolean): Buffer {
  return Buffer.concat([Uint8Array.of(version, isText ? textFlag : 0, id.length), Buffer.from(id)])
}

/** The id of the key that has sealed it; undefined if it is not a sealed payload. */
export function sealedBy(payload: Payload): string | undefined {
  return typeof payload === 'string' ? undefined : keyIdIn(payload)
}

/** Undefined if it is not a sealed payload of this version. */
function keyIdIn(sealed: Uint8Array): string | undefined {
  const length = sealed[2] ?? 0
  if (sealed[0] !== version || sealed.length < headBytes + length + nonceBytes + tagBytes) return undefined
  const id = String.fromCharCode(...sealed.subarray(headBytes, headBytes + length))
  return isKeyId(id) ? id : undefined
}

/**
 * The tag, in hex, of the other part that this part is bound to; empty: it is bound to none. The payload of a plain job
 * is bound to its meta. That of an ordered job cannot be, because equal payloads must have equal bytes: there the meta is
 * bound to the payload.
 */
function companionTag(part: JobPart, { payload, meta }: Owner): string {
  const companion = part === 'payload' ? meta : part === 'ordered meta' ? payload : undefined
  return companion === undefined ? '' : Buffer.from(companion).subarray(-tagBytes).toString('hex')
}

/** A digest with the length of the bound part before it. Otherwise a byte could move from that part to the payload. */
function digestOf(key: KeyObject, bound: Buffer, payload: Payload): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bound.length)
  return createHmac('sha256', key).update(length).update(bound).update(payload).digest().subarray(0, nonceBytes)
}
