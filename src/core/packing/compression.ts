/**
 * Compression: payloads as gzip (RFC 1952), and back. It is synchronous, like every step from a value to its payload: a
 * value has a few kB, and the thread pool and a promise would cost a job more than the compression itself.
 */

// A default import: with named imports an older Node would fail here, with an error that does not say that it is too
// old.
import zlib from 'node:zlib'
import { CodecError } from '../errors.js'
import { messageOf } from '../messages/describe.js'
import type { Payload } from '../values/codec.js'

/**
 * The largest payload that is compressed, and so the largest that is decompressed: 16 times the largest
 * `maxPayloadBytes`. It is a constant, so every mill can read what another one compressed. JSON shrinks 3 to 15 times,
 * a zip bomb 1,000 times.
 */
export const mostUnzippedBytes = 16_777_216

const flagsAt = 3
/** The header flag for a text content. */
const textFlag = 1
const systemAt = 9
/**
 * The code for an unknown system. zlib writes the code of the machine it runs on, but equal payloads must give equal
 * bytes on all machines.
 */
const unknownSystem = 255

/** The payload as gzip, with a flag for text. For at most `mostUnzippedBytes`. */
export function gzipped(payload: Payload): Uint8Array {
  const bytes = zlib.gzipSync(payload)
  bytes[systemAt] = unknownSystem
  if (typeof payload === 'string') bytes[flagsAt]! |= textFlag
  return bytes
}

/**
 * The payload that was compressed. Throws `CodecError` for bytes that are not gzip, are cut off, or would be larger than
 * anything that Millrace compresses.
 */
export function gunzipped(bytes: Payload): Payload {
  // A store gives back the same kind it was given, so text cannot be gzip.
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
