/** The packing: what is done to a value, what is stored of that, and how it is read back. */

import { constants, deflateSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { gunzipped, gzipped, mostUnzippedBytes } from '#src/core/packing/compression.js'
import { Packing } from '#src/core/packing/packing.js'
import { Seal } from '#src/core/packing/seal.js'
import { type Codec, jsonCodec, type Payload } from '#src/core/values/codec.js'
import { newKey, oldKey, sealOf } from './seal-keys.js'
import { any, refusal } from './values/codec-values.js'

/** Bytes, for a codec that makes no text. */
const bytesCodec: Codec = {
  name: 'bytes',
  encode: (value) => Buffer.from(jsonCodec.encode(value) as string),
  decode: (payload) => {
    if (typeof payload === 'string') throw new Error('text')
    return jsonCodec.decode(payload)
  },
}

const never = Number.POSITIVE_INFINITY
const plain = new Packing(jsonCodec)
const zipping = new Packing(jsonCodec, 100)
const sealing = new Packing(jsonCodec, never, sealOf({ k1: newKey }))
const both = new Packing(jsonCodec, 100, sealOf({ k1: newKey }))
/** Before it is told to seal. */
const opening = new Packing(
  jsonCodec,
  never,
  new Seal({ current: undefined, only: false, keys: new Map([['k1', newKey]]) }, 'millrace'),
)
const ways: [string, Packing][] = [
  ['plain', plain],
  ['compressed', zipping],
  ['sealed', sealing],
  ['compressed and sealed', both],
  ['of bytes, compressed', new Packing(bytesCodec, 1)],
  ['of bytes, compressed and sealed', new Packing(bytesCodec, 1, sealOf({ k1: newKey }))],
]

const owner = { queue: 'mails', id: 'job-1', task: 'send' }
const long = { lines: Array.from({ length: 60 }, (_, i) => `line ${i}`) }

/** A job of these values as it is stored. */
function packed(packing: Packing, input: unknown, meta?: unknown, isOrdered = false) {
  const job: { id: string; task: string; payload: Payload; meta?: Payload; codec?: string } = {
    id: owner.id,
    task: owner.task,
    payload: packing.encode(input),
    ...(meta === undefined ? {} : { meta: packing.encode(meta) }),
  }
  packing.packJob(job, owner.queue, isOrdered)
  return job
}

describe.each(ways)('a value, %s', (_, packing) => {
  it('is restored as input, meta, result and checkpoint', () => {
    fc.assert(
      fc.property(any, any, fc.boolean(), (input, meta, isOrdered) => {
        const job = packed(packing, input, meta ?? null, isOrdered)
        const [part, metaPart] = isOrdered
          ? (['ordered payload', 'ordered meta'] as const)
          : (['payload', 'meta'] as const)
        expect(packing.lackFor(job.payload, job.codec)).toBeUndefined()
        expect(packing.unpack(job.payload, job.codec, part, { ...owner, ...job })).toEqual(input)
        expect(packing.unpackMeta(job, metaPart, owner)).toEqual(meta ?? null)
        for (const end of ['result', 'checkpoint'] as const) {
          const { payload, codec } = packing.pack(input, end, owner)
          expect(packing.unpack(payload, codec, end, owner)).toEqual(input)
        }
      }),
      { numRuns: 60 },
    )
  })
})

describe('the stored codec name', () => {
  it('names each step, and is absent for plain JSON', () => {
    expect(packed(plain, long)).toEqual({ id: 'job-1', task: 'send', payload: jsonCodec.encode(long) })
    expect(packed(zipping, long).codec).toBe('json+gzip')
    expect(packed(sealing, long).codec).toBe('json+sealed')
    expect(packed(both, long).codec).toBe('json+gzip+sealed')
    expect(packed(both, 'short').codec).toBe('json+sealed')
    expect(packed(new Packing(bytesCodec), long).codec).toBe('bytes')
    expect(packed(new Packing(bytesCodec, 100), long).codec).toBe('bytes+gzip')
    expect(zipping.pack(long, 'result', owner).codec).toBe('json+gzip')
    expect(plain.pack(long, 'result', owner)).toEqual({ payload: jsonCodec.encode(long) })
  })

  it('decides how a value is read, whatever the reader writes itself', () => {
    const readers = [plain, zipping, sealing, both]
    for (const writer of [plain, zipping]) {
      const { payload, codec } = packed(writer, long)
      for (const reader of readers) expect(reader.unpack(payload, codec, 'payload', owner)).toEqual(long)
    }
    for (const writer of [sealing, both]) {
      const { payload, codec } = packed(writer, long)
      for (const reader of [sealing, both, opening])
        expect(reader.unpack(payload, codec, 'payload', owner)).toEqual(long)
    }
  })
})

describe('compression', () => {
  it('leaves a value up to the limit unchanged, to the byte', () => {
    const text = 'a'.repeat(98)

    expect(packed(zipping, text)).toMatchObject({ payload: `"${text}"` })
    expect(packed(zipping, `${text}a`).codec).toBe('json+gzip')
  })

  it('leaves a value that would not become smaller', () => {
    const greedy = new Packing(jsonCodec, 1)

    expect(packed(greedy, 'short')).toMatchObject({ payload: '"short"' })
    expect(packed(greedy, 'a'.repeat(100)).codec).toBe('json+gzip')
  })

  it('includes the meta if the payload is compressed; the payload alone decides', () => {
    expect(packed(zipping, 'short', long)).toMatchObject({ payload: '"short"', meta: jsonCodec.encode(long) })
    const { payload, meta } = packed(zipping, long, { a: 1 })
    expect(Buffer.from(meta as Uint8Array)).toEqual(Buffer.from(gzipped('{"a":1}')))
    expect(packed(zipping, long, long).payload).toEqual(payload)
  })

  it('leaves a value that is too large to be decompressed', () => {
    const huge = 'a'.repeat(16_777_215)

    expect(packed(zipping, huge).codec).toBeUndefined()
    expect(packed(zipping, huge.slice(1)).codec).toBe('json+gzip')
    expect(packed(zipping, long, huge).codec).toBeUndefined()
  })

  it('is refused without being read if the content would exceed that size', () => {
    const bomb = gzipSync(Buffer.alloc(20_000_000))

    expect(refusal(() => zipping.unpack(bomb, 'json+gzip', 'payload', owner))).toMatch(/more than 16777216 bytes/)
  })
})

describe('the payloads of an ordered job', () => {
  it('have equal packed bytes if they are equal, whatever their metas', () => {
    for (const packing of [zipping, sealing, both]) {
      const one = packed(packing, long, { by: 'a' }, true)
      const other = packed(packing, { lines: [...long.lines] }, long, true)
      expect(one.payload).toEqual(other.payload)
      expect(one.codec).toBe(other.codec)
    }
  })

  it('have other bytes under another key: such payloads do not merge', () => {
    const rotated = new Packing(jsonCodec, never, sealOf({ k2: oldKey, k1: newKey }))

    expect(packed(rotated, long, undefined, true).payload).not.toEqual(packed(sealing, long, undefined, true).payload)
  })
})

describe('an unreadable payload', () => {
  it.each<[string, string | undefined, object]>([
    ['another codec', 'msgpack', { reason: 'unknown-codec', stored: "stored by codec 'msgpack'", has: "codec 'json'" }],
    ['an unknown step', 'json+zstd', { reason: 'unknown-codec', stored: "stored by codec 'json+zstd'" }],
    ['steps in another order', 'json+sealed+gzip', { reason: 'unknown-codec' }],
    ['a step without a codec', '+gzip', { reason: 'unknown-codec' }],
  ])('is reported for lack of something: %s', (_, codec, lack) => {
    expect(both.lackFor('x', codec)).toMatchObject(lack)
    expect(refusal(() => both.unpack('x', codec, 'payload', owner))).toMatch(/^it is stored by codec/)
  })

  it('is reported with the id of the missing key', () => {
    const { payload, codec } = packed(both, long)
    const other = new Packing(jsonCodec, never, sealOf({ a: oldKey, b: oldKey }))

    expect(plain.lackFor(payload, codec)).toEqual({
      reason: 'unknown-key',
      stored: "sealed by key 'k1'",
      has: 'no keys',
    })
    expect(other.lackFor(payload, codec)).toMatchObject({ stored: "sealed by key 'k1'", has: "the keys 'a', 'b'" })
    expect(refusal(() => plain.unpack(payload, codec, 'payload', owner))).toBe(
      "it is sealed by key 'k1', and this mill has no keys",
    )
  })

  it('comes from another job, belongs to another part, or has another codec name', () => {
    const { payload, meta } = packed(sealing, { a: 1 }, { b: 2 })
    const wrong = [
      () => sealing.unpack(payload, 'json+sealed', 'payload', { ...owner, id: 'job-2' }),
      () => sealing.unpack(meta!, 'json+sealed', 'payload', owner),
      () => sealing.unpack(payload, 'json+sealed', 'meta', owner),
      () => sealing.unpack(payload, 'json+gzip+sealed', 'payload', owner),
    ]

    for (const unpack of wrong) expect(refusal(unpack)).toMatch(/seal does not open/)
  })

  it('is one that is not sealed if only sealed ones are accepted', () => {
    const strict = new Packing(jsonCodec, never, sealOf({ k1: newKey }, { only: true }))
    const refused = /it is not sealed, and this mill takes nothing else: it has `seal\.only`/

    for (const packing of [plain, zipping]) {
      const { payload, codec } = packed(packing, long)
      expect(strict.lackFor(payload, codec)).toBeUndefined()
      expect(refusal(() => strict.unpack(payload, codec, 'payload', owner))).toMatch(refused)
    }
    expect(refusal(() => strict.unpack('1', 'json', 'payload', owner))).toMatch(refused)
    const { payload, codec } = packed(strict, long)
    expect(strict.unpack(payload, codec, 'payload', owner)).toEqual(long)
  })
})

it('a packing tells what other processes must do as well, and nothing about its keys', () => {
  const strict = new Packing(bytesCodec, 100, sealOf({ k1: newKey }, { only: true }))

  expect([plain, zipping, sealing, strict].map(({ demand }) => demand)).toEqual([
    'json',
    'json',
    'json sealed',
    'bytes sealed only',
  ])
})

const text = JSON.stringify({ lines: Array.from({ length: 60 }, (_, i) => `line ${i}`) })

describe('a compressed payload', () => {
  it('is restored to the same text or bytes', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'grapheme' }), fc.uint8Array()), (payload) => {
        const back = gunzipped(gzipped(payload))
        expect(typeof back).toBe(typeof payload)
        expect(Buffer.from(back as string)).toEqual(Buffer.from(payload as string))
      }),
    )
  })

  it('is gzip that any program reads, with the same header on every machine', () => {
    const head = (payload: string | Uint8Array) => Buffer.from(gzipped(payload).subarray(0, 10)).toString('hex')

    // Magic, deflate, flags (1: text), no time, no extra flags, system unknown.
    expect(head(text)).toBe('1f8b08010000000000ff')
    expect(head(Buffer.from(text))).toBe('1f8b08000000000000ff')
    expect(gzipped(text)).toEqual(gzipped(text))
  })

  it('from another program is read, whatever its header', () => {
    expect(Buffer.from(gunzipped(gzipSync(text)) as Uint8Array).toString()).toBe(text)
    const members = Buffer.concat([gzipSync('a'), gzipSync('b')])
    expect(Buffer.from(gunzipped(members) as Uint8Array).toString()).toBe('ab')
  })
})

describe('an invalid compressed payload', () => {
  const whole = gzipped(text)

  it.each<[string, string | Uint8Array, RegExp]>([
    ['text', text, /is text, not bytes/],
    ['nothing', new Uint8Array(), /cannot be decompressed: unexpected end of file/],
    ['plain bytes', Buffer.from(text), /cannot be decompressed: incorrect header check/],
    ['zlib without gzip', deflateSync(text), /cannot be decompressed: incorrect header check/],
    ['half a gzip', whole.subarray(0, whole.length / 2), /cannot be decompressed: unexpected end of file/],
    ['a wrong check sum', Uint8Array.from(whole).fill(0, whole.length - 8), /cannot be decompressed: incorrect data/],
  ])('is refused: %s', (_, bytes, message) => {
    expect(refusal(() => gunzipped(bytes))).toMatch(message)
  })

  it('is refused without being inflated if it would exceed what Millrace compresses', () => {
    const largest = gzipSync(Buffer.alloc(mostUnzippedBytes), { level: constants.Z_BEST_COMPRESSION })
    const bomb = gzipSync(Buffer.alloc(16 * mostUnzippedBytes), { level: constants.Z_BEST_COMPRESSION })
    expect(gunzipped(largest)).toHaveLength(mostUnzippedBytes)
    const before = process.memoryUsage().arrayBuffers

    expect(bomb.length).toBeLessThan(300_000)
    expect(refusal(() => gunzipped(bomb))).toBe(
      'its gzip holds more than 16777216 bytes, which Millrace never compresses',
    )
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 * mostUnzippedBytes)
  })
})
