/**
 * The token of a claim: the text by which another process finds the claim and goes on with it. It is no secret. Pure.
 */

import { InvalidArgumentError } from '../core/errors.js'
import type { ClaimKey } from '../stores/contract/settle.js'

/** The beginning of every token. Change the number if the format changes. */
const version = 'mr1.'

/** Opaque: letters, digits, `-`, `_` and `.`, so that it fits into an argument or a variable. */
export function tokenOf(namespace: string, { queue, id, fence }: ClaimKey): string {
  return version + Buffer.from(JSON.stringify([namespace, queue, id, fence])).toString('base64url')
}

/** Throws `InvalidArgumentError` for text that is no token, and for a token of another namespace or queue. */
export function keyIn(token: string, namespace: string, queue: string): ClaimKey {
  const [ofNamespace, ofQueue, id, fence] = partsOf(token)
  if (ofNamespace !== namespace)
    throw new InvalidArgumentError(
      `the token is of a job in namespace '${ofNamespace}', and this mill has '${namespace}'. Give both processes the same \`namespace\`.`,
    )
  if (ofQueue !== queue)
    throw new InvalidArgumentError(
      `the token is of a job in queue '${ofQueue}', and this listener has '${queue}'. Use mill.listener('${ofQueue}').`,
    )
  return { queue, id, fence }
}

function partsOf(token: string): readonly [namespace: string, queue: string, id: string, fence: number] {
  const parts =
    typeof token === 'string' && token.startsWith(version) ? decoded(token.slice(version.length)) : undefined
  if (
    !Array.isArray(parts) ||
    parts.length !== 4 ||
    !parts.slice(0, 3).every(isText) ||
    !Number.isSafeInteger(parts[3])
  )
    throw new InvalidArgumentError(
      `this is no token of a claim: it must be the whole \`token\` that listener.next() gave, which begins with '${version}'.`,
    )
  return parts as [string, string, string, number]
}

function decoded(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return undefined
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}
