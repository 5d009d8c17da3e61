/** Record lines: one job as `jobs show` and `morgue show` print it for people — its fields, then its payloads. */

import type { JobRecord, PayloadRecord } from '../core/job.js'
import { count } from './figures.js'
import { printable, printableLines, shortened } from './printable.js'
import { type Column, table } from './table.js'
import { jsonText, type Terminal } from './terminal.js'

/** Longest value that is printed for people. */
const longestValue = 4_000
const longestMeta = 40

export function recordLines(job: JobRecord, terminal: Terminal): string[] {
  const { payloads, payloadCount, pendingCount, priority, ...rest } = job
  // A job of an ordered queue has none.
  const fields = Object.entries(payloads === undefined ? { ...rest, priority } : rest)
  const width = Math.max(...fields.map(([name]) => name.length))
  const lines = fields.map(([name, value]) => {
    // Below the first line, as far in as the first begins.
    const text = shownValue(value).replaceAll('\n', `\n${' '.repeat(width + 2)}`)
    return `${terminal.colors.dim(name.padEnd(width))}  ${text}`
  })
  return payloads === undefined
    ? lines
    : [...lines, '', ...payloadLines(payloads, { payloadCount, pendingCount }, terminal)]
}

function payloadLines(
  payloads: readonly PayloadRecord[],
  { payloadCount = payloads.length, pendingCount = 0 }: Pick<Partial<JobRecord>, 'payloadCount' | 'pendingCount'>,
  { colors, columns }: Terminal,
): string[] {
  const shown: Column<PayloadRecord>[] = [
    { title: 'score', align: 'right', cell: ({ score }) => String(score) },
    ...(payloads.some(({ meta }) => meta !== undefined)
      ? [{ title: 'meta', most: longestMeta, cell: ({ meta }: PayloadRecord) => (meta ? jsonText(meta) : '') }]
      : []),
    {
      title: 'input',
      most: longestValue,
      cell: (payload) => ('input' in payload ? jsonText(payload.input) : '(cannot be decoded)'),
    },
  ]
  const more = payloadCount - payloads.length
  return [
    `${colors.bold(`payloads: ${count(payloadCount)}`)}, old to new${pendingCount > 0 ? `; ${count(pendingCount)} more beside them wait for the end of this run` : ''}`,
    ...table(shown, payloads, { width: columns - 2, paintTitle: colors.dim }).map((line) => `  ${line}`),
    ...(more > 0 ? [colors.dim(`  and ${count(more)} newer ones`)] : []),
  ]
}

function shownValue(value: unknown): string {
  if (value instanceof Date) return value.toISOString()
  if (typeof value !== 'string') return shortened(jsonText(value, 2), longestValue)
  return shortened(value.includes('\n') ? printableLines(value) : printable(value), longestValue)
}
