/** Throttles in words, for what stores write down and for what people read. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ThrottleConflictError } from '#src/core/errors.js'
import {
  longestCountedMs,
  refuseOtherThrottle,
  rulesIn,
  ruleText,
  sameRules,
  type Throttle,
  throttleText,
} from '#src/core/queue/throttle.js'
import { throttleOf, throttleSchema } from '#src/core/queue/throttle-options.js'
import { parsed } from '#src/core/values/option-check.js'
import { issuesOf } from '../issues-of.js'
import { anyRules } from '../rules/trial.js'

const rule = { limit: 3, windowMs: 1_000, moderate: false }
const elastic = { limit: 300, windowMs: 3_600_000, moderate: true, elasticBuffer: 5 }
const sites: Throttle = { scope: 'sites', by: 'group', rules: [rule, elastic] }

describe('the text of a rule', () => {
  it('contains all of it', () => {
    expect([rule, { ...rule, moderate: true }, elastic].map(ruleText)).toEqual(['3/1000', '3/1000m', '300/3600000me5'])
  })

  it('is parsed back to the same rule', () => {
    fc.assert(
      fc.property(anyRules, (rules) => {
        const read = rulesIn(rules.map(ruleText).join(' '))
        expect(read).toEqual(rules)
        expect(sameRules(read, rules)).toBe(true)
      }),
      { seed: 6 },
    )
  })
})

describe('a throttle', () => {
  it('has the longest window of its rules', () => {
    expect(longestCountedMs([elastic, rule])).toBe(3_600_000)
  })

  it('is described in words, without its defaults', () => {
    expect(throttleText('mail', { scope: 'mail', by: 'queue', rules: [rule] })).toBe('3 in 1s')
    expect(throttleText('mail', sites)).toBe(
      "3 in 1s and 300 in 1h, moderate, elastic with a buffer of 5, by group, scope 'sites'",
    )
  })

  it('is accepted if none or the same one is stored', () => {
    expect(() => refuseOtherThrottle('mail', undefined, sites)).not.toThrow()
    expect(() => refuseOtherThrottle('mail', sites, structuredClone(sites))).not.toThrow()
  })

  it('is refused if a different one is stored, even by one number, and both are named', () => {
    const others: Throttle[] = [
      { ...sites, scope: 'other' },
      { ...sites, by: 'queue' },
      { ...sites, rules: [rule] },
      { ...sites, rules: [elastic, rule] },
      { ...sites, rules: [{ ...rule, limit: 4 }, elastic] },
      { ...sites, rules: [{ ...rule, windowMs: 1_001 }, elastic] },
      { ...sites, rules: [{ ...rule, moderate: true }, elastic] },
      { ...sites, rules: [rule, { ...elastic, elasticBuffer: 6 }] },
    ]
    for (const asked of others) {
      const refused = () => refuseOtherThrottle('mail', sites, asked)
      expect(refused).toThrow(ThrottleConflictError)
      expect(refused).toThrow(throttleText('mail', sites))
      expect(refused).toThrow(throttleText('mail', asked))
    }
  })

  it('that is refused says how to change the stored one', () => {
    expect(() => refuseOtherThrottle('mail', sites, { ...sites, rules: [rule] })).toThrow(
      '`millrace queues throttle mail --set …`',
    )
  })
})

function throttle(options: unknown): Throttle {
  return throttleOf('mail', parsed(throttleSchema, options, 'the throttle'))
}

/** The issues of options that are refused, as `path: message`. */
const mistakes = (options: unknown) => issuesOf(() => throttle(options))

const ten = { limit: 10, window: '1m' }

describe('the throttle of a queue', () => {
  it('counts by queue, in its own scope and not evenly, by default', () => {
    expect(throttle(ten)).toEqual({
      scope: 'mail',
      by: 'queue',
      rules: [{ limit: 10, windowMs: 60_000, spreadMs: 1_000, moderate: false }],
    })
  })

  it('has the given options', () => {
    expect(throttle({ ...ten, moderate: true, elastic: { buffer: 3 }, by: 'group', scope: 'api' })).toEqual({
      scope: 'api',
      by: 'group',
      rules: [{ limit: 10, windowMs: 60_000, spreadMs: 1_000, moderate: true, elasticBuffer: 3 }],
    })
  })

  it('with several windows is the same in any order of the windows', () => {
    const perSecond = { limit: 3, window: 1_000, scope: 'api' }
    const perHour = { limit: 300, window: '1h', scope: 'api' }

    expect(throttle([perHour, perSecond])).toEqual(throttle([perSecond, perHour]))
    expect(throttle([perHour, perSecond]).rules.map(({ windowMs }) => windowMs)).toEqual([1_000, 3_600_000])
  })

  it('accepts the smallest and the largest numbers', () => {
    expect(mistakes({ limit: 1, window: 1 })).toEqual([])
    expect(mistakes({ limit: 1_000_000, window: '1w' })).toEqual([])
    expect(mistakes({ ...ten, moderate: true, elastic: { buffer: 9 } })).toEqual([])
  })

  it.each<[string, unknown, string[]]>([
    ['a limit of 0', { ...ten, limit: 0 }, ['limit: must be a whole number from 1 to 1000000; got 0']],
    [
      'a limit above a million',
      { ...ten, limit: 1_000_001 },
      ['limit: must be a whole number from 1 to 1000000; got 1000001'],
    ],
    ['half a limit', { ...ten, limit: 1.5 }, ['limit: must be a whole number from 1 to 1000000; got 1.5']],
    ['no limit', { window: '1s' }, ['limit: is missing']],
    ['no window', { limit: 1 }, ['window: is missing']],
    ['a window of 0', { limit: 1, window: 0 }, ['window: must be at least 1 ms; got 0']],
    ['a window of years', { limit: 1, window: '367d' }, ['window: must be at most 366d; got "367d"']],
    [
      'a buffer below 0',
      { ...ten, moderate: true, elastic: { buffer: -1 } },
      ['elastic.buffer: must be a whole number of at least 0; got -1'],
    ],
    ['elastic without its buffer', { ...ten, moderate: true, elastic: {} }, ['elastic.buffer: is missing']],
    [
      'an unknown option',
      { ...ten, burst: 5 },
      ['burst: is not an option; check its spelling: there are limit, window, moderate, elastic, by, scope'],
    ],
    [
      'a scope with a space',
      { ...ten, scope: 'a b' },
      [expect.stringContaining('scope: must be ') as unknown as string],
    ],
    [
      'no windows at all',
      [],
      [expect.stringContaining('(options): must name at least one window, or be left out; got ') as unknown as string],
    ],
  ])('is refused with %s', (_, options, expected) => {
    expect(mistakes(options)).toEqual(expected)
  })

  it('is refused if it is elastic but not even, or has nothing to catch up with', () => {
    const [uneven] = mistakes({ ...ten, elastic: { buffer: 0 } })
    expect(uneven).toContain('`elastic` needs `moderate: true`: only an even tempo can fall behind')
    const [idle] = mistakes({ ...ten, moderate: true, elastic: { buffer: 10 } })
    expect(idle).toContain('`elastic.buffer` must be less than `limit`, or there is nothing to catch up with')
  })

  it('with several windows is refused if two are equal, or if they differ in scope', () => {
    const [same] = mistakes([ten, { limit: 5, window: 60_000 }])
    expect(same).toContain('must have different windows: of two with the same one only the lower limit would count')
    const one = 'must have one `scope` for all windows'
    expect(mistakes([ten, { limit: 5, window: 1, scope: 'api' }])[0]).toContain(one)
    expect(mistakes([ten, { limit: 5, window: 60_000, by: 'group' }])).toEqual([])
    expect(mistakes([ten, { limit: 5, window: 1, by: 'queue' }])).toEqual([])
  })

  it('reports each mistake in several windows once, and names the window', () => {
    expect(mistakes([ten, { limit: 0, window: 'x' }]).map((issue) => issue.split(':')[0])).toEqual([
      '1.limit',
      '1.window',
    ])
  })
})
