/** The exposition: what OpenMetrics and Prometheus read of samples. */

import { describe, expect, it } from 'vitest'
import { acceptedFormat, expositionText, MetricSamples } from '#src/measures/exposition.js'
import { addQueues, type MillMetrics } from '#src/measures/mill-metrics.js'
import { everyMillMetrics } from './every-metric.js'
import { openMetricsFamilies, valuesIn } from './exposition-text.js'

const hostile = 'a "quoted" \\ back\nline \u{1F680} },x="'

function samplesOf(tell: (samples: MetricSamples) => void): MetricSamples {
  const samples = new MetricSamples()
  tell(samples)
  return samples
}

describe('the exposition', () => {
  it('names counters, units and integer bounds as each of the two formats does', () => {
    const samples = samplesOf((one) => {
      one.add('millrace_jobs_expired_total', { queue: 'mail' }, 3)
      one.add('millrace_queue_lag_seconds', { queue: 'mail' }, 0.5)
      one.addHistogram(
        'millrace_job_duration_seconds',
        { queue: 'mail' },
        { bounds: [0.1, 1], counts: [2, 0, 1], sum: 9.5 },
      )
    })
    const bucket = 'millrace_job_duration_seconds_bucket{queue="mail",le='

    expect(
      expositionText(samples, 'prometheus')
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
    const open = expositionText(samples, 'openmetrics')
    expect(open).toContain('# TYPE millrace_jobs_expired counter\nmillrace_jobs_expired_total{queue="mail"} 3\n')
    expect(open).toContain('# UNIT millrace_queue_lag_seconds seconds\n')
    expect(open).toContain(`${bucket}"1.0"} 2\n`)
    expect(openMetricsFamilies(open)).toHaveLength(3)
  })

  it('escapes labels so that both formats restore them', () => {
    const samples = samplesOf((one) => one.add('millrace_worker_slots', { worker: hostile, host: '\ud800' }, 4))
    const [family] = openMetricsFamilies(expositionText(samples, 'openmetrics'))

    expect(family?.samples).toEqual([
      { name: 'millrace_worker_slots', labels: { worker: hostile, host: '\ufffd' }, value: 4 },
    ])
    expect(expositionText(samples, 'prometheus').trim().split('\n')).toHaveLength(3)
  })

  it('writes a sample once, the first of two, and no unknown one', () => {
    const samples = samplesOf((one) => {
      one.add('millrace_jobs', { queue: 'mail', state: 'dead' }, 1)
      one.add('millrace_jobs', { queue: 'mail', state: 'dead' }, 2)
      one.add('millrace_queue_workers', { queue: 'mail' }, undefined)
    })

    expect([...valuesIn(expositionText(samples, 'openmetrics'))]).toEqual([
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

const counts = { enqueued: 9, started: 8, completed: 6, failed: 2, dead: 1, crashed: 0, cancelled: 0 }

function keysOf(reading: Partial<MillMetrics>, pattern: RegExp): string[] {
  const samples = new MetricSamples()
  const gained = () => ({ ...counts, runMs: 1_500, runTimes: [1, 2, 3, 0, 1, 0, 1] })
  addQueues(samples, { ...everyMillMetrics, ...reading }, gained)
  return [...valuesIn(expositionText(samples, 'prometheus'))]
    .filter(([key]) => pattern.test(key))
    .map((pair) => pair.join(' '))
}

describe('the samples of a queue', () => {
  it('have durations as cumulative buckets, in seconds', () => {
    expect(keysOf({}, /^millrace_job_duration.*queue="mail"/)).toEqual([
      'millrace_job_duration_seconds_bucket{queue="mail",le="0.01"} 1',
      'millrace_job_duration_seconds_bucket{queue="mail",le="0.1"} 3',
      'millrace_job_duration_seconds_bucket{queue="mail",le="1"} 6',
      'millrace_job_duration_seconds_bucket{queue="mail",le="10"} 6',
      'millrace_job_duration_seconds_bucket{queue="mail",le="60"} 7',
      'millrace_job_duration_seconds_bucket{queue="mail",le="600"} 7',
      'millrace_job_duration_seconds_bucket{queue="mail",le="+Inf"} 8',
      'millrace_job_duration_seconds_sum{queue="mail"} 1.5',
      'millrace_job_duration_seconds_count{queue="mail"} 8',
    ])
  })

  it('omit the counters of a store that does not count, and the durations of one without histories', () => {
    const counters = /_total|duration/
    expect(keysOf({}, counters).length).toBeGreaterThan(0)
    expect(keysOf({ isExact: false, hasHistory: false }, counters)).toEqual([])
  })

  it('have payloads for ordered queues only, and for a damaged queue just that it is damaged', () => {
    expect(keysOf({}, /payloads/)).toEqual(['millrace_queue_payloads{queue="orders"} 5'])
    expect(keysOf({ hasHistory: false }, /queue="broken"/)).toEqual([
      'millrace_queue_paused{queue="broken"} 0',
      'millrace_queue_draining{queue="broken"} 0',
      'millrace_queue_damaged{queue="broken"} 1',
      'millrace_queue_workers{queue="broken"} 1',
    ])
  })
})
