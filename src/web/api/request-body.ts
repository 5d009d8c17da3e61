/** The body of a request: JSON of a bounded size. */

import { exactJson } from '../../core/values/exact-json.js'
import { WebRefusal } from '../refusal.js'

/** The most bytes of one body. */
export const mostBytes = 1_048_576
/** The most bytes of a body that anybody may send: a log-in. */
const mostOpenBytes = 4_096

interface RequestBody {
  readonly value: object
  readonly bytes: number
}

/**
 * The object in the body; an empty one if nothing was sent. Throws a refusal for another type, too many bytes, or a
 * body that is no object.
 */
export async function bodyOf(request: Request, { isOpen = false } = {}): Promise<RequestBody> {
  const most = isOpen ? mostOpenBytes : mostBytes
  const declared = Number(request.headers.get('content-length') ?? 0)
  if (declared > most) throw tooLarge(most)
  const text = request.body === null ? '' : await textOf(request.body, most)
  const type = request.headers.get('content-type') ?? ''
  if (text !== '' && !/^application\/json\s*(?:;\s*charset=utf-?8\s*)?$/i.test(type))
    throw new WebRefusal(
      'content-type',
      `the body must be JSON, with \`content-type: application/json\`; it came as '${type.slice(0, 100)}'.`,
    )
  const value = text === '' ? {} : parsedJson(text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { value, bytes: text.length }
  throw new WebRefusal('argument-invalid', 'the body must be an object in JSON, as {"ids":["welcome-42"]}.')
}

function parsedJson(text: string): unknown {
  try {
    return exactJson(text)
  } catch {
    throw new WebRefusal(
      'argument-invalid',
      'the body is not JSON. Check its quotes and commas, and that all of it was sent.',
    )
  }
}

async function textOf(body: ReadableStream<Uint8Array>, most: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength
    // Leaving the loop cancels the rest.
    if (bytes > most) throw tooLarge(most)
    chunks.push(chunk)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch {
    throw new WebRefusal('argument-invalid', 'the body is not text in UTF-8.')
  }
}

function tooLarge(most: number): WebRefusal {
  const remedy = most === mostBytes ? ' Send jobs in several requests.' : ''
  return new WebRefusal('payload-too-large', `a body has at most ${most} bytes here.${remedy}`)
}
