/** Compression: what comes back, that it is the same everywhere, and what is refused. */

import { constants, deflateSync, gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { gunzipped, gzipped, mostUnzippedBytes } from '#src/core/packing/compression.js'
import { refusal } from '../values/codec-values.js'

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
