/** Hold lines: what keeps queues and groups from starting jobs, for people. */

import type { QueueHold, QueueHolds } from '../../client/admin/throttle-admin.js'
import { formatDuration } from '../../core/values/duration.js'
import { counted } from '../output/figures.js'
import { printable, shortened } from '../output/printable.js'
import { type Column, table } from '../output/table.js'
import type { Terminal } from '../output/terminal.js'

const longestGroup = 40

/** One line for each hold or pause; empty if there is none. */
export function holdLines(queue: string, { holds, total }: QueueHolds, { colors, columns }: Terminal): string[] {
  if (total === 0) return []
  const shown: Column<QueueHold>[] = [
    {
      title: 'held',
      most: longestGroup,
      cell: ({ group }) => (group === undefined ? '(the whole queue)' : shortened(printable(group), longestGroup)),
    },
    { title: 'until', cell: ({ until }) => until?.toISOString() ?? 'it is resumed' },
    { title: 'for', align: 'right', cell: ({ forMs }) => (forMs === undefined ? '-' : formatDuration(forMs)) },
  ]
  const more = total - holds.length
  return [
    ...table(shown, holds, { width: columns, paintTitle: colors.dim }),
    ...(more > 0 ? [`and ${counted(more, 'more')}.`] : []),
    `\`millrace queues release ${queue}\` ends holds, \`millrace queues resume ${queue} --group …\` a pause.`,
  ]
}

/** A few words on the holds of a queue; empty if there is none. */
export function holdWords({ holds, total }: QueueHolds): string {
  if (total === 0) return ''
  const [first] = holds
  if (first?.group === undefined) return `held for ${formatDuration(first!.forMs!)}`
  return `${counted(total, 'group')} held`
}
