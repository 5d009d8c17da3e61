/** A list of findings about a store, as `doctor` and `fsck` print it. */

import type { Mill } from '../config/mill.js'
import type { Finding } from '../stores/store-health.js'
import { OperationError } from './exit-code.js'
import { counted } from './figures.js'
import { printable } from './printable.js'
import type { Terminal } from './terminal.js'

/**
 * Throws `OperationError` where there is an error among them. Undefined, of a store that has nothing to look at, is one
 * sentence.
 */
export async function printFindings(
  mill: Mill,
  terminal: Terminal,
  command: string,
  found: Promise<Finding[] | undefined>,
): Promise<void> {
  const findings = await found
  const store = mill.store.text
  terminal.print({ store, findings: findings ?? [] }, () =>
    findings === undefined ? [`${store}: there is nothing that ${command} could look at.`] : lines(findings, terminal),
  )
  const errors = (findings ?? []).filter(({ level }) => level === 'error').length
  if (errors > 0) throw new OperationError(`${command} found ${counted(errors, 'error')} in ${store}.`)
}

function lines(findings: readonly Finding[], { colors }: Terminal): string[] {
  const paint = { ok: colors.green, warning: colors.yellow, error: colors.red }
  const width = Math.max(...findings.map(({ what }) => printable(what).length))
  // Not cut to the width of the terminal: the remedy stands at the end.
  return findings.map(
    ({ level, what, text }) => `${paint[level](level.padEnd(7))}  ${printable(what).padEnd(width)}  ${printable(text)}`,
  )
}
