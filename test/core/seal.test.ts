/** The seal: what opens, and that nothing else does. */

import { createCipheriv, hkdfSync } from 'node:crypto'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { millrace } from 'millrace'
import { describe, expect, it } from 'vitest'
import { ConfigError, type ConfigIssue } from '#src/core/errors.js'
import { type JobPart, noSeal } from '#src/core/packing/seal.js'
import { sealKeysOf } from '#src/core/packing/seal-options.js'
import { newKey, oldKey, otherKey, sealOf } from './seal-keys.js'
import { refusal } from './values/codec-values.js'

const owner = { queue: 'mails', id: 'job-1', task: 'send' }
const chain = 'json+sealed'
const seal = sealOf({ '2026-11': newKey })
const secret = '{"iban":"DE02 1203 0000 0000 2020 51"}'
const sealed = seal.seal(secret, 'payload', chain, owner)

describe('a sealed payload', () => {
  it('opens as the original text or bytes', () => {
    const parts: JobPart[] = ['payload', 'meta', 'ordered payload', 'ordered meta', 'result', 'checkpoint']
    const payloads = fc.oneof(fc.string({ unit: 'grapheme' }), fc.uint8Array())
    fc.assert(
      fc.property(payloads, fc.constantFrom(...parts), fc.string({ minLength: 1 }), (payload, part, id) => {
        const place = { ...owner, id }
        const back = seal.open(seal.seal(payload, part, chain, place), part, chain, place)
        expect(typeof back).toBe(typeof payload)
        expect(Buffer.from(back as string)).toEqual(Buffer.from(payload as string))
      }),
    )
  })

  it('reveals only its length and the id of its key', () => {
    expect(Buffer.from(sealed).includes('iban')).toBe(false)
    expect(Buffer.from(sealed).includes('2026-11')).toBe(true)
    expect(sealed).toHaveLength(3 + '2026-11'.length + 12 + secret.length + 16)
  })

  it('has different bytes each time, except for the payload of an ordered job, which must merge', () => {
    for (const part of ['payload', 'meta', 'ordered meta', 'result', 'checkpoint'] as const)
      expect(seal.seal(secret, part, chain, owner)).not.toEqual(seal.seal(secret, part, chain, owner))
    const ordered = (payload: string, id = 'a', keys = { '2026-11': newKey }) =>
      sealOf(keys).seal(payload, 'ordered payload', chain, { queue: 'any', id, task: 'any' })

    expect(ordered(secret)).toEqual(ordered(secret))
    const nonces = [
      ordered(secret),
      ordered(`${secret} `),
      ordered(secret, 'b'),
      ordered(secret, 'a', { '2026-11': oldKey }),
    ].map((bytes) => Buffer.from(bytes.subarray(10, 22)).toString('hex'))
    expect(new Set(nonces).size).toBe(nonces.length)
  })

  it('is AES-256-GCM under the derived key over its binding, as documented', () => {
    const key = Buffer.from(hkdfSync('sha256', newKey, '', 'millrace seal content', 32))
    const head = Buffer.from([1, 1, 7, ...Buffer.from('2026-11')])
    const meta = Buffer.alloc(40, 3)
    const tag = meta.subarray(-16).toString('hex')
    const bound = Buffer.concat([head, Buffer.from(`payload\0json+sealed\0millrace\0mails\0send\0${tag}\0job-1`)])
    const nonce = Buffer.alloc(12, 9)
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(bound)
    const made = Buffer.concat([head, nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()])

    expect(seal.open(made, 'payload', chain, { ...owner, meta })).toBe(secret)
  })
})

describe('a changed sealed payload', () => {
  it('does not open if any single bit differs', () => {
    const opens = Array.from({ length: sealed.length * 8 }, (_, bit) => {
      const changed = Uint8Array.from(sealed)
      changed[bit >> 3]! ^= 1 << (bit & 7)
      // Of an id of another key it is said which: whoever has it may open it.
      if (seal.lacks(changed) !== undefined) return false
      try {
        seal.open(changed, 'payload', chain, owner)
        return true
      } catch {
        return false
      }
    })

    expect(opens).toHaveLength(sealed.length * 8)
    expect(opens).not.toContain(true)
  })

  it.each<[string, Uint8Array | string]>([
    ['nothing', new Uint8Array()],
    ['text', 'sealed'],
    ['a version and no more', Uint8Array.of(1)],
    ['no key id', Uint8Array.of(1, 0, 0, ...new Uint8Array(40))],
    ['an invalid key id', Uint8Array.of(1, 0, 1, 7, ...new Uint8Array(40))],
    ['another version', Uint8Array.of(2, ...sealed.subarray(1))],
    ['cut off in the tag', sealed.subarray(0, 3 + 7 + 12 + 15)],
    ['a key id that is longer than all', Uint8Array.of(1, 0, 255, ...new Uint8Array(40))],
  ])('is invalid: %s', (_, bytes) => {
    expect(seal.lacks(bytes)).toBeUndefined()
    expect(refusal(() => seal.open(bytes, 'payload', chain, owner))).toMatch(
      /marked as sealed, and is no sealed payload/,
    )
  })

  it('does not open if it is longer or shorter', () => {
    for (const bytes of [sealed.subarray(0, -1), Buffer.concat([sealed, Uint8Array.of(0)])])
      expect(refusal(() => seal.open(bytes, 'payload', chain, owner))).toMatch(/does not open by key '2026-11'/)
  })
})

describe('a sealed payload in another place', () => {
  it.each<[string, () => unknown]>([
    ['another part of its job', () => seal.open(sealed, 'result', chain, owner)],
    ['one of an ordered job', () => seal.open(sealed, 'ordered payload', chain, owner)],
    ['another chain', () => seal.open(sealed, 'payload', 'json+gzip+sealed', owner)],
    ['another queue', () => seal.open(sealed, 'payload', chain, { ...owner, queue: 'bills' })],
    ['another task', () => seal.open(sealed, 'payload', chain, { ...owner, task: 'erase' })],
    ['with a meta', () => seal.open(sealed, 'payload', chain, { ...owner, meta: sealed })],
    ['another job', () => seal.open(sealed, 'payload', chain, { ...owner, id: 'job-2' })],
    [
      'a queue and id with the border elsewhere',
      () => seal.open(sealed, 'payload', chain, { ...owner, queue: 'mail', id: 's\0job-1' }),
    ],
    [
      'a task and queue with the border elsewhere',
      () => seal.open(sealed, 'payload', chain, { ...owner, queue: 'mail', task: 's\0send' }),
    ],
    [
      'another namespace',
      () => sealOf({ '2026-11': newKey }, { namespace: 'b' }).open(sealed, 'payload', chain, owner),
    ],
    ['another key of that id', () => sealOf({ '2026-11': otherKey }).open(sealed, 'payload', chain, owner)],
  ])('does not open: %s', (_, open) => {
    expect(refusal(open)).toMatch(/^its seal does not open by key '2026-11': it or what belongs to it was changed/)
  })

  it('opens in any queue it is moved to if it belongs to an ordered job, and only under the same id', () => {
    const old = { queue: 'old', id: 'a', task: 'old' }
    const ordered = seal.seal(secret, 'ordered payload', chain, old)

    expect(seal.open(ordered, 'ordered payload', chain, { queue: 'new', id: 'a', task: 'new' })).toBe(secret)
    expect(refusal(() => seal.open(ordered, 'ordered payload', chain, { ...old, id: 'b' }))).toMatch(/not open/)
    expect(refusal(() => seal.open(ordered, 'ordered meta', chain, old))).toMatch(/not open/)
  })
})

describe('seal keys', () => {
  it('that are missing are named by their ids', () => {
    expect(noSeal.lacks(sealed)).toBe('2026-11')
    expect(sealOf({ '2026-10': oldKey }).lacks(sealed)).toBe('2026-11')
    expect(seal.lacks(sealed)).toBeUndefined()
  })

  it('can be rotated: the new one seals, the old one opens what it has sealed', () => {
    const before = sealOf({ '2026-10': oldKey })
    const during = sealOf({ '2026-11': newKey, '2026-10': oldKey })
    const old = before.seal(secret, 'payload', chain, owner)
    const young = during.seal(secret, 'payload', chain, owner)

    expect(during.open(old, 'payload', chain, owner)).toBe(secret)
    expect(seal.open(young, 'payload', chain, owner)).toBe(secret)
    expect(before.lacks(young)).toBe('2026-11')
  })

  it('are copied: the given bytes may be overwritten', () => {
    const given = Uint8Array.from(newKey)
    const copied = sealOf({ '2026-11': given })
    given.fill(0)

    expect(copied.open(sealed, 'payload', chain, owner)).toBe(secret)
    expect(copied.secrets()).toContain(Buffer.from(newKey).toString('hex'))
  })

  it('are not shown by inspect or JSON', () => {
    const shown = [inspect(seal, { depth: 9, showHidden: true, getters: true }), JSON.stringify(seal)].join('\n')
    const texts = ['base64', 'base64url', 'hex'].map((form) => Buffer.from(newKey).toString(form as 'hex'))

    expect(texts.filter((text) => shown.includes(text.slice(0, 12)))).toEqual([])
    expect(shown).not.toContain(inspect(Buffer.from(newKey)).slice(8, 30))
  })
})

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
