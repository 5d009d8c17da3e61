/** The words of a job: its timeline, its log as it is followed, and the form by which it is enqueued again; all pure. */

import { describe, expect, it } from 'vitest'
import { emptyLog, gapLine, linesWith, withNews } from '../../dashboard/src/pages/job/followed-log.js'
import { isShownWhole, type JobDetail } from '../../dashboard/src/pages/job/job-detail.js'
import { spansOf, spanWords, stepsOf } from '../../dashboard/src/pages/job/timeline-steps.js'
import { againForm, againMeta, jsonText, otherInput } from '../../dashboard/src/pages/queue/job-form.js'
import { bytesWords, countOf, countWords, rateWords } from '../../dashboard/src/words/count-words.js'
import { durationWords, shortDuration } from '../../dashboard/src/words/duration-words.js'
import { fieldIn, fieldText } from '../../dashboard/src/words/field-words.js'
import { clockWords, dayWords, fullMoment, momentWords, secondWords } from '../../dashboard/src/words/moment-words.js'
import { safeLines, safeText, shortText } from '../../dashboard/src/words/safe-text.js'

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString()
const now = Date.parse(at(100))

function job(given: Partial<JobDetail>): JobDetail {
  return {
    ...{ id: 'j', task: 't', queue: 'q', state: 'ready', priority: 0, attempt: 1, crashes: 0 },
    ...{ createdAt: at(0), updatedAt: at(0), runAt: at(0) },
    ...given,
  }
}

const told = (given: Partial<JobDetail>) =>
  stepsOf(job(given), now).map(
    ({ name, isReached, note }) => `${isReached ? '●' : '○'} ${name}${note ? `: ${note}` : ''}`,
  )

describe('the timeline of a job', () => {
  it('shows past and coming steps', () => {
    expect(told({})).toEqual(['● Enqueued', '○ Start: when a worker is free', '○ End'])
    expect(told({ state: 'waiting' })).toContain('○ Start: when the jobs that it waits for have ended')
    expect(told({ state: 'scheduled', runAt: at(3_600) })).toEqual([
      ...['● Enqueued', '○ Due', '○ Start: when it is due', '○ End'],
    ])
    expect(told({ state: 'scheduled', expiresAt: at(900), runAt: at(600) }).at(-1)).toBe(
      '○ Expires: if it has not begun by then',
    )
    expect(told({ state: 'running' })).toContain('● Reserved: a worker has it; its handler has not begun')
    expect(told({ state: 'running', startedAt: at(50), progress: { fraction: 0.25 } })).toEqual([
      ...['● Enqueued', '● Started: attempt 1', '○ End: 25 % done'],
    ])
    expect(told({ state: 'completed', startedAt: at(1), finishedAt: at(2) })).toEqual([
      ...['● Enqueued', '● Started: attempt 1', '● Completed'],
    ])
  })

  it('shows failures and crashes, and gives a dead job no attempt that it never had', () => {
    expect(told({ state: 'scheduled', attempt: 3, crashes: 1, runAt: at(200) })).toContain(
      '○ Attempt 3 due: failed twice, its worker died once',
    )
    expect(told({ state: 'dead', attempt: 4, reason: 'max-retries', startedAt: at(9), finishedAt: at(10) })).toEqual([
      ...['● Enqueued', '● Started: for the last time', '● Died: max-retries, failed 4 times'],
    ])
    expect(told({ state: 'cancelled', reason: 'too late', finishedAt: at(1) })).toEqual([
      ...['● Enqueued', '● Cancelled: too late'],
    ])
  })

  it('divides the elapsed time into parts, whatever is missing', () => {
    const words = (given: Partial<JobDetail>) => spansOf(job(given), now).map(spanWords)

    expect(words({ state: 'completed', runAt: at(10), startedAt: at(15), finishedAt: at(75) })).toEqual([
      ...['delayed 10 s', 'waited 5 s', 'ran 1 min'],
    ])
    expect(words({ state: 'completed', finishedAt: at(75) })).toEqual(['waited and ran 1 min 15 s'])
    expect(words({ state: 'running', startedAt: at(40) })).toEqual(['waited 40 s', 'ran 1 min'])
    expect(words({ state: 'scheduled', runAt: at(900) })).toEqual(['delayed 1 min 40 s'])
    expect(words({ attempt: 2, runAt: at(60) })).toEqual(['earlier attempts 1 min', 'waited 40 s'])
  })

  it('separates earlier attempts from the delay of a retry', () => {
    const words = (given: Partial<JobDetail>) => spansOf(job(given), now).map(spanWords)
    const failures = [1, 2, 5].map((second, i) => ({ attempt: i + 1, at: at(second), error: 'refused' }))

    expect(words({ state: 'scheduled', attempt: 2, runAt: at(160), failures: failures.slice(0, 1) })).toEqual([
      ...['earlier attempts 1 s', 'put off 1 min 39 s'],
    ])
    expect(words({ attempt: 4, runAt: at(60), failures })).toEqual([
      ...['earlier attempts 5 s', 'put off 55 s', 'waited 40 s'],
    ])
    expect(
      words({ state: 'running', attempt: 3, runAt: at(4), startedAt: at(4), failures: failures.slice(0, 2) }),
    ).toEqual(['earlier attempts 2 s', 'put off 2 s', 'ran 1 min 36 s'])
    const dead = {
      state: 'dead',
      reason: 'max-retries',
      attempt: 3,
      runAt: at(4),
      finishedAt: at(5),
      failures,
    } as const
    expect(words({ ...dead, startedAt: at(4) })).toEqual(['earlier attempts 2 s', 'put off 2 s', 'ran 1 s'])
    expect(words(dead)).toEqual(['earlier attempts 2 s', 'put off 2 s', 'waited and ran 1 s'])
  })

  it('gives a job that died at once no part at all', () => {
    const words = (given: Partial<JobDetail>) => spansOf(job(given), now).map(spanWords)

    expect(words({ state: 'dead', finishedAt: at(0) })).toEqual([])
  })
})

describe('the log of a followed job', () => {
  it('continues where it was, marks a gap, and starts over after a break of the stream', () => {
    const begun = withNews(emptyLog, { text: 'a\n', isGap: false })
    const more = withNews(begun, { text: 'b\n', isGap: false })
    const gap = withNews(more, { text: 'z\n', isGap: true })
    const again = withNews({ ...gap, isStale: true }, { text: 'y\nz\n', isGap: false })

    expect(gap.text).toBe(`a\nb\n${gapLine}\nz\n`)
    expect(again.text).toBe('y\nz\n')
  })

  it('keeps the end of a long log, from the start of a line', () => {
    let log = emptyLog
    for (let i = 0; i < 350; i += 1) log = withNews(log, { text: `${String(i).padStart(999, '.')}\n`, isGap: false })

    expect(log.text.length).toBeLessThanOrEqual(262_144)
    expect(log.text.split('\n')[0]).toHaveLength(999)
    expect(log.text).toMatch(/\.349\n$/)
  })

  it('is searched regardless of case', () => {
    expect(linesWith('Alpha\nbeta\nALPHABET\n', 'alpha')).toEqual({ lines: ['Alpha', 'ALPHABET'], all: 3 })
    expect(linesWith('', 'x')).toEqual({ lines: [], all: 0 })
  })
})

it('an ordered job is enqueued again with its newest payload under its own id', () => {
  const payloads = [1, 2].map((score) => ({ score, input: { change: score }, meta: { score } }))
  const ordered = job({ id: '42', payloads, payloadCount: 2 })

  expect(againForm(ordered)).toEqual({ task: 't', id: '42', score: '2', input: '{\n  "change": 2\n}' })
  expect(againMeta(ordered)).toEqual({ score: 2 })
})

it('another input is what was typed, and none if the text is empty or as it was', () => {
  const before = jsonText({ at: '2026-01-01T00:00:00.000Z' })
  expect([otherInput(before, before), otherInput('', before), otherInput(' ', '')]).toEqual([{}, {}, {}])
  expect(otherInput('{"id": 1234567890123456789}', before).input?.text).toBe('{"id": 1234567890123456789}')
  expect(otherInput('null', before).input?.text).toBe('null')
  expect(() => otherInput('{', before)).toThrow('is not JSON')
})

it('payloads are shown as they are if the window neither hides nor redacts', () => {
  expect([
    isShownWhole(job({}), false),
    isShownWhole(job({}), true),
    isShownWhole(job({ payloadsHidden: true }), false),
  ]).toEqual([...[true, false, false]])
})

describe('a field as one text', () => {
  it.each([
    ['order', 4711, 'order=4711'],
    ['order', '4711', 'order="4711"'],
    ['paid', true, 'paid=true'],
    ['paid', 'true', 'paid="true"'],
    ['region', 'eu-west', 'region=eu-west'],
    ['sum', 'a=b', 'sum=a=b'],
    ['quoted', '"a"', 'quoted="\\"a\\""'],
    ['none', 'null', 'none=null'],
    ['far', '12345678901234567890', 'far=12345678901234567890'],
    ['empty', '', 'empty='],
  ])('%s of %j is %s, and is read as the same', (name, value, text) => {
    expect(fieldText(name, value)).toBe(text)
    expect(fieldIn(text)).toEqual({ name, value })
  })

  it('needs a name', () => {
    expect([fieldIn(''), fieldIn('order'), fieldIn('=4711')]).toEqual([undefined, undefined, undefined])
  })
})

describe('foreign text', () => {
  it.each([
    ['a bidi override', 'gpj.\u202eexe', 'gpj.\\u202eexe'],
    ['an isolate', 'a\u2066b\u2069', 'a\\u2066b\\u2069'],
    ['a null, a line end and an escape', 'a\0b\nc\u001b[31m', 'a\\u0000b\\u000ac\\u001b[31m'],
    ['a space without width', 'ad\u200bmin', 'ad\\u200bmin'],
    ['a filler that looks like nothing', 'a\u3164', 'a\\u3164'],
    ['a tag beyond four digits', 'a\u{e0041}', 'a\\u{e0041}'],
    ['half a sign', 'a\ud83d', 'a\\ud83d'],
  ])('shows %s as an escape', (_, text, shown) => {
    expect(safeText(text)).toBe(shown)
  })

  it('is unchanged for every script', () => {
    for (const text of ['order-42', 'größe', '注文', 'заказ', '🚀', '<b>&amp;', 'a/b c'])
      expect(safeText(text)).toBe(text)
  })

  it('keeps lines and tabs of a log, and no other invisible characters', () => {
    expect(safeLines('a\tb\r\nc\u202ed\n')).toBe('a\tb\nc\\u202ed\n')
  })

  it('is shortened in the middle if it is long, and never cuts a character', () => {
    expect(shortText('0123456789', 10)).toBe('0123456789')
    expect(shortText('0123456789a', 10)).toBe('01234…789a')
    expect([...shortText('🚀'.repeat(50), 9)]).toHaveLength(9)
  })
})

describe('numbers', () => {
  it('are written in full while they are short', () => {
    expect([0, 999, 12_345, 123_456, 1_234_567].map(countWords)).toEqual(['0', '999', '12,345', '123.5K', '1.2M'])
    expect([99_999, 100_000, 999_949, 999_950, 12_345_678, 1e9, 7.25e13].map(countWords)).toEqual([
      ...['99,999', '100K', '999.9K', '1M', '12.3M', '1B', '72.5T'],
    ])
    expect([countOf(1, 'job'), countOf(1_000, 'job')]).toEqual(['1 job', '1,000 jobs'])
    expect([0.125, 12.34, 4_321].map(rateWords)).toEqual(['0.125', '12.3', '4,321'])
    expect([512, 87_203_840].map(bytesWords)).toEqual(['512 B', '83.2 MiB'])
  })

  it('show durations in at most two units', () => {
    const all = [0, 0.2, 340, 4_234, 59_600, 200_000, 7_380_000, 187_200_000, -5_000]
    expect(all.map(durationWords)).toEqual([
      ...['0 s', '0 s', '340 ms', '4.2 s', '1 min', '3 min 20 s', '2 h 3 min', '2 d 4 h', '−5 s'],
    ])
    expect([0, 340, 4_234, 59_600, 200_000, 86_400_000].map(shortDuration)).toEqual([
      ...['0', '340ms', '4.2s', '1m', '3m', '1d'],
    ])
  })

  it('show instants relative to now', () => {
    const now = Date.UTC(2026, 0, 1)
    expect([0, -400, -5_400, 300_000, -7_400_000].map((away) => momentWords(now + away, now))).toEqual([
      ...['just now', 'just now', '5 s ago', 'in 5 min', '2 h ago'],
    ])
  })

  it('show instants in local time, with the zone', () => {
    const at = new Date(2026, 10, 5, 4, 3, 9)
    const east = -at.getTimezoneOffset()
    const zone = east === 0 ? 'UTC' : expect.stringMatching(/^UTC[+−]\d+(:\d\d)?$/)
    expect([dayWords, clockWords, secondWords].map((words) => words(at.getTime()))).toEqual([
      '5 Nov',
      '04:03',
      '04:03:09',
    ])
    const [, text, told] = /^(.+) (\S+)$/.exec(fullMoment(at.getTime()))!
    expect([text, told]).toEqual(['5 Nov 2026, 04:03:09', zone])
  })
})
