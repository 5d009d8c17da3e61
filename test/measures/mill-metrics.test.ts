/** The samples of queues: what is told of them, and what is left out because it is not known. */

import { describe, expect, it } from 'vitest'
import { expositionText, MetricSamples } from '#src/measures/exposition.js'

import { addQueues, type MillMetrics } from '#src/measures/mill-metrics.js'
import { everyMillMetrics } from '../monitoring/every-metric.js'
import { valuesIn } from './exposition-text.js'

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
