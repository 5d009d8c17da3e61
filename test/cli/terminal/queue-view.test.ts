import picocolors from 'picocolors'
import { describe, expect, it } from 'vitest'
import { widthOf } from '#src/cli/printable.js'
import { inColumns, queueViewLines, sparkline } from '#src/cli/terminal/queue-view.js'
import type { QueueHistory } from '#src/client/admin/queue-history.js'
import type { QueueDepth } from '#src/stores/contract/queue-depth.js'

const colors = picocolors.createColors(false)
const at = new Date(2026, 10, 25, 14, 3, 59)

function depth(queue: string, counts: Partial<QueueDepth> = {}): QueueDepth {
  return {
    ...{
      queue,
      ready: 0,
      payloads: 0,
      suspects: 0,
      scheduled: 0,
      waiting: 0,
      running: 0,
      dead: 0,
      fresh: 0,
      retries: 0,
      lagMs: 0,
    },
    ...{ processed: 0, failed: 0, crashed: 0, expired: 0, paused: false, draining: false },
    ...counts,
  }
}

/** An hour in which so many jobs completed in each minute, by its number. */
function history(queue: string, completed: (minute: number) => number, failed = (_: number) => 0): QueueHistory {
  const none = { started: 0, dead: 0, crashed: 0, cancelled: 0, runMs: 0, runTimes: [0, 0, 0, 0, 0, 0, 0] }
  const points = Array.from({ length: 60 }, (_, i) => ({
    ...{ ...none, at: new Date(at.getTime() - (59 - i) * 60_000), enqueued: 2 * completed(i) },
    ...{ completed: completed(i), failed: failed(i) },
  }))
  return { queue, step: 'minute', points }
}

const view = {
  title: 'sqlite:.millrace/jobs.db · 2 workers, 13 of 20 slots in use',
  at,
  depths: [
    depth('mail', { ready: 12_345, running: 10, dead: 3, lagMs: 83_412 }),
    depth('video-transcoding', { ready: 4, running: 3, lagMs: 950, paused: true }),
    depth('nightly'),
  ],
  histories: [
    history(
      'mail',
      (i) => i * 20,
      (i) => (i === 59 ? 5 : 0),
    ),
    history('video-transcoding', (i) => (i % 2) * 3),
    history('nightly', () => 0),
  ],
  below: [],
}

describe('the view of all queues', () => {
  it('shows four minutes per bar at 80 columns', () => {
    expect(queueViewLines(view, { columns: 80, rows: 24, colors })).toMatchInlineSnapshot(`
      [
        "sqlite:.millrace/jobs.db · 2 workers, 13 of 20 slots in use             14:03:59",
        "",
        "queue              last hour        in    out   ready  running   dead      lag",
        "mail               ▁▁▂▃▄▄▅▆▆▇██  2,320  1,160     12k       10      3   1m 23s",
        "video-transcoding  ▆█▆█▆█▆█▆█▆█      0      0       4        3      0    950ms",
        "nightly            ············      0      0       0        0      0        -",
        "total              ▁▁▂▃▄▄▅▆▆▇██  2,320  1,160     12k       13      3   1m 23s",
        "",
        "q quits · in, out: jobs per minute · bars: jobs that ended, red: some failed · …",
      ]
    `)
  })

  it('shows two minutes per bar at 120 columns', () => {
    expect(queueViewLines(view, { columns: 120, rows: 24, colors })).toMatchInlineSnapshot(`
      [
        "sqlite:.millrace/jobs.db · 2 workers, 13 of 20 slots in use                                                     14:03:59",
        "",
        "queue              last hour                          in    out   ready  running   dead      lag",
        "mail               ▁▁▁▁▂▂▂▂▃▃▃▄▄▄▄▅▅▅▅▆▆▆▇▇▇▇████  2,320  1,160     12k       10      3   1m 23s",
        "video-transcoding  ██████████████████████████████      0      0       4        3      0    950ms",
        "nightly            ······························      0      0       0        0      0        -",
        "total              ▁▁▁▁▂▂▂▂▃▃▃▄▄▄▄▅▅▅▅▆▆▆▇▇▇▇████  2,320  1,160     12k       13      3   1m 23s",
        "",
        "q quits · in, out: jobs per minute · bars: jobs that ended, red: some failed · video-transcoding paused",
      ]
    `)
  })

  it.each([80, 100, 120, 200])('is never wider than %s columns, nor higher than the screen', (columns) => {
    const names = Array.from({ length: 300 }, (_, i) => `queue-${i}-${'x'.repeat(i % 50)}`)
    const many = {
      ...view,
      title: 'x'.repeat(300),
      depths: names.map((name, i) => depth(name, { ready: i * 10_000_000, lagMs: i * 7_777_777, running: i })),
      histories: names.map((name, i) => history(name, () => i * 1_000)),
      below: ['one', 'two'],
    }
    const lines = queueViewLines(many, { columns, rows: 24, colors })
    expect(lines.length).toBeLessThanOrEqual(24)
    for (const line of lines) expect(widthOf(line), line).toBeLessThanOrEqual(columns)
    // Those that are behind the most are shown.
    expect(lines[3]).toMatch(/^queue-299-/)
    expect(lines.find((line) => line.startsWith('…'))).toMatch(/^… 28\d queues more, with less to do$/)
  })

  it('shows the minute before the last until all workers have reported the last', () => {
    const early = { ...view, at: new Date(2026, 10, 25, 14, 3, 5) }
    const inAndOut = (lines: string[]) => {
      const mail = lines.find((line) => line.startsWith('mail'))!
      return mail.split(/ +/).slice(2, 4)
    }
    expect(inAndOut(queueViewLines(view, { columns: 80, rows: 24, colors }))).toEqual(['2,320', '1,160'])
    expect(inAndOut(queueViewLines(early, { columns: 80, rows: 24, colors }))).toEqual(['2,280', '1,140'])
  })

  it('paints a bar red if something failed in its minutes', () => {
    const painted = queueViewLines(view, { columns: 80, rows: 24, colors: picocolors.createColors(true) })
    const mail = painted.find((line) => line.startsWith('mail'))!
    expect(mail.split('\u001b[31m█')).toHaveLength(2)
    expect(mail).toContain('\u001b[32m▁')
  })
})

describe('a sparkline', () => {
  it('has a bar for each number, scaled to the largest, and none for 0', () => {
    expect(sparkline([0, 1, 4, 8, 1_000]).join('')).toBe('·▁▁▁█')
    expect(sparkline([1, 2, 3, 4, 5, 6, 7, 8]).join('')).toBe('▁▂▃▄▅▆▇█')
    expect(sparkline([0, 0]).join('')).toBe('··')
  })

  it('sums its numbers up in columns', () => {
    expect(inColumns([1, 2, 3, 4, 5, 6], 2)).toEqual([6, 15])
  })
})
