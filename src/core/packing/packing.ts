/**
 * The packing: a value on its way to a store and back. The codec encodes the value; large values are then compressed;
 * then the value is sealed. The steps are stored as one text with the payload, such as `json+gzip+sealed`. That text
 * alone decides how the payload is read, whatever the options are by then.
 */

import type { Hash, Hmac } from 'node:crypto'
import { CodecError } from '../errors.js'
import { messageOf } from '../messages/describe.js'
import { type Codec, encodedBy, type Payload, payloadBytes } from '../values/codec.js'
import { gunzipped, gzipped, mostUnzippedBytes } from './compression.js'
import { type JobPart, noSeal, type Owner, type Seal, sealedBy } from './seal.js'

/** The content while it is packed: a payload, and the meta of a job. */
interface Content {
  payload: Payload
  meta?: Payload
  /** The packing of both; absent: `json`. */
  codec?: string
}

/** A codec or key that a payload needs and this mill does not have; another version of the mill may. */
export interface Lack {
  readonly reason: 'unknown-codec' | 'unknown-key'
  /** As in “the checkpoint was stored by codec 'x'”. */
  readonly stored: string
  /** As in “this mill has codec 'json'”. */
  readonly has: string
}

/** The steps after encoding. */
interface Chain {
  readonly isZipped: boolean
  readonly isSealed: boolean
}

export class Packing {
  readonly #codec: Codec
  /** Larger payloads are compressed; Infinity: none. */
  readonly #compressAbove: number
  readonly #seal: Seal
  /** No step follows encoding. */
  readonly #isBare: boolean
  /** The text stored with a payload that was only encoded; undefined: none. */
  readonly #bareCodec: string | undefined
  /** The codec, if payloads stored without a text are its own and need no further step. Most reads take this path. */
  readonly #bareReader: Codec | undefined
  readonly #chains: ReadonlyMap<string, Chain>

  constructor(codec: Codec, compressAbove: number = Number.POSITIVE_INFINITY, seal: Seal = noSeal) {
    const { name } = codec
    this.#codec = codec
    this.#compressAbove = compressAbove
    this.#seal = seal
    this.#isBare = compressAbove === Number.POSITIVE_INFINITY && seal.current === undefined
    this.#bareCodec = name === 'json' ? undefined : name
    this.#bareReader = name === 'json' && !seal.only ? codec : undefined
    this.#chains = new Map(
      [false, true].flatMap((isZipped) =>
        [false, true].map((isSealed) => [chainText(name, isZipped, isSealed), { isZipped, isSealed }] as const),
      ),
    )
  }

  /** The requirements for another process to take over a job of this one: its codec, and whether it seals. */
  get demand(): string {
    const { current, only } = this.#seal
    return [this.#codec.name, ...(current === undefined ? [] : ['sealed']), ...(only ? ['only'] : [])].join(' ')
  }

  /** The id of the key that seals; undefined: nothing is sealed. */
  get currentKey(): string | undefined {
    return this.#seal.current
  }

  /** The secrets of this packing, in every form in which they may be written elsewhere. */
  secrets(): string[] {
    return this.#seal.secrets()
  }

  /** The value as the codec writes it, not yet compressed or sealed. Throws `CodecError`. */
  encode(value: unknown): Payload {
    return encodedBy(this.#codec, value)
  }

  /**
   * A hash of content for a name that is stored readable. With a seal it is keyed, or readers of the store could confirm
   * guesses of the content. `beside`: a stored payload that this mill can read, whose key it takes, so that it stays the same
   * when another key becomes the current one. Without it: the current key.
   */
  contentHash(beside?: Readonly<Content>): Hash | Hmac {
    if (beside === undefined) return this.#seal.hash(this.#seal.current)
    const isSealed = this.#chains.get(beside.codec ?? 'json')?.isSealed === true
    return this.#seal.hash(isSealed ? sealedBy(beside.payload) : undefined)
  }

  /** Compresses and seals the content of a job in place, and records the steps in its `codec`. */
  packJob(job: Content & Pick<Owner, 'id' | 'task'>, queue: string, isOrdered: boolean): void {
    // The path of most jobs.
    if (this.#isBare) {
      if (this.#bareCodec !== undefined) job.codec = this.#bareCodec
    } else this.#pack(job, isOrdered ? 'ordered payload' : 'payload', { queue, id: job.id, task: job.task })
  }

  /** The value of a running job, packed. Throws `CodecError`. */
  pack(value: unknown, part: 'result' | 'checkpoint' | 'step' | 'signal', owner: Owner): Readonly<Content> {
    const content: Content = { payload: this.encode(value) }
    if (!this.#isBare) this.#pack(content, part, owner)
    else if (this.#bareCodec !== undefined) content.codec = this.#bareCodec
    return content
  }

  /** The codec or key that this mill would need to read the payload; undefined if it has everything. */
  lackFor(payload: Payload, codec: string | undefined): Lack | undefined {
    if (codec === undefined && this.#bareReader !== undefined) return undefined
    const text = codec ?? 'json'
    const chain = this.#chains.get(text)
    if (chain === undefined)
      return { reason: 'unknown-codec', stored: `stored by codec '${text}'`, has: `codec '${this.#codec.name}'` }
    const lacked = chain.isSealed ? this.#seal.lacks(payload) : undefined
    if (lacked === undefined) return undefined
    const ids = this.#seal.keyIds.map((id) => `'${id}'`).join(', ')
    return {
      reason: 'unknown-key',
      stored: `sealed by key '${lacked}'`,
      has: ids === '' ? 'no keys' : `the keys ${ids}`,
    }
  }

  /**
   * The value that was packed. Throws `CodecError` if this mill lacks the codec or key, or if the payload is damaged,
   * was changed or belongs to another job. With `only` it also throws for payloads that are not sealed.
   */
  unpack(payload: Payload, codec: string | undefined, part: JobPart, owner: Owner): unknown {
    if (codec === undefined && this.#bareReader !== undefined) return this.#bareReader.decode(payload)
    const chain = this.#readableChain(payload, codec)
    return this.#decoded(this.#opened(payload, codec, chain, part, owner), chain)
  }

  /**
   * The meta that was packed with a payload; undefined: none. Throws `CodecError` as `unpack` does, and if the meta of a
   * sealed payload of an ordered job was taken away.
   */
  unpackMeta({ payload, meta, codec }: Readonly<Content>, part: 'meta' | 'ordered meta', owner: Owner): unknown {
    const isAlwaysThere = part === 'ordered meta' && this.#chains.get(codec ?? 'json')?.isSealed === true
    if (meta === undefined) {
      if (isAlwaysThere) throw new CodecError('its meta was taken away: each sealed payload of an ordered job has one')
      return undefined
    }
    if (!isAlwaysThere) return this.unpack(meta, codec, part, owner)
    const chain = this.#readableChain(meta, codec)
    const opened = this.#opened(meta, codec, chain, part, { ...owner, payload })
    return opened.length === 0 ? undefined : this.#decoded(opened, chain)
  }

  /** Throws `CodecError` if this mill cannot read such a payload. */
  #readableChain(payload: Payload, codec: string | undefined): Chain {
    const lack = this.lackFor(payload, codec)
    if (lack !== undefined) throw new CodecError(`it is ${lack.stored}, and this mill has ${lack.has}`)
    return this.#chains.get(codec ?? 'json')!
  }

  #opened(payload: Payload, codec: string | undefined, { isSealed }: Chain, part: JobPart, owner: Owner): Payload {
    if (isSealed) return this.#seal.open(payload, part, codec!, owner)
    if (this.#seal.only) throw new CodecError('it is not sealed, and this mill takes nothing else: it has `seal.only`')
    return payload
  }

  #decoded(opened: Payload, { isZipped }: Chain): unknown {
    return this.#codec.decode(isZipped ? gunzipped(opened) : opened)
  }

  /**
   * Packs the payload, and the meta in the same way. The payload alone decides: equal payloads of an ordered job must
   * be packed alike, whatever their metas.
   */
  #pack(content: Content, part: JobPart, owner: Owner): void {
    const isZipped = this.#zip(content)
    const isSealed = this.#seal.current !== undefined
    const text = chainText(this.#codec.name, isZipped, isSealed)
    if (text !== 'json') content.codec = text
    if (!isSealed) return
    const sealed = (value: Payload, as: JobPart) => this.#seal.seal(value, as, text, { ...owner, ...content })
    if (part === 'ordered payload') {
      content.payload = sealed(content.payload, part)
      // Even without one: nobody can take it away unnoticed then.
      content.meta = sealed(content.meta ?? '', 'ordered meta')
    } else {
      if (content.meta !== undefined) content.meta = sealed(content.meta, 'meta')
      content.payload = sealed(content.payload, part)
    }
  }

  /** Compresses the content and returns true, unless it is small or would not become smaller. */
  #zip(content: Content): boolean {
    const bytes = payloadBytes(content.payload)
    // A larger payload could not be decompressed. It also exceeds the limit of every store, which refuses it.
    if (bytes <= this.#compressAbove || Math.max(bytes, payloadBytes(content.meta ?? '')) > mostUnzippedBytes)
      return false
    const zipped = gzipped(content.payload)
    if (zipped.length >= bytes) return false
    content.payload = zipped
    if (content.meta !== undefined) content.meta = gzipped(content.meta)
    return true
  }
}

/** The text stored with a payload that was packed like this. Names of codecs have no `+`. */
function chainText(codec: string, isZipped: boolean, isSealed: boolean): string {
  return `${codec}${isZipped ? '+gzip' : ''}${isSealed ? '+sealed' : ''}`
}

/** Stored as the codec. No codec is called this: names of codecs have no `+`. */
const mark = '+unkept'
const longestReason = 400

/**
 * The mark that is stored in place of a result that cannot be kept. It says why, so that a caller that waits for the
 * result, or a reader of the record, learns that there was one. `error`: why the result cannot be kept.
 */
export function unkeptResult(error: unknown): { readonly payload: Payload; readonly codec: string } {
  return { payload: messageOf(error).slice(0, longestReason).toWellFormed(), codec: mark }
}

/** Why the result was not kept; undefined if it was. */
export function whyUnkept(
  result: { readonly payload?: Payload; readonly codec?: string } | undefined,
): string | undefined {
  return result?.codec === mark ? String(result.payload) : undefined
}
