import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { defineTask, UnrecoverableError } from 'millrace'
import { describe, expect, it } from 'vitest'
import * as errors from '#src/core/errors.js'
import { hasCode, StoreUnavailableError } from '#src/core/errors.js'
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
