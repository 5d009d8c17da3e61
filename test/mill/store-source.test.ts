import { inspect } from 'node:util'
import { millrace } from 'millrace'
import { describe, expect, it } from 'vitest'

describe('an unusable store address', () => {
  it.each([
    'valkey://:pa/sesame@h:1',
    'Redis://u:p@sesame@h',
    ':sesame@h:6379',
    'redis//:sesame',
    'redis:/:sesame',
    'rediss//u:sesame/0',
    'valkey://:sesame',
    'valkey:sesame',
    ':sesame',
    'memory::sesame',
    'redis://:sesame',
    'redis://h/sesame',
    'redis://h?sesame',
    'redis+cluster://h/sesame',
    '"redis://:sesame@h"',
    'memory://:sesame@h',
    'redis://:sesame@h/x',
    'redis://:ses%ame@h',
  ])('is refused without showing its password: %s', (store) => {
    let error: unknown
    try {
      millrace({ store })
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({ code: 'config-invalid' })
    expect(inspect(error)).not.toMatch(/ses%?ame/)
  })
})

it('the store of a mill is printed without its password in every way', () => {
  const mill = millrace({ store: 'redis://user:sesame@127.0.0.1:1/2' })
  expect(mill.store.text).toBe('redis://user@127.0.0.1:1/2')
  expect(
    inspect(mill, { depth: 9, showHidden: true }) + inspect(mill.store) + JSON.stringify(mill.store),
  ).not.toContain('sesame')
})

it.each(['sqlite://jobs.db', 'sqlite://.millrace/jobs.db', 'sqlite:///srv/app/jobs.db'])(
  '%s is refused as ambiguous between relative and absolute',
  (store) => {
    expect(() => millrace({ store })).toThrow(
      `'sqlite:.millrace/jobs.db' is relative, 'sqlite:/srv/app/jobs.db' absolute; got '${store}'`,
    )
  },
)
