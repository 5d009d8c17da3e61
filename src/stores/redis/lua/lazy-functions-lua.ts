/**
 * Lazy functions: Lua functions that are made when a script first needs one of them. At every call Redis runs a script
 * from its first line and makes each function on the way, called or not; but most calls need hardly any of them.
 */

import type { QueueKind } from '../../contract/queue-settings.js'
import { keyNames, luaName } from '../redis-keys.js'

/** `local function name(…)` up to an `end` on the same line, or on a line of its own. */
const definition = /^local function (\w+)\((?:.* end|.*\n(?:(?: .*)?\n)*end)$/gm

/** The script with these functions made lazily; it may only call them. Other code between them runs at the start. */
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

/**
 * Replaces the locals of keys by their numbers: a function costs time for each local it uses, even if nobody calls it.
 */
export function byNumber(lua: string, kind: QueueKind): string {
  const numbers = new Map(keyNames(kind).map((name, i) => [luaName(name), i + 1]))
  return lua.replace(/\b[A-Z_]+\b/g, (word) => (numbers.has(word) ? `KEYS[BASE + ${numbers.get(word)}]` : word))
}

/**
 * A function of this name that makes those of the text, which adds them to `M`, and returns them. Another call, under the
 * name `again`, returns them again.
 */
export function asFunction(name: string, again: string, text: string): string {
  const lines = `${text.trim()}\n${again} = function() return M end\nreturn M`.split('\n')
  return `local function ${name}()\n${lines.map((line) => (line === '' ? '' : `  ${line}`)).join('\n')}\nend\n`
}
