/** The wire form of a Redis command: an array of bulk strings (RESP). Pure. */

import type { RedisArgument } from './redis-client.js'

/** Text is sent as UTF-8. */
export type Wire = string | Buffer

// The headers of short words are made once, because most words are short.
const headers = Array.from({ length: 1_024 }, (_, length) => `\r\n$${length}\r\n`)

/** The wire form of a command. Its words come in several lists, so that callers need not join them. */
export function wireOf(...lists: readonly (readonly RedisArgument[])[]): Wire {
  const count = lists.reduce((sum, list) => sum + list.length, 0)
  const pieces = new Array<string>(2 * count + 2)
  let at = 0
  pieces[at++] = `*${count}`
  for (const list of lists) {
    for (const word of list) {
      if (typeof word !== 'string') return bytesOf(lists, count)
      pieces[at++] = headerOf(word.length)
      pieces[at++] = word
    }
  }
  pieces[at] = '\r\n'
  const text = pieces.join('')
  // If all is ASCII, lengths in characters are lengths in bytes. One check is faster than one for each word.
  return Buffer.byteLength(text) === text.length ? text : bytesOf(lists, count)
}

/**
 * Writes each word as one Latin-1 character per byte, with one join and one copy. A buffer for each word would take
 * most of the time.
 */
function bytesOf(lists: readonly (readonly RedisArgument[])[], count: number): Buffer {
  const pieces = [`*${count}`]
  for (const list of lists) {
    for (const word of list) {
      const characters = charactersOf(word)
      pieces.push(headerOf(characters.length), characters)
    }
  }
  pieces.push('\r\n')
  return Buffer.from(pieces.join(''), 'latin1')
}

function charactersOf(word: RedisArgument): string {
  if (typeof word !== 'string') return Buffer.from(word.buffer, word.byteOffset, word.byteLength).toString('latin1')
  return Buffer.byteLength(word) === word.length ? word : Buffer.from(word).toString('latin1')
}

function headerOf(length: number): string {
  return headers[length] ?? `\r\n$${length}\r\n`
}
