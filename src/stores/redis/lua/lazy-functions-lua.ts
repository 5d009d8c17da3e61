/**
 * Lazy functions: Lua functions that are made when a script first needs one of them. Redis runs a script from its first line at every
 * call, and each function on the way is made anew, whether or not anybody calls it; but most calls need hardly any.
 */

import type { QueueKind } from '../../contract/queue-settings.js'
import { keyNames, luaName } from '../layout/redis-keys.js'

/** `local function name(…)` to an `end` in the same line, or to one that stands by itself. */
const definition = /^local function (\w+)\((?:.* end|.*\n(?:(?: .*)?\n)*end)$/gm

/** The script beside these functions, which it only ever calls. What stands between them is there from the first line. */
export function withLazy(functions: string, script: string, kind: QueueKind): string {
  const texts = [...functions.matchAll(definition)].map(([text]) => text)
  const names = [...functions.matchAll(definition)].map(([, name]) => name!)
  const calls = new RegExp(`(?<![.\\w]|function )(${names.join('|')})(?=\\()`, 'g')
  return `${functions.replace(definition, '')}
local late = setmetatable({}, { __index = function(late, name)
setmetatable(late, nil)
${byNumber(texts.join('\n'), kind)}
${names.map((name) => `late.${name} = ${name}`).join('\n')}
return late[name]
end })
${script.replace(calls, 'late.$1')}`
}

/** The same with keys by their numbers: what makes a function costs for each local that it uses, even where it is never called. */
export function byNumber(lua: string, kind: QueueKind): string {
  const numbers = new Map(keyNames(kind).map((name, i) => [luaName(name), i + 1]))
  return lua.replace(/\b[A-Z_]+\b/g, (word) => (numbers.has(word) ? `KEYS[BASE + ${numbers.get(word)}]` : word))
}
