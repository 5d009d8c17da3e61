/**
 * The seal: AES-256-GCM around a payload. It opens only for the job and the part of it that it was made for, and tells by the id
 * in its header which key that takes. Synchronous: AES takes microseconds, and a promise would cost each job more.
 *
 * A sealed payload: the version (1 byte); flags (1 byte); the length of the key id (1 byte) and the key id; the nonce
 * (12 bytes); the content, encrypted; the tag (16 bytes). What stands before the nonce is authenticated too.
 */

import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { CodecError } from '../errors.js'
import type { Payload } from '../values/codec.js'

/**
 * What a payload is of its job. Those of ordered jobs have names of their own, and go without their queue: `move` brings such a
 * job into another one as it is.
 */
export type JobPart = 'payload' | 'meta' | 'ordered payload' | 'ordered meta' | 'result' | 'checkpoint'

/** The job that a payload belongs to. */
export interface Owner {
  readonly queue: string
  readonly id: string
}

const version = 1
const headBytes = 3
const nonceBytes = 12
const tagBytes = 16
/** The flag which says that the content is text. */
const textFlag = 1

const keyId = /^[A-Za-z0-9._-]{1,32}$/
/** Shorter than any key as text: one that was put in the place of its id is not taken for one, and not shown. */
export const keyIdForm = '1 to 32 characters of A-Z a-z 0-9 . _ -'

export function isKeyId(value: unknown): value is string {
  return typeof value === 'string' && keyId.test(value)
}

/** A key as it was given, and what is derived from it: no two algorithms use the same one. */
interface SealKey {
  readonly given: KeyObject
  readonly content: KeyObject
  readonly nonce: KeyObject
}

export class Seal {
  /** The key that seals; undefined: it opens, and seals nothing. */
  readonly current: string | undefined
  /** What is not sealed is refused. */
  readonly only: boolean
  readonly #namespace: string
  /** Behind `#`, and as key objects: whoever logs a mill must not log its keys. */
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

  /** The keys as they may be written in the environment: for who must keep them from others, never to be shown. */
  secrets(): string[] {
    return [...this.#keys.values()].flatMap(({ given }) => {
      const key = given.export()
      const hex = key.toString('hex')
      // Without the `=`, which may be left out.
      return [key.toString('base64').slice(0, -1), key.toString('base64url'), hex, hex.toUpperCase()]
    })
  }

  /**
   * The payload, sealed by the current key. `chain`: the codec's text that is stored with it.
   * Of an ordered job's payload equal ones give equal bytes, which the store merges: its nonce is the keyed digest of it and of
   * where it belongs. All others have a random one.
   */
  seal(payload: Payload, part: JobPart, chain: string, owner: Owner): Uint8Array {
    const id = this.current!
    const { content, nonce: nonceKey } = this.#keys.get(id)!
    const head = headOf(id, typeof payload === 'string')
    const bound = this.#boundTo(head, part, chain, owner)
    const nonce = part === 'ordered payload' ? digestOf(nonceKey, bound, payload) : randomBytes(nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', content, nonce).setAAD(bound)
    const encrypted = typeof payload === 'string' ? cipher.update(payload, 'utf8') : cipher.update(payload)
    // Of this mode it is empty, and sets the tag.
    cipher.final()
    return Buffer.concat([head, nonce, encrypted, cipher.getAuthTag()])
  }

  /** What it would take to open it that is not here; undefined where nothing is missing, or it is no sealed payload at all. */
  lacks(sealed: Payload): string | undefined {
    if (typeof sealed === 'string' || sealed.length === 0) return undefined
    if (sealed[0] !== version) return `in version ${sealed[0]} of the seal`
    const id = keyIdIn(sealed)
    return id === undefined || this.#keys.has(id) ? undefined : `by key '${id}'`
  }

  /** The payload that was sealed. Throws `CodecError` for what is no such payload, was changed, or belongs elsewhere. */
  open(sealed: Payload, part: JobPart, chain: string, owner: Owner): Payload {
    const id = typeof sealed === 'string' ? undefined : keyIdIn(sealed)
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
        `its seal does not open by key '${id}': it was changed, or belongs to another job, queue or namespace, or the key that sealed it is another one of that id`,
        { cause: error },
      )
    }
    return (sealed[1]! & textFlag) === 0 ? payload : payload.toString()
  }

  /** What the tag holds besides the content. No field but the last can hold NUL: nothing else gives the same bytes. */
  #boundTo(head: Uint8Array, part: JobPart, chain: string, { queue, id }: Owner): Buffer {
    const ownQueue = part.startsWith('ordered') ? '' : queue
    return Buffer.concat([head, Buffer.from([part, chain, this.#namespace, ownQueue, id].join('\0'))])
  }
}

/** Opens nothing, and says of each key that it lacks it. */
export const noSeal = new Seal({ current: undefined, only: false, keys: new Map() }, '')

function sealKey(key: Uint8Array): SealKey {
  const derived = (use: string) => createSecretKey(Buffer.from(hkdfSync('sha256', key, '', `millrace seal ${use}`, 32)))
  return { given: createSecretKey(key), content: derived('content'), nonce: derived('nonce') }
}

function headOf(id: string, isText: boolean): Buffer {
  return Buffer.concat([Uint8Array.of(version, isText ? textFlag : 0, id.length), Buffer.from(id)])
}

/** Undefined where it is no sealed payload of this version. */
function keyIdIn(sealed: Uint8Array): string | undefined {
  const length = sealed[2] ?? 0
  if (sealed[0] !== version || sealed.length < headBytes + length + nonceBytes + tagBytes) return undefined
  const id = String.fromCharCode(...sealed.subarray(headBytes, headBytes + length))
  return isKeyId(id) ? id : undefined
}

/** The length stands before what is bound: else a byte could be moved from there to the payload. */
function digestOf(key: KeyObject, bound: Buffer, payload: Payload): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bound.length)
  return createHmac('sha256', key).update(length).update(bound).update(payload).digest().subarray(0, nonceBytes)
}
