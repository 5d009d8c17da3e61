/** The commands of a sequence as a store can carry them out: what it would refuse by its traits is left out of them. */

import type { StoreTraits } from '../../stores/contract/store.js'
import type { Command } from './command.js'

export function possibleCommands(commands: Command[], { groups, limited }: StoreTraits): Command[] {
  const left = [...(groups ? [] : ['group']), ...(limited ? [] : ['maxRunning'])]
  return left.length === 0 ? commands : (without(commands, left) as Command[])
}

function without(value: unknown, fields: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((one) => without(one, fields))
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value
  const left = Object.entries(value).filter(([name]) => !fields.includes(name))
  return Object.fromEntries(left.map(([name, field]) => [name, without(field, fields)]))
}
