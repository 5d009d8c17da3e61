/** The exposition: what OpenMetrics and Prometheus read of a sheet. */

import { describe, expect, it } from 'vitest'
import { acceptedFormat } from '#src/measures/accepted-format.js'
import { expositionText } from '#src/measures/exposition.js'
import { MetricSheet } from '#src/measures/metric-sheet.js'
import { openMetricsFamilies, valuesIn } from './exposition-text.js'

const hostile = 'a "quoted" \\ back\nline \u{1F680} },x="'

function sheetOf(tell: (sheet: MetricSheet) => void): MetricSheet {
  const sheet = new MetricSheet()
  tell(sheet)
  return sheet
}

describe('the exposition', () => {
  it('names counters, units and integer bounds as each of the two formats does', () => {
    const sheet = sheetOf((one) => {
      one.tell('millrace_jobs_expired_total', { queue: 'mail' }, 3)
      one.tell('millrace_queue_lag_seconds', { queue: 'mail' }, 0.5)
      one.tellHistogram(
        'millrace_job_duration_seconds',
        { queue: 'mail' },
        { bounds: [0.1, 1], counts: [2, 0, 1], sum: 9.5 },
      )
    })
    const bucket = 'millrace_job_duration_seconds_bucket{queue="mail",le='

    expect(
      expositionText(sheet, 'prometheus')
        .split('\n')
        .filter((line) => !line.startsWith('# HELP')),
    ).toEqual([
      '# TYPE millrace_queue_lag_seconds gauge',
      'millrace_queue_lag_seconds{queue="mail"} 0.5',
      '# TYPE millrace_jobs_expired_total counter',
      'millrace_jobs_expired_total{queue="mail"} 3',
      '# TYPE millrace_job_duration_seconds histogram',
      `${bucket}"0.1"} 2`,
      `${bucket}"1"} 2`,
      `${bucket}"+Inf"} 3`,
      'millrace_job_duration_seconds_sum{queue="mail"} 9.5',
      'millrace_job_duration_seconds_count{queue="mail"} 3',
      '',
    ])
    const open = expositionText(sheet, 'openmetrics')
    expect(open).toContain('# TYPE millrace_jobs_expired counter\nmillrace_jobs_expired_total{queue="mail"} 3\n')
    expect(open).toContain('# UNIT millrace_queue_lag_seconds seconds\n')
    expect(open).toContain(`${bucket}"1.0"} 2\n`)
    expect(openMetricsFamilies(open)).toHaveLength(3)
  })

  it('escapes labels so that both formats restore them', () => {
    const sheet = sheetOf((one) => one.tell('millrace_worker_slots', { worker: hostile, host: '\ud800' }, 4))
    const [family] = openMetricsFamilies(expositionText(sheet, 'openmetrics'))

    expect(family?.samples).toEqual([
      { name: 'millrace_worker_slots', labels: { worker: hostile, host: '\ufffd' }, value: 4 },
    ])
    expect(expositionText(sheet, 'prometheus').trim().split('\n')).toHaveLength(3)
  })

  it('writes a sample once, the first of two, and no unknown one', () => {
    const sheet = sheetOf((one) => {
      one.tell('millrace_jobs', { queue: 'mail', state: 'dead' }, 1)
      one.tell('millrace_jobs', { queue: 'mail', state: 'dead' }, 2)
      one.tell('millrace_queue_workers', { queue: 'mail' }, undefined)
    })

    expect([...valuesIn(expositionText(sheet, 'openmetrics'))]).toEqual([
      ['millrace_jobs{queue="mail",state="dead"}', 1],
    ])
  })
})

describe('the format of a scrape', () => {
  it.each([
    [undefined, 'prometheus'],
    ['*/*', 'prometheus'],
    ['text/html,application/xml;q=0.9', 'prometheus'],
    ['application/openmetrics-text', 'openmetrics'],
    ['application/openmetrics-text; version=1.0.0; charset=utf-8', 'openmetrics'],
    ['application/openmetrics-text;version=0.0.1', 'prometheus'],
    ['application/openmetrics-text;q=0', 'prometheus'],
    ['application/openmetrics-text;q=0.3, text/plain;q=0.9', 'prometheus'],
    ['application/openmetrics-text;q=x, ;;=', 'prometheus'],
    [
      'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1',
      'openmetrics',
    ],
  ] as const)('follows the header %s to %s', (accept, format) => {
    expect(acceptedFormat(accept)).toBe(format)
  })
})
