/** Selectors by name, and what holds for each of them. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ConfigError } from '#src/core/errors.js'
import { defaultSelector, type SelectorName, selectorNamed, selectorNames } from '#src/selectors/named-selectors.js'
import { seededRandom } from '../seeded-random.js'
import { documented } from './odds.js'

const ofAll: SelectorName[] = ['highest-first', 'highest-first-lottery', 'reduced-lottery', 'sequential', 'lag']
const ofOne: SelectorName[] = ['random', 'lottery']

const anyQueues = fc.uniqueArray(
  fc.record(
    {
      name: fc.string({ minLength: 1, maxLength: 8 }),
      weight: fc.integer({ min: 1, max: 100 }),
      headAgeMs: fc.nat(100_000),
    },
    { requiredKeys: ['name', 'weight'] },
  ),
  { selector: (queue) => queue.name, maxLength: 30 },
)

describe('selectorNamed', () => {
  it('knows the eight rules', () => {
    expect(selectorNames).toEqual([
      'random',
      'lottery',
      'highest-first',
      'highest-first-lottery',
      'lottery-lottery',
      'reduced-lottery',
      'sequential',
      'lag',
    ])
    expect(defaultSelector).toBe('reduced-lottery')
  })

  it.each(['reduced', 'Lottery', '', 'constructor', '__proto__', undefined])(
    'refuses %j and lists the known ones',
    (name) => {
      const refused = () => selectorNamed(name as SelectorName)

      expect(refused).toThrow(ConfigError)
      expect(refused).toThrow(
        /^worker is not valid:\n {2}selector: must be one of random, lottery, .*lag, or a function; got/,
      )
    },
  )

  it('creates a new one for each worker, so that positions are not shared', () => {
    const first = selectorNamed('sequential')
    const second = selectorNamed('sequential')
    const random = seededRandom(1)

    expect(first(documented, random)[0]).toBe('high')
    expect(first(documented, random)[0]).toBe('default')
    expect(second(documented, random)[0]).toBe('high')
  })

  it('asks for heads only if the rule needs them', () => {
    expect(selectorNames.filter((name) => selectorNamed(name).needsHeads)).toEqual(['lag'])
  })
})

describe.each(selectorNames)('%s', (name) => {
  it('names only known queues, each at most once, and leaves the candidates unchanged', () => {
    fc.assert(
      fc.property(anyQueues, fc.integer(), (queues, seed) => {
        const given = queues.map((queue) => Object.freeze(queue))
        const order = selectorNamed(name)(Object.freeze(given), seededRandom(seed))

        expect(new Set(order).size).toBe(order.length)
        for (const chosen of order) expect(given.map((queue) => queue.name)).toContain(chosen)
        if (ofAll.includes(name)) expect(order).toHaveLength(given.length)
        if (ofOne.includes(name)) expect(order).toHaveLength(Math.min(given.length, 1))
        if (given.length > 0) expect(order.length).toBeGreaterThan(0)
      }),
      { seed: 8, numRuns: 200 },
    )
  })

  it('gives the same orders for the same seed', () => {
    const run = () => {
      const selector = selectorNamed(name)
      const random = seededRandom(77)
      return Array.from({ length: 50 }, () => selector(documented, random))
    }

    expect(run()).toEqual(run())
  })

  it('handles the smallest and the largest random number', () => {
    for (const number of [0, 1 - 2 ** -53]) {
      const order = selectorNamed(name)(documented, () => number)
      expect(order.length).toBeGreaterThan(0)
    }
  })
})
