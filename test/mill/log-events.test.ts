import { describe, expect, it } from 'vitest'
import { type EventMap, type EventName, Events } from '#src/core/events.js'
import { logEvents } from '#src/mill/log-events.js'

const ref = { queue: 'images', id: 'a', task: 'resize' }

/** The line that an event leads to. */
function lineOn<Name extends EventName>(name: Name, event: EventMap[Name]) {
  const lines: [level: string, message: string, fields: unknown][] = []
  const at = (level: string) => (message: string, fields: unknown) => void lines.push([level, message, fields])
  const events = new Events()
  logEvents(events, { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') })
  events.emit(name, event)
  return lines
}

describe('the log says', () => {
  it('of a crash whether the job was alone, and how many there have been', () => {
    const crash = { ...ref, worker: 'w', charged: false, crashes: 0 }
    const alone = { ...crash, charged: true, crashes: 2 }

    expect(lineOn('job.crashed', crash)).toEqual([
      ['warn', 'job crashed: its worker was lost; it is run again, alone', crash],
    ])
    expect(lineOn('job.crashed', alone)).toEqual([
      ['warn', 'job crashed: its worker was lost while it ran this job alone, 2 so far', alone],
    ])
  })

  it('what is slow, retired or blocked, and for how long', () => {
    const slow = { ...ref, attempt: 1, runMs: 90_000 }
    const retired = { ...ref, worker: 'w', left: 9 }
    const blocked = { forMs: 6_000, jobs: [ref], givenUp: false }

    expect(lineOn('job.slow', slow)).toEqual([['warn', 'job is slow: it has run for 1m 30s and goes on', slow]])
    expect(lineOn('slot.retired', retired)).toEqual([
      ['warn', 'slot retired: the handler goes on after its job was given up; slots left: 9', retired],
    ])
    expect(lineOn('loop.blocked', blocked)).toEqual([['warn', 'event loop was blocked for 6s', blocked]])
    expect(lineOn('loop.blocked', { ...blocked, givenUp: true })).toEqual([
      ['error', 'event loop was blocked for 6s; it gave up its leases', { ...blocked, givenUp: true }],
    ])
  })

  it('of a refused end whether it came late, or may have been carried out before', () => {
    const refused = { ...ref, kind: 'complete', answer: 'gone' } as const

    expect(lineOn('settle.refused', refused)).toEqual([['warn', 'late complete refused: the claim is gone', refused]])
    expect(lineOn('settle.refused', { ...refused, inDoubt: true })).toMatchObject([
      [
        'warn',
        'complete was sent again, as its first time had no answer, and the claim is gone: the first may have ended it',
        { ...refused, inDoubt: true },
      ],
    ])
  })

  it('why a worker asks to be replaced', () => {
    const recycling = { worker: 'w', reason: 'max-rss' } as const

    expect(lineOn('worker.recycling', recycling)).toEqual([
      ['info', 'worker takes no more jobs, to be replaced: max-rss', recycling],
    ])
  })

  it('how the job of an adopted process ended', () => {
    const ended = { ...ref, child: 4711, state: 'dead' } as const

    expect(lineOn('process.ended', ended)).toEqual([
      ['info', 'process 4711 of an adopted job has ended; the job is dead', ended],
    ])
    expect(lineOn('process.ended', { ...ended, state: undefined })).toMatchObject([
      ['info', 'process 4711 of an adopted job has ended; nothing is kept of the job', {}],
    ])
  })

  it('why a permit was wasted', () => {
    const wasted = { ...ref, reason: 'lease-lost' }

    expect(lineOn('permit.wasted', wasted)).toEqual([
      ['warn', 'permit wasted: the throttle counts a job that was not started (lease-lost)', wasted],
    ])
  })
})
