/** The exposition: a metric sheet as text, in the form of Prometheus or of OpenMetrics. Pure. */

import { escapedText } from './label-text.js'
import { type MetricFamily, metricFamilies } from './metric-families.js'
import type { MetricSheet, Sample } from './metric-sheet.js'

export type ExpositionFormat = 'prometheus' | 'openmetrics'

/** The content type of each: the text of Prometheus 0.0.4, or OpenMetrics 1.0. */
export const expositionTypes: Readonly<Record<ExpositionFormat, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

export function expositionText(sheet: MetricSheet, format: ExpositionFormat): string {
  const lines: string[] = []
  for (const [name, samples] of sheet.metrics) {
    lines.push(...headOf(name, metricFamilies[name], format))
    for (const sample of samples) lines.push(`${name}${sample.suffix}${labelsOf(sample, format)} ${sample.value}`)
  }
  if (format === 'openmetrics') lines.push('# EOF')
  return `${lines.join('\n')}\n`
}

/** OpenMetrics names a counter without its `_total`, and states units. */
function headOf(name: string, { type, unit, help }: MetricFamily, format: ExpositionFormat): string[] {
  const isOpen = format === 'openmetrics'
  const family = isOpen && type === 'counter' ? name.replace(/_total$/, '') : name
  return [
    `# HELP ${family} ${isOpen ? escapedText(help) : help}`,
    `# TYPE ${family} ${type}`,
    ...(isOpen && unit !== undefined ? [`# UNIT ${family} ${unit}`] : []),
  ]
}

function labelsOf({ labels, le }: Sample, format: ExpositionFormat): string {
  if (le === undefined) return labels === '' ? '' : `{${labels}}`
  return `{${labels}${labels === '' ? '' : ','}le="${boundText(le, format)}"}`
}

/** OpenMetrics writes whole bounds as `1.0`. */
function boundText(le: number, format: ExpositionFormat): string {
  if (le === Number.POSITIVE_INFINITY) return '+Inf'
  return format === 'openmetrics' && Number.isInteger(le) ? le.toFixed(1) : String(le)
}
