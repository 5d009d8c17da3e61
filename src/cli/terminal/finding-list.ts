/** A list of findings about a store, for `doctor` and `fsck`. */

import { defined } from '../../core/values/defined.js'
import type { Mill } from '../../mill/mill.js'
import type { Repair } from '../../stores/contract/store-health.js'
import { printable } from '../printable.js'
import { OperationError } from '../process/exit-code.js'
import { counted } from './figures.js'
import type { Terminal } from './terminal.js'

/** `mended`: absent if no repair was requested. */
type Findings = Pick<Repair, 'left'> & Partial<Repair>

/**
 * Prints the findings. Throws `OperationError` if an error is left. Undefined, for a store that has nothing to examine,
 * is one sentence.
 */
export async function printFindings(
  mill: Mill,
  terminal: Terminal,
  command: string,
  asked: Promise<Findings | undefined> | undefined,
): Promise<void> {
  const found = await asked
  const store = mill.store.text
  const { mended, left = [] } = found ?? {}
  terminal.print({ store, ...defined({ mended }), findings: left }, () =>
    found === undefined ? [`${store}: there is nothing that ${command} could look at.`] : lines(found, terminal),
  )
  const errors = left.filter(({ level }) => level === 'error').length
  if (errors > 0)
    throw new OperationError(`${command} ${mended ? 'left' : 'found'} ${counted(errors, 'error')} in ${store}.`)
}

function lines({ mended = [], left }: Findings, { colors }: Terminal): string[] {
  const paint = { ok: colors.green, mended: colors.green, warning: colors.yellow, error: colors.red }
  const all = [...mended.map((one) => ({ ...one, level: 'mended' as const })), ...left]
  const width = Math.max(...all.map(({ what }) => printable(what).length))
  // Not cut to the width of the terminal: the remedy is at the end.
  return all.map(
    ({ level, what, text }) => `${paint[level](level.padEnd(7))}  ${printable(what).padEnd(width)}  ${printable(text)}`,
  )
}
