/** The trouble counters: what they count of the events of a mill, and what travels of that. */

import { describe, expect, it } from 'vitest'
import { TimeLimitError } from '#src/core/errors.js'
import { Events } from '#src/core/events.js'
import {
  addedProcessCounters,
  mostFailureRows,
  noProcessCounters,
  processMetricsIn,
  TroubleCounters,
  troubleEvents,
} from '#src/measures/process-metrics.js'

function counted() {
  const events = new Events()
  const counters = new TroubleCounters(events)
  const fail = (queue: string, error: unknown) =>
    events.emit('job.failed', { queue, id: '1', task: 't', attempt: 1, error, retryMs: undefined })
  return { events, counters, fail }
}

describe('the trouble counters', () => {
  it("counts failures by queue and code, with codes other than ours as 'error'", () => {
    const { counters, fail } = counted()
    fail('mail', new Error('no such address'))
    fail('mail', Object.assign(new Error('away'), { code: 'ECONNREFUSED' }))
    fail('mail', new TimeLimitError('t', '5s'))
    fail('orders', 'text')

    expect(counters.counts.failures).toEqual([
      ['mail', 'error', 2],
      ['mail', 'time-limit-exceeded', 1],
      ['orders', 'error', 1],
    ])
  })

  it('counts each kind of trouble from 0, and nothing after it is closed', () => {
    const { events, counters } = counted()
    expect(counters.counts.events).toEqual(Object.fromEntries(troubleEvents.map((name) => [name, 0])))
    const emit = () => events.emit('store.failed', { call: 'claim', error: new Error('away'), retryMs: 100 })
    emit()
    emit()
    counters.close()
    emit()

    expect(counters.counts.events['store.failed']).toBe(2)
    expect(troubleEvents.filter((name) => events.has(name))).toEqual([])
  })

  it('is limited in size, whatever queues fail', () => {
    const { counters, fail } = counted()
    for (let i = 0; i < mostFailureRows + 10; i += 1) fail(`queue-${i}`, new Error('no'))
    expect(counters.counts.failures).toHaveLength(mostFailureRows)
  })

  it('adds up over processes', () => {
    const { counters, fail } = counted()
    fail('mail', new Error('no'))
    const twice = addedProcessCounters(addedProcessCounters(noProcessCounters, counters.counts), counters.counts)
    expect(twice.failures).toEqual([['mail', 'error', 2]])
    expect(counters.counts.failures).toEqual([['mail', 'error', 1]])
  })

  it.each([
    [{}],
    [null],
    [{ rssBytes: -1, heapBytes: 1, loopDelayMs: 1, upMs: 1, failures: [], events: {} }],
    [{ rssBytes: 1, heapBytes: 1, loopDelayMs: 1, upMs: 1, failures: [['mail', 'error', '7']], events: {} }],
    [{ rssBytes: 1, heapBytes: 1, loopDelayMs: 1, upMs: 1, failures: [], events: { 'store.failed': 'x' } }],
  ])('refuses invalid measures of a process: %j', (said) => {
    expect(processMetricsIn(said)).toBeUndefined()
  })
})
