/** A Redis script: Lua text and the name the server knows it by. */

import { createHash } from 'node:crypto'

export interface RedisScript {
  /** The word for it in messages. */
  readonly name: string
  readonly text: string
  /** SHA-1 of the text, in hexadecimal digits: what EVALSHA asks for. */
  readonly sha: string
}

export interface ScriptFlags {
  /** It also runs where the server has no memory left: it makes room, or makes room be made, or takes hardly any. */
  readonly whenFull?: boolean
  /** The server refuses it every write. */
  readonly readOnly?: boolean
}

export function redisScript(name: string, lua: string, { whenFull, readOnly }: ScriptFlags = {}): RedisScript {
  const flags = [...(whenFull ? ['allow-oom'] : []), ...(readOnly ? ['no-writes'] : [])]
  const text = `#!lua${flags.length > 0 ? ` flags=${flags.join(',')}` : ''}\n${lua}`
  return { name, text, sha: createHash('sha1').update(text).digest('hex') }
}

/** A script refused what it was asked, and changed nothing. */
export class ScriptRefusal extends Error {
  override readonly name = 'ScriptRefusal'
  /** The word after `MILLRACE`. */
  readonly word: string

  constructor(word: string) {
    super(`the script refused: ${word}`)
    this.word = word
  }
}
