/** Ids: which are one, and that new ones grow whatever the clock does. */
import { describe, expect, it } from 'vitest'
import type { Clock } from '#src/core/platform/clock.js'
import { createIdSource, idOf, isJobId, isQueueName, isTaskName, orderedIdOf } from '#src/core/values/ids.js'

/** A clock that shows these times in turn, then the last one for ever. */
function clockOf(...times: number[]): Clock {
  let at = 0
  return { now: () => times[Math.min(at++, times.length - 1)]!, mono: () => 0 }
}

function take(clock: Clock, count: number): string[] {
  const next = createIdSource(clock)
  return Array.from({ length: count }, next)
}

function expectGrowing(ids: readonly string[]): void {
  for (let i = 1; i < ids.length; i += 1) if (ids[i]! <= ids[i - 1]!) expect(ids[i]).toBe(`above ${ids[i - 1]}`)
  expect(new Set(ids).size).toBe(ids.length)
}

const digits = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const msOf = (id: string) => [...id.slice(0, 10)].reduce((ms, digit) => ms * 32 + digits.indexOf(digit), 0)

describe('new ids', () => {
  it('are ULIDs that begin with the time', () => {
    const at = Date.UTC(2026, 1, 28)
    for (const id of take(clockOf(at), 2_000)) {
      expect(id).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/)
      expect(msOf(id)).toBe(at)
      expect(isJobId(id)).toBe(true)
    }
  })

  it('grow strictly over 100,000 while the clock stands still', () => {
    const ids = take(clockOf(1_000), 100_000)

    expectGrowing(ids)
    // 32,768 to a millisecond: the source is 3 ms ahead at the end.
    expect(msOf(ids.at(-1)!)).toBe(1_003)
  })

  it('grow strictly while the clock runs', () => {
    let ms = 0
    expectGrowing(take({ now: () => (ms += 0.01), mono: () => 0 }, 20_000))
  })

  it('grow strictly while the clock goes back, and follow it once it is ahead again', () => {
    const ids = take(clockOf(5_000, 4_000, 3_000, 6_000, 1), 20_000)

    expectGrowing(ids)
    expect(ids.slice(0, 4).map(msOf)).toEqual([5_000, 5_000, 5_000, 6_000])
  })

  it('keep their form on a clock with fractions', () => {
    expect(take(clockOf(1_000.25, 1_000.75, 1_001.5), 3).map(msOf)).toEqual([1_000, 1_000, 1_001])
  })

  it('differ between two sources at the same time', () => {
    expect(new Set([...take(clockOf(1), 1_000), ...take(clockOf(1), 1_000)]).size).toBe(2_000)
  })
})

describe.each<[string, (given: unknown) => boolean, string[], unknown[]]>([
  [
    'a job id',
    isJobId,
    [
      'a',
      'x'.repeat(256),
      'é'.repeat(128),
      '😀'.repeat(64),
      '{braces}:and/slashes?',
      '\r\n\t',
      '__proto__',
      ' ',
      '\u202e',
    ],
    [
      ...['', 'x'.repeat(257), 'é'.repeat(129), '😀'.repeat(65), 'a\0b', '\ud83d', '\ude00x', 'x'.repeat(10_240)],
      ...[5, null, undefined, ['a'], new String('a')],
    ],
  ],
  [
    'a queue name',
    isQueueName,
    ['default', 'Q', '0', 'a.b_c-d', 'x'.repeat(80), 'constructor'],
    [
      ...['', 'x'.repeat(81), '.hidden', '..', '-a', '_a', 'a b', 'a/b', 'a:b', '{a}', 'é', 'a\n', 'a\0'],
      ...[5, undefined],
    ],
  ],
  [
    'a task name',
    isTaskName,
    ['send-email', 'Email versenden é', 'a/b:c', 'x'.repeat(200)],
    ['', 'x'.repeat(201), 'a\nb', 'a\0', '\u007f', 5, undefined],
  ],
])('%s', (_, isValid, valid, invalid) => {
  it.each(valid.map((one) => [one]))('may be %j', (given) => {
    expect(isValid(given)).toBe(true)
  })

  it.each(invalid.map((one) => [one]))('may not be %j', (given) => {
    expect(isValid(given)).toBe(false)
  })
})

describe('the id of an ordered job', () => {
  it.each([
    ['42', '42'],
    [42, '42'],
    [-1.5, '-1.5'],
    [0, '0'],
    [-0, '0'],
    [Number.MAX_SAFE_INTEGER, '9007199254740991'],
    [1e21, '1e+21'],
  ])('%o is %j', (given, id) => {
    expect(orderedIdOf(given)).toBe(id)
  })

  it.each([
    [''],
    ['a\0b'],
    [Number.NaN],
    [Infinity],
    [-Infinity],
    [5n],
    [true],
    [null],
    [undefined],
    [[1]],
    [new Date()],
  ])('%o is refused', (given) => {
    expect(orderedIdOf(given)).toBeUndefined()
  })
})

describe('an id made from text', () => {
  const long = `https://a.example/search?q=${'x'.repeat(300)}`

  it('is the text itself if that is a valid id', () => {
    for (const text of ['a', 'https://a.example/1', 'x'.repeat(256), '\u{1F600}'.repeat(64)])
      expect(idOf(text)).toBe(text)
  })

  it('is always the same, begins like the text, and is valid', () => {
    expect(idOf(long)).toBe(`${long.slice(0, 229)}~KCDN957DSK48KG54S4EC87D00M`)
    for (const text of [long, '\u{1F600}'.repeat(100), `a\0${'ä'.repeat(500)}`, 'a\0b']) {
      expect(isJobId(idOf(text))).toBe(true)
      expect(idOf(text)).toBe(idOf(text))
    }
  })

  it('differs for another text', () => {
    const texts = Array.from({ length: 1_000 }, (_, i) => `${long}${i}`)
    expect(new Set(texts.map(idOf)).size).toBe(1_000)
  })

  it.each(['', '\ud83d', 7, undefined])('is refused for %o', (text) => {
    expect(() => idOf(text as string)).toThrow(/idOf\(\) expects a text/)
  })
})
