/**
 * Compression: payloads as gzip (RFC 1952), and back. Synchronous, as all of the way from a value to its payload: a value has
 * some kB, and the thread pool and a promise would cost a job more than compressing it does.
 */

// Not by name: an older Node would end at the import with an error that does not say that it is too old.
import zlib from 'node:zlib'
import { CodecError } from '../errors.js'
import type { Payload } from '../values/codec.js'
import { messageOf } from '../values/describe.js'

/**
 * Most bytes that are compressed, and so most that are decompressed: 16 times the largest `maxPayloadBytes`, and as a constant
 * the same in every mill, so that what one has compressed every other one reads. JSON shrinks 3 to 15 times, a zip bomb 1,000
 * times.
 */
export const mostUnzippedBytes = 16_777_216

const flagsAt = 3
/** The flag of the header which says that the content is text. */
const textFlag = 1
const systemAt = 9
/** No system: zlib writes that of the machine there, and equal payloads must give equal bytes wherever they are made. */
const unknownSystem = 255

/** The payload as gzip; whether it was text is kept. Not for more than `mostUnzippedBytes`. */
export function gzipped(payload: Payload): Uint8Array {
  const bytes = zlib.gzipSync(payload)
  bytes[systemAt] = unknownSystem
  if (typeof payload === 'string') bytes[flagsAt]! |= textFlag
  return bytes
}

/** The payload that was compressed. Throws `CodecError` for what is no gzip, is cut off or would be larger than anything that was compressed. */
export function gunzipped(bytes: Payload): Payload {
  // Text can be no gzip: a store gives back what it was given.
  if (typeof bytes === 'string') throw new CodecError('its gzip is text, not bytes')
  let payload: Buffer
  try {
    payload = zlib.gunzipSync(bytes, { maxOutputLength: mostUnzippedBytes })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE')
      throw new CodecError(`its gzip holds more than ${mostUnzippedBytes} bytes, which Millrace never compresses`)
    throw new CodecError(`its gzip cannot be decompressed: ${messageOf(error)}`, { cause: error })
  }
  return (bytes[flagsAt]! & textFlag) === 0 ? payload : payload.toString()
}
