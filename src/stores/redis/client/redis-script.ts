/** A Redis script: its Lua text, and the hash by which the server knows it. */

import { createHash } from 'node:crypto'

export interface RedisScript {
  /** The name for messages. */
  readonly name: string
  readonly text: string
  /** SHA-1 of the text in hexadecimal digits, as EVALSHA expects it. */
  readonly sha: string
}

export interface ScriptFlags {
  /**
   * The script also runs when the server has no memory left: it frees memory, helps to free some, or needs hardly any.
   */
  readonly whenFull?: boolean
  /** The server refuses every write of the script. */
  readonly readOnly?: boolean
}

export function redisScript(name: string, lua: string, { whenFull, readOnly }: ScriptFlags = {}): RedisScript {
  const flags = [...(whenFull ? ['allow-oom'] : []), ...(readOnly ? ['no-writes'] : [])]
  const text = `#!lua${flags.length > 0 ? ` flags=${flags.join(',')}` : ''}\n${lua}`
  return { name, text, sha: createHash('sha1').update(text).digest('hex') }
}

/** The error of a script that refused its call and changed nothing. */
export class ScriptRefusal extends Error {
  override readonly name = 'ScriptRefusal'
  /** The word after `MILLRACE` in the script's error. */
  readonly word: string

  constructor(word: string) {
    super(`the script refused: ${word}`)
    this.word = word
  }
}
