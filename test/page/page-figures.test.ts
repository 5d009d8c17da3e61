/** The page's figures: what it makes of counts and histories before it draws them, and of a form before it sends it. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { HistoryPoint, QueueRow } from '../../dashboard/src/api/answers.js'
import { bodyText } from '../../dashboard/src/api/typed-json.js'
import {
  askedFrom,
  binned,
  historyRanges,
  mergedPoints,
  rangeOf,
  withPresent,
} from '../../dashboard/src/pages/queue/history-range.js'
import { type JobForm, jobOf, noTexts } from '../../dashboard/src/pages/queue/job-form.js'
import { filteredQueues, summedSparks } from '../../dashboard/src/pages/queue-filter.js'
import { linePoints, niceDurations, niceTicks, timeTicks } from '../../dashboard/src/parts/chart-scale.js'
import { root } from '../cli/project.js'

const minute = 60_000
const start = Date.UTC(2026, 0, 1)

function point(minutes: number, more: Partial<HistoryPoint> = {}): HistoryPoint {
  const nothing = { enqueued: 0, started: 0, completed: 0, failed: 0, dead: 0, crashed: 0, cancelled: 0, runMs: 0 }
  return { at: new Date(start + minutes * minute).toISOString(), ...nothing, ...more }
}

describe('a scale', () => {
  it('has round ticks, the last at or above the largest value', () => {
    expect(niceTicks(0)).toEqual([0, 1])
    expect(niceTicks(3)).toEqual([0, 1, 2, 3])
    expect(niceTicks(97)).toEqual([0, 50, 100])
    expect(niceTicks(0.3)).toEqual([0, 0.1, 0.2, 0.3])
    expect(niceTicks(1_234_567).at(-1)).toBe(1_500_000)
  })

  it('has ticks at whole seconds, minutes and hours for durations', () => {
    expect(niceDurations(0)).toEqual([0, 1_000])
    expect(niceDurations(8 * minute)).toEqual([0, 2, 4, 6, 8].map((n) => n * minute))
    expect(niceDurations(30 * 60 * minute).map((ms) => ms / minute / 60)).toEqual([0, 12, 24, 36])
  })

  it('has at most as many instants as fit, all of them in its span', () => {
    for (const length of [60, 1_440, 10_080, 525_600].map((n) => n * minute)) {
      const ticks = timeTicks(start + 17_000, start + 17_000 + length, 6)
      expect(ticks.length).toBeGreaterThan(1)
      expect(ticks.length).toBeLessThanOrEqual(7)
      expect(ticks.every((at) => at >= start + 17_000 && at <= start + 17_000 + length)).toBe(true)
    }
  })

  it('draws a line from left to right, with larger values higher', () => {
    expect(linePoints([0, 5, 10], 10, 100, 20)).toBe('0.0,20.0 50.0,10.0 100.0,0.0')
  })
})

describe('a history on the page', () => {
  const hour = rangeOf('1h')

  it('is read whole once, and then from its last points on', () => {
    const now = start + 60 * minute
    expect(askedFrom(hour, [], now)).toBe(start)
    expect(askedFrom(hour, [point(0), point(58)], now)).toBe(start + 56 * minute)
    expect(askedFrom(hour, [point(-500)], now)).toBe(start)
    expect(historyRanges.map(({ step }) => step)).toEqual(['minute', 'minute', 'minute', 'hour'])
    expect(rangeOf('nonsense')).toBe(historyRanges[0])
  })

  it('replaces known points by new ones, and drops points that are too old', () => {
    const known = [point(0), point(58, { completed: 1 }), point(59)]
    const merged = mergedPoints(hour, known, [point(58, { completed: 7 }), point(59), point(60)], start + 61 * minute)

    expect(merged.map(({ at, completed }) => [at.slice(11, 16), completed])).toEqual([
      ['00:58', 7],
      ['00:59', 0],
      ['01:00', 0],
    ])
  })

  it('is shown in a few bins: counts add up, gauges show their maximum, and nothing if nobody measured', () => {
    const points = [
      point(0, { completed: 1, failed: 1, runMs: 30, gauges: { lagMs: 5, waiting: 1, running: 1 } }),
      point(1, { completed: 1, runMs: 30, gauges: { lagMs: 9, waiting: 0, running: 2 } }),
      point(2),
    ]

    expect(binned(points, hour, 30)).toMatchObject([
      { at: start, completed: 2, failed: 1, meanRunMs: 20, lagMs: 9, waiting: 1, running: 2 },
      { at: start + 2 * minute, completed: 0, meanRunMs: undefined, lagMs: undefined },
    ])
    expect(binned(points, hour, 240)).toHaveLength(3)
    expect(binned([], hour, 240)).toEqual([])
  })

  it('shows the present counts of the queue in its last point if nobody has measured them', () => {
    const now = { ready: 3, running: 0, lagMs: 9_000 }
    const bins = binned([point(58), point(59, { completed: 1 })], hour, 240)

    expect(withPresent(bins, now)).toEqual([bins[0], { ...bins[1]!, waiting: 3, running: 0, lagMs: 9_000 }])
    expect(withPresent(bins, undefined)).toBe(bins)
    expect(withPresent([], now)).toEqual([])
  })

  it('keeps its last point if it was measured', () => {
    const bins = binned([point(59, { gauges: { lagMs: 5, waiting: 1, running: 1 } })], hour, 240)

    expect(withPresent(bins, { ready: 3, running: 0, lagMs: 9_000 })).toBe(bins)
  })
})

describe('the filter of queues', () => {
  const queue = (name: string, more: Partial<QueueRow> = {}) => ({ name, declared: true, ...more }) as QueueRow
  const queues = [
    queue('mail-eu', { dead: 2 }),
    queue('mail-us', { serving: 0, ready: 1, scheduled: 0 }),
    queue('Orders', { paused: true }),
  ]
  const names = (text: string, kind: string) => filteredQueues(queues, text, kind).map(({ name }) => name)

  it('finds each of its words in the name, in any case', () => {
    expect(names('MAIL', '')).toEqual(['mail-eu', 'mail-us'])
    expect(names('us mail', '')).toEqual(['mail-us'])
    expect(names('orders', 'paused')).toEqual(['Orders'])
    expect(names('', 'dead')).toEqual(['mail-eu'])
    expect(names('', 'unserved')).toEqual(['mail-us'])
    expect(names('', 'of a kind that is not')).toHaveLength(3)
  })
})

describe('the minutes of all queues', () => {
  const spark = (first: number) => ({ enqueued: [first, 1, 9], done: [first, 0, 9], failed: [0, 2, 9] })
  const at = new Date(start + 3 * minute + 20_000).toISOString()

  it('are summed without the present minute, and a queue without a history adds nothing', () => {
    const empty = { enqueued: [], done: [], failed: [] }
    const queues = [spark(3), spark(4), empty].map((one, i) => ({ name: `q${i}`, spark: one }) as unknown as QueueRow)

    expect(summedSparks({ at, queues })).toEqual({
      times: [start + minute, start + 2 * minute],
      ...{ enqueued: [7, 2], done: [7, 0], failed: [0, 4] },
    })
    expect(summedSparks({ at, queues: [] })).toEqual({ times: [], enqueued: [], done: [], failed: [] })
  })
})

describe('the form of a job', () => {
  const sent = (texts: Partial<JobForm>) => bodyText(jobOf({ ...noTexts, ...texts }).job ?? {})

  it('sends the filled-in fields', () => {
    expect(sent({ task: ' send ', input: '{"n":1}', priority: '-3', delay: '5m' })).toEqual(
      '{"task":"send","input":{"n":1},"delay":"5m","priority":-3}',
    )
    expect(sent({ task: 'send', input: 'false' })).toEqual('{"task":"send","input":false}')
  })

  it('sends an integer of 64 bits as it was typed', () => {
    expect(sent({ task: 'send', input: '{"id": 1234567890123456789}' })).toEqual(
      '{"task":"send","input":{"id": 1234567890123456789}}',
    )
  })

  it('reports every mistake at its field', () => {
    const { job, mistakes } = jobOf({ ...noTexts, input: '{', score: 'high' })

    expect(job).toBeUndefined()
    expect(mistakes.map(({ path }) => path)).toEqual(['task', 'input', 'score'])
  })
})

const folder = join(root, 'dist/web/page')
const built = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : []
/** Scripts and styles were compressed. */
const files = built.map((file) => file.replace(/\.gz$/, ''))
const read = (file: string) =>
  built.includes(file) ? readFileSync(join(folder, file)) : gunzipSync(readFileSync(join(folder, `${file}.gz`)))

it('are built: run `npm run build:page`', () => {
  expect(files).toContain('index.html')
})

/** The scripts and styles that the browser has loaded once this one runs. */
function loadedWith(file: string, loaded = new Set<string>()): Set<string> {
  if (loaded.has(file)) return loaded
  loaded.add(file)
  const imports = read(file)
    .toString()
    .matchAll(/(?:\bfrom|\bimport)\s*"\.\/([\w-]+\.js)"/g)
  for (const [, imported] of imports) loadedWith(`assets/${imported}`, loaded)
  return loaded
}

it('are at most 36 KiB of script and style for the first view, and 50 KiB for any', () => {
  const [style] = files.filter((file) => file.endsWith('.css'))
  const [, script] = /src="\.\/(assets\/[\w-]+\.js)"/.exec(read('index.html').toString())!
  const sizeOf = (loaded: Iterable<string>) => [...loaded].reduce((sum, file) => sum + gzipSync(read(file)).length, 0)
  const first = new Set([...loadedWith(script!), style!])
  const views = files.filter((file) => /pages-of-\w+-[\w-]{8}\.js$/.test(file))

  expect(sizeOf(first)).toBeLessThan(36 * 1_024)
  expect(views.length).toBe(3)
  for (const view of views) expect(sizeOf(new Set([...first, ...loadedWith(view)])), view).toBeLessThan(50 * 1_024)
})

it('have a page without inline script and style, whose files all exist and are relative', () => {
  const html = read('index.html').toString()
  const named = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, path]) => path!)

  expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/)
  expect(named.length).toBeGreaterThanOrEqual(3)
  // What the page asks for first is asked for beside its code.
  expect(named.filter((path) => !files.includes(path.replace(/^\.\//, '')))).toEqual(['api/v1/session'])
})

it('have scripts that turn no text into markup, and evaluate none', () => {
  const scripts = files.filter((file) => file.endsWith('.js')).map((file) => read(file).toString())
  // The word stands in Preact itself, which uses it for a prop that the page never gives.
  const own = readdirSync(join(root, 'dashboard/src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.tsx') || file.endsWith('.ts'))
    .map((file) => readFileSync(join(root, 'dashboard/src', file), 'utf8'))

  for (const text of own) expect(text).not.toMatch(/innerHTML|outerHTML|insertAdjacent|document\.write/i)
  for (const text of scripts) expect(text).not.toMatch(/\beval\(|new Function\(|https?:\/\/(?!www\.w3\.org)/)
})
