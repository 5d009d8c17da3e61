import picocolors from 'picocolors'
import { describe, expect, it } from 'vitest'
import { WorkLog } from '#src/cli/supervise/work-log.js'
import type { Terminal } from '#src/cli/terminal/terminal.js'
import { type EventMap, type EventName, Events } from '#src/core/events.js'
import type { Mill } from '#src/mill/mill.js'

/** The work log of a mill that does nothing but emit, and the lines it has said. */
function listening() {
  const events = new Events()
  const lines: string[] = []
  const event: Terminal['event'] = (_event, _fields, words) => void lines.push(words())
  const terminal = { json: false, colors: picocolors.createColors(false), event } as Terminal
  const log = new WorkLog({ on: events.on.bind(events) } as unknown as Mill, terminal)
  return { events, lines, log }
}

const job = { queue: 'default', task: 'mail', id: 'a\u001b[31m' }

describe('the work log', () => {
  it.each<{ [Name in EventName]: [Name, EventMap[Name], string] }[EventName]>([
    [
      'job.crashed',
      { ...job, worker: 'w1', charged: false, crashes: 0 },
      'crash of JOB, not charged: its worker w1 died, was stopped or lost the store',
    ],
    [
      'job.crashed',
      { ...job, worker: 'w1', charged: true, crashes: 2 },
      'crash of JOB, it ran alone, crash 2 of its own: its worker w1 died, was stopped or lost the store',
    ],
    [
      'job.crashed',
      { ...job, worker: 'w1', charged: true, crashes: 2, error: 'the worker process (7) exited with code 134.' },
      'crash of JOB, it ran alone, crash 2 of its own: the worker process (7) exited with code 134.',
    ],
    ['job.released', { ...job, reason: 'held', delayMs: 0, holdMs: 30_000 }, 'released JOB, held, again in 30s'],
    [
      'job.released',
      { ...job, reason: 'late', delayMs: 0 },
      'JOB waits for its next place in the throttle: it missed this one, and was not begun',
    ],
    ['job.released', { ...job, reason: 'deferred', delayMs: 0 }, 'released JOB, deferred, again at once'],
    ['job.released', { ...job, reason: 'waiting', delayMs: 0 }, 'released JOB, waiting for a signal'],
    [
      'process.ended',
      { ...job, child: 4711, state: 'completed' },
      'process 4711 of JOB, which was adopted, has ended; the job is completed',
    ],
    ['job.slow', { ...job, attempt: 2, runMs: 90_000 }, 'slow JOB, attempt 2, has run for 1m 30s and goes on'],
    [
      'slot.retired',
      { ...job, worker: 'w1', left: 1 },
      'slot retired: the handler of JOB goes on after its job was given up; 1 slot left',
    ],
    [
      'loop.blocked',
      { forMs: 12_000, jobs: Array.from({ length: 7 }, () => ({ ...job, id: 'a' })), givenUp: true },
      `event loop was blocked for 12s; it gave up its leases; in hand: ${'default mail a, '.repeat(4)}default mail a and 2 more`,
    ],
    [
      'worker.recycling',
      { worker: 'w1', reason: 'slot-retired' },
      'takes no more jobs, a slot of it is retired; another process takes its place',
    ],
    [
      'worker.failed',
      { worker: 'w1', error: new Error('page 7\nis damaged') },
      'takes no more jobs: page 7\\nis damaged',
    ],
    [
      'queue.damaged',
      { queue: 'mail', shard: 0, error: new Error('foreign keys'), retryMs: 30_000 },
      "queue 'mail' is damaged and left out, checked again in 30s: foreign keys",
    ],
    ['queue.mended', { queue: 'mail' }, "queue 'mail' is mended: its jobs are taken again"],
    [
      'schedule.missed',
      { schedule: 'nightly', queue: 'mail', tickAt: 0, enqueued: 1, leftOut: 2, reason: 'late' },
      "schedule 'nightly' missed ticks, as no worker was there: enqueued now 1, left out 2",
    ],
    [
      'schedule.refused',
      { schedule: 'nightly', queue: 'mail', tickAt: 0, reason: 'draining', error: undefined, retryMs: 1_000 },
      "schedule 'nightly' could not enqueue: its queue is draining; tried again in 1s",
    ],
    [
      'schedule.foreign',
      { declaredBy: 'other', schedules: ['a'], by: 'mine' },
      "schedules of the configuration 'other' are in this store and are left alone by 'mine': if that is a service of its own, a namespace keeps the two apart; if it is gone, remove them by `millrace schedules remove <name>`",
    ],
    [
      'schedule.lost',
      { restored: ['nightly'] },
      'the store had lost its schedules: those of the configuration are written again (1), those that were set at run time are gone',
    ],
  ])('prints %s in words that cannot control the terminal', (name, event, words) => {
    const { events, lines } = listening()
    events.emit(name, event as never)
    expect(lines).toEqual([words.replace('JOB', 'default mail a\\u001b[31m')])
  })

  it('counts cancelled jobs in its last line', () => {
    const { events, lines, log } = listening()
    events.emit('job.cancelled', { ...job, reason: 'no longer wanted' })
    log.stopped()
    expect(lines[0]).toBe('cancelled default mail a\\u001b[31m: no longer wanted')
    expect(lines[1]).toMatch(/: 0 done, none failed, 1 cancelled$/)
  })

  it('counts the jobs that their own processes have ended, except those that will run again', () => {
    const { events, lines, log } = listening()
    const states = ['completed', 'completed', 'dead', 'cancelled', 'scheduled', 'ready', undefined] as const
    for (const state of states) events.emit('process.ended', { ...job, child: 4711, state })
    log.stopped()
    expect(lines.at(-1)).toMatch(/: 2 done, 0 failed, 1 buried, 1 cancelled$/)
  })

  it('counts the crashes it found in its last line', () => {
    const { events, lines, log } = listening()
    for (let i = 0; i < 2; i += 1) events.emit('job.crashed', { ...job, worker: 'w1', charged: false, crashes: 0 })
    log.stopped()
    expect(lines.at(-1)).toMatch(/^stopped after .*: 0 done, none failed, 2 crashes of others found$/)
  })
})
