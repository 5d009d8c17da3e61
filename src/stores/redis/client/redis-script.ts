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

/** A script with one text for a single server and another for a cluster. Each is made when it is first asked for. */
export type ShardScript = (isCluster: boolean) => RedisScript

/** Every script of the modules that are loaded. `npm run scripts` prints them. */
export const loadedScripts: ShardScript[] = []

export function redisScript(name: string, lua: string, flags: ScriptFlags = {}): RedisScript {
  const script = composed(name, lua, flags)
  loadedScripts.push(() => script)
  return script
}

export function clusterScript(
  name: string,
  luaFor: (isCluster: boolean) => string,
  flags: ScriptFlags = {},
): ShardScript {
  const made = new Map<boolean, RedisScript>()
  const scriptFor: ShardScript = (isCluster) => {
    let script = made.get(isCluster)
    if (script === undefined) {
      script = composed(name, luaFor(isCluster), flags)
      made.set(isCluster, script)
    }
    return script
  }
  loadedScripts.push(scriptFor)
  return scriptFor
}

function composed(name: string, lua: string, { whenFull, readOnly }: ScriptFlags): RedisScript {
  const flags = [...(whenFull ? ['allow-oom'] : []), ...(readOnly ? ['no-writes'] : [])]
  const text = `#!lua${flags.length > 0 ? ` flags=${flags.join(',')}` : ''}\n${lua}`
  return { name, text, sha: createHash('sha1').update(text).digest('hex') }
}

/** In Lua: refuses the call. Scripts do so before they write. */
export const refuse = (word: 'unknown' | 'moved' | 'limited'): string => `return redis.error_reply('MILLRACE ${word}')`

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
