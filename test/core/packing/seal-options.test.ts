/** The options of a seal: what is a key, and that no message shows one. */

import { millrace } from 'millrace'
import { describe, expect, it } from 'vitest'
import { ConfigError, type ConfigIssue } from '#src/core/errors.js'
import { sealKeysOf } from '#src/core/packing/seal-options.js'
import { newKey } from './seal-keys.js'

const hex = Buffer.from(newKey).toString('hex')
const base64 = Buffer.from(newKey).toString('base64')

function issuesOf(given: unknown): ConfigIssue[] {
  const issues: ConfigIssue[] = []
  const made = sealKeysOf(given, issues)
  expect(made === undefined).toBe(issues.length > 0)
  return issues
}

describe('a seal key', () => {
  it.each<[string, string | Uint8Array]>([
    ['bytes', newKey],
    ['a buffer', Buffer.from(newKey)],
    ['hex', hex],
    ['hex in capitals', hex.toUpperCase()],
    ['Base64', base64],
    ['Base64 without its end', base64.replace('=', '')],
    ['Base64 for URLs', Buffer.from(newKey).toString('base64url')],
  ])('may be %s', (_, key) => {
    const made = sealKeysOf({ current: 'a', keys: { a: key } }, [])

    expect(Buffer.from(made!.keys.get('a')!)).toEqual(Buffer.from(newKey))
    expect(made).toMatchObject({ current: 'a', only: false })
  })
})

describe('seal options', () => {
  it('may omit the current key, to open sealed values and seal none', () => {
    expect(issuesOf({ keys: { a: newKey } })).toEqual([])
  })

  it.each<[string, unknown, string, RegExp]>([
    ['undefined', undefined, 'seal', /must be \{ current, keys \}/],
    ['a key alone', base64, 'seal', /must be \{ current, keys \}/],
    ['bytes alone', newKey, 'seal', /must be \{ current, keys \}/],
    ['no keys', { current: 'a' }, 'seal.keys', /must have at least one key/],
    ['empty keys', { current: 'a', keys: {} }, 'seal.keys', /must have at least one key/],
    ['a list of keys', { keys: [base64] }, 'seal.keys', /must have at least one key/],
    ['one byte less', { keys: { a: newKey.subarray(1) } }, 'seal.keys.a', /must be 32 random bytes.*got 31 bytes$/],
    ['a passphrase', { keys: { a: 'correct horse' } }, 'seal.keys.a', /got text of 13 characters$/],
    ['16 bytes of hex', { keys: { a: hex.slice(0, 32) } }, 'seal.keys.a', /got text of 32 characters$/],
    ['Base64 of 33 bytes', { keys: { a: `${base64.slice(0, -1)}A` } }, 'seal.keys.a', /got text of 44 characters$/],
    ['a key that is not set', { keys: { a: undefined } }, 'seal.keys.a', /got undefined: is it set where this runs\?$/],
    ['a number', { keys: { a: 5 } }, 'seal.keys.a', /got a number$/],
    ['an unknown current', { current: 'b', keys: { a: newKey } }, 'seal.current', /one of `keys`; there are: a$/],
    ['a current that is a key', { current: base64, keys: { a: newKey } }, 'seal.current', /there are: a$/],
    ['an id with a slash', { keys: { 'a/b': newKey } }, 'seal.keys', /ids of 1 to 32 characters.*place 1 is another$/],
    ['an id that is a key', { keys: { [hex]: '2026-11' } }, 'seal.keys', /the one at place 1 is another$/],
    ['an id that is a key in Base64', { keys: { [base64]: newKey } }, 'seal.keys', /place 1 is another$/],
    ['an unknown option', { keys: { a: newKey }, [base64]: 1 }, 'seal', /has 1 unknown options/],
    ['only and no current', { keys: { a: newKey }, only: true }, 'seal.only', /needs `current`/],
    ['an only that is a word', { current: 'a', keys: { a: newKey }, only: 'yes' }, 'seal.only', /true or false/],
  ])('are refused: %s', (_, given, path, message) => {
    const issues = issuesOf(given)

    expect(issues).toMatchObject([{ path, message: expect.stringMatching(message) }])
    expect(JSON.stringify(issues)).not.toMatch(new RegExp(`${hex.slice(0, 8)}|${base64.slice(0, 8)}|correct horse`))
  })

  it('report every mistake at once, like those of a mill', () => {
    const seal = { current: 'b', keys: { a: 'short', 'x y': newKey }, only: 1 as never }
    const making = () => millrace({ store: 'memory:', seal })

    expect(making).toThrow(ConfigError)
    expect(making).toThrow(/seal\.only: [\s\S]*seal\.keys\.a: [\s\S]*seal\.keys: [\s\S]*seal\.current: /)
    expect(() => millrace({ store: 'memory:', seal: undefined as never })).toThrow(/seal: must be \{ current, keys \}/)
  })
})
