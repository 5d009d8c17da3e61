/** The wire form of a Redis command: an array of bulk strings (RESP). Pure. */

import type { RedisArgument } from './redis-client.js'

/** Text is sent as UTF-8. */
export type Wire = string | Buffer

// Most words are short: their headers are made once.
const headers = Array.from({ length: 1_024 }, (_, length) => `\r\n$${length}\r\n`)

/** The command made of these words, given in lists so that nobody has to join them. */
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
  // Where all of it is ASCII, every length in characters was the length in bytes: asked once, not for each word.
  return Buffer.byteLength(text) === text.length ? text : bytesOf(lists, count)
}

/** Every word as the characters of its bytes: one join and one copy, where a buffer for each word would cost most of the time. */
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
