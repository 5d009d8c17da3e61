/** Throttle lines: the counts of one throttle, the rates of groups of their own, and what is held, for people. */

import type { QueueHold, QueueHolds, ThrottleStatus } from '../../client/admin/throttle-admin.js'
import type { ThrottleRule } from '../../core/queue/throttle.js'
import { exactDuration, formatDuration } from '../../core/values/duration.js'
import type { GroupRate, GroupRates } from '../../stores/contract/throttles.js'
import { printable, shortened } from '../printable.js'
import { count, counted } from './figures.js'
import { type Column, table } from './table.js'
import type { Terminal } from './terminal.js'
import { evennessOf, rulesText } from './throttle-text.js'

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

/** The groups that have a rate of their own, one line for each; empty if there is none. */
export function rateLines({ rates, total }: GroupRates, { colors, columns }: Terminal): string[] {
  if (total === 0) return []
  const shown: Column<GroupRate>[] = [
    { title: 'group', most: longestGroup, cell: ({ group }) => group },
    { title: 'rate of its own', cell: ({ rules }) => rulesText(rules) },
  ]
  const more = total - rates.length
  return [
    ...table(shown, rates, { width: columns, paintTitle: colors.dim }),
    ...(more > 0 ? [`and ${counted(more, 'more')}.`] : []),
  ]
}

/** One line for each hold or pause; empty if there is none. */
export function holdLines(queue: string, { holds, total }: QueueHolds, { colors, columns }: Terminal): string[] {
  if (total === 0) return []
  const shown: Column<QueueHold>[] = [
    {
      title: 'held',
      most: longestGroup,
      cell: ({ group }) => group ?? '(the whole queue)',
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
