/** The dashboard, the alert rules and the configuration of Prometheus that ship, checked by Prometheus' own tool. */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { expositionText } from '#src/measures/exposition.js'
import { type MetricName, metricFamilies } from '#src/measures/metric-families.js'
import { project, root } from '../cli/project.js'
import { Document, plain } from '../docs/document.js'
import { everySample } from './every-metric.js'
import { openMetricsFamilies } from './exposition-text.js'
import { promtool } from './promtool.js'

const folder = join(root, 'docs/monitoring')
let run: Awaited<ReturnType<typeof promtool>>
beforeAll(async () => {
  run = await promtool()
}, 180_000)

interface Query {
  readonly expr: string
  readonly legendFormat?: string
}

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly datasource?: unknown
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly targets?: readonly (Query & { readonly datasource: unknown })[]
}

interface Dashboard {
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] }
  readonly panels: readonly Panel[]
}

const dashboard = JSON.parse(readFileSync(join(folder, 'grafana-dashboard.json'), 'utf8')) as Dashboard
const queries = dashboard.panels.flatMap(({ targets = [] }) => targets)
const { groups } = parse(readFileSync(join(folder, 'alerts.yml'), 'utf8')) as {
  groups: { rules: (Query & { alert: string; labels: { severity: string }; annotations: object })[] }[]
}
const rules = groups.flatMap((group) => group.rules)

/** What Prometheus itself adds to each sample. */
const added = ['instance', 'job', 'le']

/** Metrics and labels that a query names, and that there are not. */
function strangersIn({ expr, legendFormat = '' }: Query): string[] {
  const names = [...expr.matchAll(/\bmillrace_\w+/g)].map(([name]) => name.replace(/_(?:bucket|sum|count)$/, ''))
  const unknown = names.filter((name) => !Object.hasOwn(metricFamilies, name))
  const known = names.filter((name) => !unknown.includes(name)) as MetricName[]
  const labels = new Set([...added, ...known.flatMap((name): readonly string[] => metricFamilies[name].labels)])
  const named = [
    ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(', ')),
    ...[...expr.matchAll(/\{([^}]*)\}/g)].flatMap(([, list]) =>
      [...list!.matchAll(/(\w+)=/g)].map(([, name]) => name!),
    ),
    ...[...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, name]) => name!),
  ]
  return [...unknown, ...named.filter((name) => !labels.has(name))]
}

describe('the page of metrics', () => {
  it('has every metric with its type and labels, and no other', () => {
    const rows = new Document('docs/metrics.md').tables.flatMap((table) => table.rows)
    const told = rows.flatMap(([name = '', type, labels = '']) =>
      name.startsWith('`millrace_') ? [[plain(name), type, (labels.match(/`\w+`/g) ?? []).map(plain)]] : [],
    )
    expect(told).toEqual(Object.entries(metricFamilies).map(([name, { type, labels }]) => [name, type, [...labels]]))
  })
})

describe('the exposition', () => {
  it('contains every metric, in a form that promtool and OpenMetrics accept', () => {
    const samples = everySample()
    expect(samples.metrics.map(([name]) => name)).toEqual(Object.keys(metricFamilies))
    expect(openMetricsFamilies(expositionText(samples, 'openmetrics'))).toHaveLength(samples.metrics.length)
    expect(run(['check', 'metrics'], expositionText(samples, 'prometheus'))).toEqual({ code: 0, said: '' })
  })
})

describe('the alert rules', () => {
  it('are at least ten, each with a severity, a summary and an instruction', () => {
    expect(rules.length).toBeGreaterThanOrEqual(10)
    for (const { alert, labels, annotations } of rules) {
      expect(labels.severity, alert).toMatch(/^(?:info|warning|critical)$/)
      expect(annotations, alert).toEqual({ summary: expect.any(String), description: expect.any(String) })
    }
  })

  it('name existing metrics and labels', () => {
    expect(
      rules.map((rule) => [rule.alert, strangersIn(rule)]).filter(([, strangers]) => strangers!.length > 0),
    ).toEqual([])
  })

  it('are accepted by Prometheus, and fire only when they should', () => {
    expect(run(['check', 'rules', 'docs/monitoring/alerts.yml'])).toMatchObject({ code: 0 })
    const { code, said } = run(['test', 'rules', 'test/monitoring/alert-cases.yml'])
    expect({ code, said }).toMatchObject({ code: 0 })
    const cases = readFileSync(join(root, 'test/monitoring/alert-cases.yml'), 'utf8')
    expect(rules.filter(({ alert }) => !cases.includes(alert))).toEqual([])
  })

  it('come with a configuration that Prometheus accepts', () => {
    const { code, said } = run(['check', 'config', '--syntax-only', 'docs/monitoring/prometheus.yml'])
    expect({ code, said }).toMatchObject({ code: 0 })
  })
})

describe('the dashboard', () => {
  it('queries existing metrics and labels, in the data source that its reader chooses', () => {
    expect(queries.length).toBeGreaterThan(25)
    expect(queries.flatMap(strangersIn)).toEqual([])
    const chosen = { type: 'prometheus', uid: '$' + '{datasource}' }
    for (const { datasource } of queries) expect(datasource).toEqual(chosen)
    expect(dashboard.templating.list.map(({ name, type }) => [name, type])).toEqual([
      ['datasource', 'datasource'],
      ['queue', 'query'],
    ])
  })

  it('has queries that Prometheus accepts', () => {
    const cwd = project()
    const file = join(cwd, 'queries.yml')
    const recorded = queries.map(({ expr }, i) => ({ record: `query:${i}`, expr }))
    // YAML is JSON and more.
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'queries', rules: recorded }] }))
    expect(run(['check', 'rules', file])).toMatchObject({ code: 0 })
  })

  it('has panels with unique numbers, which do not overlap', () => {
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    )
    expect(new Set(cells).size).toBe(cells.length)
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length)
    expect(dashboard.panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true)
  })
})
