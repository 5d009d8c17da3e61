/**
 * The packing: a value on its way to a store and back. It is encoded by the codec, then compressed where it is large, then
 * sealed. What was done is stored as one text with the payload, such as `json+gzip+sealed`, and that text alone decides how
 * it is read, whatever the options are by then.
 */

import { CodecError } from '../errors.js'
import { type Codec, encodedBy, type Payload, payloadBytes } from '../values/codec.js'
import { gunzipped, gzipped, mostUnzippedBytes } from './compression.js'
import { type JobPart, noSeal, type Owner, type Seal } from './seal.js'

/** What is packed, while it is put together: a payload, and the meta of a job. */
interface Content {
  payload: Payload
  meta?: Payload
  /** How both are packed; absent: `json`. */
  codec?: string
}

/** What a payload was packed with that a mill has not got; another version of it may. */
export interface Lack {
  readonly reason: 'unknown-codec' | 'unknown-key'
  /** As in “the checkpoint was stored by codec 'x'”. */
  readonly stored: string
  /** As in “this mill has codec 'json'”. */
  readonly has: string
}

/** What was done after encoding. */
interface Chain {
  readonly isZipped: boolean
  readonly isSealed: boolean
}

export class Packing {
  readonly #codec: Codec
  /** Larger payloads are compressed; Infinity: none is. */
  readonly #compressAbove: number
  readonly #seal: Seal
  /** Nothing is done after encoding. */
  readonly #isBare: boolean
  /** What is stored with what only the codec has made; undefined: nothing. */
  readonly #bareCodec: string | undefined
  /** The codec, where what is stored without a text is its own and taken as it is: most of what is read. */
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

  /** What another process must do as well to take over a job of this one: its codec, and whether it seals. */
  get demand(): string {
    const { current, only } = this.#seal
    return [this.#codec.name, ...(current === undefined ? [] : ['sealed']), ...(only ? ['only'] : [])].join(' ')
  }

  /** What is secret here, as it may be written elsewhere. */
  secrets(): string[] {
    return this.#seal.secrets()
  }

  /** The value as the codec has it, not yet compressed or sealed. Throws `CodecError`. */
  encode(value: unknown): Payload {
    return encodedBy(this.#codec, value)
  }

  /** Compresses and seals what a job carries, in place, and says in its `codec` how. */
  packJob(job: Content & { readonly id: string }, queue: string, isOrdered: boolean): void {
    // The way of most jobs.
    if (this.#isBare) {
      if (this.#bareCodec !== undefined) job.codec = this.#bareCodec
    } else this.#pack(job, isOrdered ? 'ordered payload' : 'payload', { queue, id: job.id })
  }

  /** The value of a running job, packed. Throws `CodecError`. */
  pack(value: unknown, part: 'result' | 'checkpoint', owner: Owner): Readonly<Content> {
    const content: Content = { payload: this.encode(value) }
    if (!this.#isBare) this.#pack(content, part, owner)
    else if (this.#bareCodec !== undefined) content.codec = this.#bareCodec
    return content
  }

  /** What is missing here to read what was packed so; undefined where nothing is. */
  lackFor(payload: Payload, codec: string | undefined): Lack | undefined {
    if (codec === undefined && this.#bareReader !== undefined) return undefined
    const text = codec ?? 'json'
    const chain = this.#chains.get(text)
    if (chain === undefined)
      return { reason: 'unknown-codec', stored: `stored by codec '${text}'`, has: `codec '${this.#codec.name}'` }
    const lacked = chain.isSealed ? this.#seal.lacks(payload) : undefined
    if (lacked === undefined) return undefined
    const ids = this.#seal.keyIds.map((id) => `'${id}'`).join(', ')
    return { reason: 'unknown-key', stored: `sealed ${lacked}`, has: ids === '' ? 'no keys' : `the keys ${ids}` }
  }

  /**
   * The value that was packed. Throws `CodecError` for what is missing here, is damaged, was changed or belongs elsewhere, and,
   * where only what is sealed is taken, for what is not.
   */
  unpack(payload: Payload, codec: string | undefined, part: JobPart, owner: Owner): unknown {
    if (codec === undefined && this.#bareReader !== undefined) return this.#bareReader.decode(payload)
    const lack = this.lackFor(payload, codec)
    if (lack !== undefined) throw new CodecError(`it is ${lack.stored}, and this mill has ${lack.has}`)
    const text = codec ?? 'json'
    const { isZipped, isSealed } = this.#chains.get(text)!
    if (!isSealed && this.#seal.only)
      throw new CodecError('it is not sealed, and this mill takes nothing else: it has `seal.only`')
    const opened = isSealed ? this.#seal.open(payload, part, text, owner) : payload
    return this.#codec.decode(isZipped ? gunzipped(opened) : opened)
  }

  /**
   * Meta goes the way of its payload, which alone decides: equal payloads of an ordered job must be packed alike, whatever
   * their metas.
   */
  #pack(content: Content, part: JobPart, owner: Owner): void {
    const isZipped = this.#zip(content)
    const isSealed = this.#seal.current !== undefined
    const text = chainText(this.#codec.name, isZipped, isSealed)
    if (text !== 'json') content.codec = text
    if (!isSealed) return
    content.payload = this.#seal.seal(content.payload, part, text, owner)
    if (content.meta !== undefined) content.meta = this.#seal.seal(content.meta, metaPartOf(part), text, owner)
  }

  /** Whether it was compressed: not where it is small, or would not be smaller. */
  #zip(content: Content): boolean {
    const bytes = payloadBytes(content.payload)
    // More nobody would decompress; it is more than any store takes, too, and refused for that.
    if (bytes <= this.#compressAbove || Math.max(bytes, payloadBytes(content.meta ?? '')) > mostUnzippedBytes)
      return false
    const zipped = gzipped(content.payload)
    if (zipped.length >= bytes) return false
    content.payload = zipped
    if (content.meta !== undefined) content.meta = gzipped(content.meta)
    return true
  }
}

/** What is stored with a payload that was packed so. Names of codecs have no `+`. */
function chainText(codec: string, isZipped: boolean, isSealed: boolean): string {
  return `${codec}${isZipped ? '+gzip' : ''}${isSealed ? '+sealed' : ''}`
}

function metaPartOf(payload: JobPart): JobPart {
  return payload === 'ordered payload' ? 'ordered meta' : 'meta'
}
