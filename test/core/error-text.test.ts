/** Error text: bounded and readable, whatever was thrown. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { errorText, errorTextLimit, formatError } from '#src/core/values/error-text.js'

const text = (error: unknown) => errorText(error, formatError)

describe('the text of an error', () => {
  it('begins with its name and message and shows where it came from', () => {
    expect(text(new RangeError('too far'))).toMatch(/^RangeError: too far\n\s+at .*error-text\.test\.ts/)
  })

  it('shows its causes, four deep at most', () => {
    const deep = [1, 2, 3, 4, 5].reduceRight<Error | undefined>(
      (cause, n) => new Error(`level ${n}`, { cause }),
      undefined,
    )
    const shown = text(deep)

    expect(shown.match(/level \d/g)).toEqual(['level 1', 'level 2', 'level 3', 'level 4'])
    expect(shown.match(/^caused by: /gm)).toHaveLength(3)
  })

  it('shows ten frames of each, also where more are kept, so that its causes are told', () => {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 50
    const deep = (n: number, cause?: Error): Error => (n > 0 ? deep(n - 1, cause) : new Error('deep', { cause }))
    const shown = text(deep(40, deep(40, new Error('the reason'))))
    Error.stackTraceLimit = stackTraceLimit

    expect(shown.match(/^\s+at deep /gm)).toHaveLength(20)
    expect(shown).toContain('caused by: Error: the reason')
  })

  it('ends where causes go round', () => {
    const error = new Error('round')
    error.cause = error

    // The stack names this file, and its folder may be called anything.
    expect(text(error).match(/Error: round/g)).toHaveLength(4)
  })

  it.each([
    ['text', 'text'],
    [undefined, 'undefined'],
    [null, 'null'],
    [5n, '5'],
    [Symbol('s'), 'Symbol(s)'],
    [{ message: 'like an error' }, 'like an error'],
    [Object.create(null), 'an error that cannot be shown'],
  ])('of %o, thrown as it is, is %j', (thrown, shown) => {
    expect(text(thrown)).toBe(shown)
  })

  it('survives getters and proxies that throw', () => {
    const refuse = () => {
      throw new Error('no')
    }
    const proxy = new Proxy({}, { get: refuse, has: refuse, getPrototypeOf: refuse })

    expect(text(proxy)).toBe('an error that cannot be shown')
    expect(text(Object.defineProperty(new Error('x'), 'stack', { get: refuse }))).toBe('x')
  })

  it('is cut at the limit and well-formed, even where the cut halves a character', () => {
    for (const before of [0, 1]) {
      const shown = text({ message: `${'x'.repeat(before)}${'😀'.repeat(errorTextLimit)}` })

      expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(errorTextLimit)
      expect(Buffer.byteLength(shown)).toBeGreaterThan(errorTextLimit - 4)
      expect(shown.isWellFormed()).toBe(true)
    }
  })

  it('is never longer than the limit and always well-formed', () => {
    fc.assert(
      fc.property(fc.anything(), fc.string({ unit: 'binary', maxLength: 6_000 }), (thrown, message) => {
        for (const value of [thrown, new Error(message), { message }]) {
          expect(text(value).length).toBeLessThanOrEqual(errorTextLimit)
          expect(text(value).isWellFormed()).toBe(true)
        }
      }),
      { seed: 1 },
    )
  })
})

describe("a user's own format", () => {
  it('is used, within the limit', () => {
    expect(errorText(new Error('x'), () => 'mine')).toBe('mine')
    expect(errorText(new Error('x'), () => 'y'.repeat(9_999))).toBe(`${'y'.repeat(errorTextLimit - 3)}…`)
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('no')
      },
    ],
    ['gives nothing', () => ''],
    ['gives a promise', async () => 'later'],
  ])('that %s is passed over', (_, format) => {
    expect(errorText(new Error('mine'), format as () => string)).toMatch(/^Error: mine\n/)
  })
})
