import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { defineTask } from 'millrace'
import { describe, expect, it } from 'vitest'
import * as errors from '#src/core/errors.js'
import { hasCode, StoreUnavailableError, UnrecoverableError } from '#src/core/errors.js'
import { messageOf } from '#src/core/messages/describe.js'
import { errorText, errorTextLimit, formatError } from '#src/core/messages/error-text.js'
import { isFatal, onceThere } from '#src/runtime/outage.js'
import { verdictOnFailure } from '#src/runtime/run/verdict.js'

/** An error as another copy of the package throws it: of a class of that copy, with the code of ours. */
class StrangeError extends Error {
  readonly code: string
  readonly inDoubt = true

  constructor(code: string) {
    super('thrown by another copy of the package')
    this.code = code
  }
}

describe('an error from another copy of the package', () => {
  it('is final if it is unrecoverable, as one of ours is', () => {
    const task = defineTask({ name: 't', run: () => {} })
    const verdicts = [new UnrecoverableError('never again'), new StrangeError('unrecoverable')].map((error) => ({
      ...verdictOnFailure(task, error, 1, Math.random, () => {}),
      error: undefined,
    }))

    expect(verdicts[1]).toEqual(verdicts[0])
    expect(verdicts[1]).toMatchObject({ kind: 'retry', last: true, reason: 'unrecoverable' })
  })

  it('is retried if its store is unavailable, and ends the worker if it is permanent', async () => {
    let calls = 0
    const reached = onceThere(
      async () => {
        calls += 1
        if (calls === 1) throw new StrangeError('store-unavailable')
        return 'there'
      },
      { isOver: () => false, random: () => 0, failed: () => {} },
    )

    expect(await reached).toBe('there')
    expect(isFatal(new StrangeError('store-corrupt'))).toBe(true)
    expect(isFatal(new StrangeError('store-unavailable'))).toBe(false)
    expect(isFatal(undefined)).toBe(false)
  })

  it('is recognised by its code', () => {
    expect(hasCode(new StrangeError('store-unavailable'), 'store-unavailable')).toBe(true)
    expect(hasCode(new StoreUnavailableError('away'), 'store-unavailable')).toBe(true)
    for (const other of [new Error('away'), new StrangeError('closed'), undefined, null, 'store-unavailable'])
      expect(hasCode(other, 'store-unavailable')).toBe(false)
  })
})

it('no file checks an error of ours by its class, because another copy of the package has another class', () => {
  const folder = join(import.meta.dirname, '../../src')
  const asking = new RegExp(
    `instanceof (${Object.keys(errors)
      .filter((name) => name.endsWith('Error'))
      .join('|')})\\b`,
  )
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))

  expect(files.filter((file) => asking.test(readFileSync(join(folder, file), 'utf8')))).toEqual([])
})

it('every code has a page, which its error names and Node prints', () => {
  const root = join(import.meta.dirname, '../..')
  const codes = [...readFileSync(join(root, 'src/core/errors.ts'), 'utf8').matchAll(/super\(\s*'([a-z-]+)'/g)]
  const pages = codes.map(([, code]) => new errors.MillraceError(code!, 'wrong').page)

  expect(pages.length).toBeGreaterThan(30)
  expect(pages.filter((page) => !existsSync(join(root, page.replace('millrace/', ''))))).toEqual([])
  expect(inspect(new StoreUnavailableError('away'))).toContain(
    "page: 'millrace/docs/troubleshooting/store-unavailable.md'",
  )
})

it.each([
  ['the options of webHandler()', 'are'],
  ['one.mjs and two.mjs', 'are'],
  ["task 'salt and pepper'", 'is'],
])('a ConfigError agrees in number: %s %s', (what, verb) => {
  expect(new errors.ConfigError(what, []).message).toBe(`${what} ${verb} not valid:\n`)
})

const text = (error: unknown) => errorText(error, formatError)

describe('the text of an error', () => {
  it('begins with name and message and shows where it was thrown', () => {
    expect(text(new RangeError('too far'))).toMatch(/^RangeError: too far\n\s+at .*errors\.test\.ts/)
  })

  it('shows its causes, at most four deep', () => {
    const deep = [1, 2, 3, 4, 5].reduceRight<Error | undefined>(
      (cause, n) => new Error(`level ${n}`, { cause }),
      undefined,
    )
    const shown = text(deep)

    expect(shown.match(/level \d/g)).toEqual(['level 1', 'level 2', 'level 3', 'level 4'])
    expect(shown.match(/^caused by: /gm)).toHaveLength(3)
  })

  it('shows ten frames of each error even if more are kept, so that the causes fit', () => {
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 50
    const deep = (n: number, cause?: Error): Error => (n > 0 ? deep(n - 1, cause) : new Error('deep', { cause }))
    const shown = text(deep(40, deep(40, new Error('the reason'))))
    Error.stackTraceLimit = stackTraceLimit

    expect(shown.match(/^\s+at deep /gm)).toHaveLength(20)
    expect(shown).toContain('caused by: Error: the reason')
  })

  it('stops if the causes form a circle', () => {
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
    [{ message: 'refused', code: 42 }, 'refused (code 42)'],
    [{ status: 500, body: { why: 'full' } }, "{ status: 500, body: { why: 'full' } }"],
    [Object.create(null), '[Object: null prototype] {}'],
    ['', '""'],
  ])('for a thrown %o is %j', (thrown, shown) => {
    expect(text(thrown)).toBe(shown)
  })

  it('names every error in an AggregateError with its code, before its causes', () => {
    const refused = Object.assign(new Error('connect ::1:5432'), { code: 'ECONNREFUSED' })
    const shown = text(new AggregateError([refused, new TypeError('B refused')], '', { cause: new Error('why') }))

    expect(shown).toMatch(/error 1 of 2: Error: connect ::1:5432 \(code ECONNREFUSED\)\n\s+at /)
    expect(shown).toMatch(/error 2 of 2: TypeError: B refused\n/)
    expect(shown.indexOf('caused by: Error: why')).toBeGreaterThan(shown.indexOf('B refused'))
  })

  it('names the errors of an AggregateError even if they are nested, circular or many', () => {
    const round = new AggregateError([], 'round')
    round.errors.push(
      new AggregateError([new Error('within'), round], 'inner'),
      ...Array(1_000).fill(new Error('same')),
    )
    const shown = text(round)

    expect(shown).toContain('of: Error: within; AggregateError: round')
    expect(shown.match(/Error: same/g)).toHaveLength(7)
    expect(shown).toContain('and 993 more errors')
  })

  it('has the code of an error after its message, once', () => {
    expect(text(Object.assign(new Error('refused'), { code: 'E_REFUSED' }))).toMatch(
      /^Error: refused \(code E_REFUSED\)\n/,
    )
    expect(text(Object.assign(new Error('E_REFUSED: no'), { code: 'E_REFUSED' }))).toMatch(/^Error: E_REFUSED: no\n/)
    expect(text(new UnrecoverableError('never'))).toMatch(/^UnrecoverableError: never\n/)
  })

  it('survives getters and proxies that throw', () => {
    const refuse = () => {
      throw new Error('no')
    }
    const proxy = new Proxy({}, { get: refuse, has: refuse, getPrototypeOf: refuse })

    expect(text(proxy)).toBe('{}')
    expect(text(Object.defineProperty(new Error('x'), 'stack', { get: refuse }))).toBe('x')
  })

  it('is cut at the limit and stays well-formed, even if the cut halves a character', () => {
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
  ])('that %s is ignored', (_, format) => {
    expect(errorText(new Error('mine'), format as () => string)).toMatch(/^Error: mine\n/)
  })
})

describe('the message for a thrown value', () => {
  it.each([
    [new Error('boom'), 'boom'],
    [new Error(''), 'Error'],
    [Object.assign(new Error(''), { code: 'ECONNREFUSED' }), 'Error (code ECONNREFUSED)'],
    [new AggregateError([new Error('A refused'), new Error('B refused')], ''), 'A refused; B refused'],
    [new AggregateError([new Error('A refused')], 'two of three failed'), 'two of three failed: A refused'],
    [new AggregateError([1, 2, 3, 4, 5].map((n) => new Error(`${n}`))), '1; 2; 3; and 2 more'],
    [{ message: 'like an error' }, 'like an error'],
    [{ status: 500 }, '{ status: 500 }'],
    ['', '""'],
    [undefined, 'undefined'],
  ])('is its own message, and for an AggregateError those of its errors (%#)', (thrown, words) => {
    expect(messageOf(thrown)).toBe(words)
  })

  it('is never empty, whatever was thrown', () => {
    fc.assert(
      fc.property(fc.anything(), (thrown) => {
        for (const value of [thrown, new AggregateError([thrown]), Object.assign(new Error(''), { code: thrown })]) {
          expect(messageOf(value)).not.toBe('')
          expect(text(value)).not.toBe('')
        }
      }),
      { seed: 1 },
    )
  })
})
