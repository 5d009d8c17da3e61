/**
 * The text of a configuration: a draft as TypeScript. Whatever texts the draft holds, the result is a program that does
 * nothing else. Pure.
 */

import type { ConfigDraft } from './kale-settings.js'
import type { DraftStore } from './kale-store.js'
import { isLookup, type Lookup } from './python-value.js'

/** The configuration, with a line break at its end. */
export function configText({ store, queueFile, maxPayloadBytes, selector, maxRssMb }: ConfigDraft): string {
  const worker = [
    ...(selector === undefined ? [] : [`selector: ${literal(selector)}`]),
    ...(maxRssMb === undefined ? [] : [`maxRss: ${template([maxRssMb, 'MB'])}`]),
  ]
  const { before, code } = storeCode(store)
  const options = [
    `store: ${code},`,
    "namespace: '', // the queues keep the names that they have in Kale",
    `queues: ${template([queueFile])},`,
    ...(maxPayloadBytes === undefined ? [] : [`maxPayloadBytes: ${numberCode(maxPayloadBytes)},`]),
    ...(worker.length === 0 ? [] : [`worker: { ${worker.join(', ')} },`]),
    'tasks: [], // yours; `retry: { backoff: kale() }` waits as Kale does',
  ]
  return `/** The configuration: Kale's settings, brought here by \`millrace import kale\`. */

import { millrace } from 'millrace'
${before}
export default millrace({
${options.map((option) => `  ${option}\n`).join('')}})
`
}

function storeCode({ region, endpoint = [] }: DraftStore): { readonly before: string; readonly code: string } {
  const address = ['sqs://', region]
  const [only, ...more] = endpoint
  if (only === undefined) return { before: '', code: template(address) }
  if (more.length > 0 || !isLookup(only)) return { before: '', code: template([...address, '?endpoint=', ...endpoint]) }
  // An empty text means AWS's own endpoint.
  return {
    before: `\nconst endpoint = ${lookupCode(only)}\n`,
    code: `${template(address)} + (endpoint === '' ? '' : \`?endpoint=\${endpoint}\`)`,
  }
}

function numberCode(value: number | Lookup): string {
  return isLookup(value) ? `Number(${lookupCode(value)})` : String(value)
}

/** A look-up as text; empty if the variable is not set and there is no default. */
function lookupCode({ variable, otherwise = '' }: Lookup): string {
  return `process.env[${literal(variable)}] ?? ${literal(String(otherwise))}`
}

/** The joined parts, as one literal if possible. */
function template(parts: readonly (string | number | Lookup)[]): string {
  if (!parts.some((part) => isLookup(part))) return literal(parts.join(''))
  const [only] = parts
  if (parts.length === 1) return lookupCode(only as Lookup)
  const inner = parts.map((part) =>
    isLookup(part) ? `\${${lookupCode(part)}}` : escaped(String(part)).replace(/[`$]/g, '\\$&'),
  )
  return `\`${inner.join('')}\``
}

function literal(text: string): string {
  return `'${escaped(text).replaceAll("'", "\\'")}'`
}

/** The text escaped for both kinds of literals: backslashes, line ends and lone surrogates. */
function escaped(text: string): string {
  return JSON.stringify(text)
    .slice(1, -1)
    .replaceAll('\\"', '"')
    .replace(/[\u007f-\u009f\u2028\u2029]|\p{Cf}/gu, (char) => `\\u{${char.codePointAt(0)!.toString(16)}}`)
}
