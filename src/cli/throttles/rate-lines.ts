/** Rate lines: the groups of a queue that have a rate of their own, for people. */

import type { GroupRate, GroupRates } from '../../stores/contract/throttles.js'
import { counted } from '../output/figures.js'
import { printable, shortened } from '../output/printable.js'
import { type Column, table } from '../output/table.js'
import type { Terminal } from '../output/terminal.js'
import { rulesText } from './throttle-text.js'

const longestGroup = 40

/** One line for each; empty if there is none. */
export function rateLines({ rates, total }: GroupRates, { colors, columns }: Terminal): string[] {
  if (total === 0) return []
  const shown: Column<GroupRate>[] = [
    { title: 'group', most: longestGroup, cell: ({ group }) => shortened(printable(group), longestGroup) },
    { title: 'rate of its own', cell: ({ rules }) => rulesText(rules) },
  ]
  const more = total - rates.length
  return [
    ...table(shown, rates, { width: columns, paintTitle: colors.dim }),
    ...(more > 0 ? [`and ${counted(more, 'more')}.`] : []),
  ]
}
