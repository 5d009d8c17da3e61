/** Limit lines: the usage of the limits of queues that have some, shown with the counts of the queues. */

import type { ThrottleStatus } from '../../client/admin/throttle-admin.js'
import { formatDuration } from '../../core/values/duration.js'
import type { Depth } from '../../stores/contract/queue-depth.js'
import type { StoredQueue } from '../../stores/contract/queue-settings.js'
import { count, counted } from '../output/figures.js'
import { type Column, table } from '../output/table.js'
import type { Terminal } from '../output/terminal.js'
import { windowText } from './throttle-text.js'

/** A queue with limits, and their usage. */
export interface Limited extends Pick<Depth, 'queue' | 'running'> {
  readonly throttle?: ThrottleStatus
  readonly maxRunning?: StoredQueue['maxRunning']
}

/** One line for each; empty if there is none. */
export function limitLines(limited: readonly Limited[], { colors, columns }: Terminal): string[] {
  if (limited.length === 0) return []
  const shown: Column<Limited>[] = [
    { title: 'queue', most: 40, cell: ({ queue }) => queue },
    ...(limited.some(({ maxRunning }) => maxRunning !== undefined) ? [runningColumn(colors.yellow)] : []),
    { title: 'next', align: 'right', cell: nextText },
    { title: 'started', cell: budgetText },
  ]
  return ['', ...table(shown, limited, { width: columns, paintTitle: colors.dim })]
}

function runningColumn(paint: (text: string) => string): Column<Limited> {
  const isFull = ({ running, maxRunning }: Limited) => typeof maxRunning === 'number' && running >= maxRunning
  return {
    title: 'running',
    cell: (row) => {
      const { running, maxRunning } = row
      if (maxRunning === undefined) return '-'
      if (typeof maxRunning === 'object') return `≤ ${count(maxRunning.perGroup)} a group`
      return `${isFull(row) ? 'full ' : ''}${count(running)}/${count(maxRunning)}`
    },
    paint: (text, row) => (isFull(row) ? paint(text) : text),
  }
}

function nextText({ throttle }: Limited): string {
  if (throttle === undefined) return '-'
  const { forMs, quietForMs } = throttle
  if (quietForMs > 0) return `silent ${formatDuration(quietForMs)}`
  if (forMs > 0) return `in ${formatDuration(forMs)}`
  return throttle.by === 'group' ? '-' : 'now'
}

function budgetText({ throttle }: Limited): string {
  if (throttle === undefined) return '-'
  const { by, rules, eachGroup, hits, groups = 0, own } = throttle
  const rated =
    own === undefined ? '' : `, ${count(own.groups)} with a rate of ${own.groups === 1 ? 'its' : 'their'} own`
  const each = (by === 'group' ? rules : eachGroup)?.map(windowText).join(', ')
  const ofGroups = each === undefined ? [] : [`${each} for each group, ${counted(groups, 'group')} counted${rated}`]
  const whole = by === 'queue' ? rules.map((rule, i) => `${count(hits[i]!)}/${windowText(rule)}`) : []
  return [...whole, ...ofGroups].join(', ')
}
