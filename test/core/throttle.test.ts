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
