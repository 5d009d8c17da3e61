/** Throttle lines: the counts of one throttle, for people. */

import type { ThrottleStatus } from '../../client/admin/throttle-admin.js'
import type { ThrottleRule } from '../../core/queue/throttle.js'
import { exactDuration, formatDuration } from '../../core/values/duration.js'
import { count, counted } from '../output/figures.js'
import { printable, shortened } from '../output/printable.js'
import { type Column, table } from '../output/table.js'
import type { Terminal } from '../output/terminal.js'
import { evennessOf } from './throttle-text.js'

const longestGroup = 40

/** A rule and its count. */
interface RuleHits {
  readonly rule: ThrottleRule
  /** Undefined: no group was asked for. */
  readonly hits: number | undefined
  /** What it counts. */
  readonly unit: string
}

export function throttleLines(
  state: ThrottleStatus,
  of: { readonly queue: string; readonly group: string | undefined; readonly terminal: Terminal },
): string[] {
  const { scope, by, rules, eachGroup = [], queues, hits, groupHits, forMs, quietForMs, groups } = state
  const { queue, group, terminal } = of
  const { colors, columns } = terminal
  const isByGroup = by === 'group'
  const isOfAll = isByGroup && group === undefined
  const others = queues.filter((name) => name !== queue)
  const rows: RuleHits[] = [
    ...rules.map((rule, i) => ({ rule, hits: hits[i]!, unit: isByGroup ? 'each group' : 'all' })),
    ...eachGroup.map((rule, i) => ({
      rule,
      hits: groupHits?.[i],
      unit: group === undefined ? 'each group' : 'the group',
    })),
  ]
  const shown: Column<RuleHits>[] = [
    { title: 'limit', align: 'right', cell: ({ rule }) => count(rule.limit) },
    { title: 'window', align: 'right', cell: ({ rule }) => exactDuration(rule.windowMs) },
    ...(isOfAll ? [] : [startedColumn]),
    ...(eachGroup.length > 0 ? [unitColumn] : []),
    ...(rows.some(({ rule }) => evennessOf(rule).length > 0) ? [spacingColumn] : []),
  ]
  const scopeText = scope === queue && others.length === 0 ? '' : ` · scope ${scope}`
  return [
    `${colors.bold(queue)}${isByGroup ? ' · by group' : ''}${scopeText}${others.length > 0 ? `, shared with ${others.join(', ')}` : ''}`,
    ...(group === undefined
      ? []
      : [`group '${shortened(printable(group), longestGroup)}'${state.isOwn ? ' · a rate of its own' : ''}`]),
    ...table(shown, rows, { width: columns, paintTitle: colors.dim }),
    ...(isOfAll ? [] : [`The next job may start ${soon(forMs)}.`]),
    ...(groups !== undefined && group === undefined
      ? [`${counted(groups, 'group')} counted; --group shows one of them.`]
      : []),
    ...(quietForMs > 0 ? [colors.yellow(`It is ${silenceText(quietForMs)}.`)] : []),
  ]
}

const startedColumn: Column<RuleHits> = {
  title: 'started',
  align: 'right',
  cell: ({ hits }) => (hits === undefined ? '-' : count(hits)),
}

const unitColumn: Column<RuleHits> = { title: 'of', cell: ({ unit }) => unit }

const spacingColumn: Column<RuleHits> = {
  title: 'spacing',
  cell: ({ rule }) => evennessOf(rule).join(', ') || '-',
}

/** The reason why nothing starts although the rules would allow it. */
export function silenceText(quietForMs: number): string {
  return `silent for ${formatDuration(quietForMs)}: the store was restarted, and may have forgotten earlier starts`
}

function soon(forMs: number): string {
  return forMs === 0 ? 'now' : `in ${formatDuration(forMs)}`
}
