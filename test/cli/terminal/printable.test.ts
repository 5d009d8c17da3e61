import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { printable, printableJson, printableLines, shortened, widthOf } from '#src/cli/printable.js'
import { jsonText } from '#src/cli/terminal/terminal.js'

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not be there
const commands = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/

describe('printable text', () => {
  it('escapes terminal control sequences, and leaves the rest alone', () => {
    expect(printable('a\u001b[31mb\u0007\r\n\tc\u009b2J\u202e\u2066d')).toBe(
      'a\\u001b[31mb\\u0007\\r\\n\\tc\\u009b2J\\u202e\\u2066d',
    )
    expect(printable('Grüße, 日本 👍')).toBe('Grüße, 日本 👍')
    expect(printableLines('one\u001b\r\ntwo')).toBe('one\\u001b\ntwo')
  })

  it('escapes invisible characters: two ids that differ look different', () => {
    expect(printable('a\u200bb\u200cc\u200dd\u2060e\u00adf\u034fg\u115fh\u3164i\ufe0fj')).toBe(
      'a\\u200bb\\u200cc\\u200dd\\u2060e\\u00adf\\u034fg\\u115fh\\u3164i\\ufe0fj',
    )
    expect(printable('x\u{e0041}')).toBe('x\\udb40\\udc41')
    expect(printable('👩‍💻 ❤️ 👍🏽')).toBe('👩‍💻 ❤️ 👍🏽')
    const json = jsonText({ id: 'a\u200b\u{e0041}' })
    expect(json).not.toMatch(/[\u200b\u{e0041}]/u)
    expect(JSON.parse(json)).toEqual({ id: 'a\u200b\u{e0041}' })
  })

  it('no text controls the terminal, as text or as JSON, and the JSON keeps its value', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(printable(text)).not.toMatch(commands)
        const json = jsonText({ text })
        expect(json).not.toMatch(commands)
        expect(JSON.parse(json)).toEqual({ text })
      }),
      { seed: 7, numRuns: 500 },
    )
    expect(printableJson('{\n  "a": "\u009b"\n}')).toBe('{\n  "a": "\\u009b"\n}')
  })

  it('shortened text is never wider than requested', () => {
    expect(shortened('abcdef', 6)).toBe('abcdef')
    expect(shortened('abcdefg', 6)).toBe('abcde…')
    expect(shortened('日本語', 4)).toBe('日…')
    expect(shortened('abc', 0)).toBe('')
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(20), (text, most) => {
        expect(widthOf(shortened(text, most))).toBeLessThanOrEqual(most)
      }),
      { seed: 7, numRuns: 500 },
    )
  })

  it('JSON shows record values that JSON lacks', () => {
    const value = { big: 12n, map: new Map([['a', 1]]), set: new Set([1]), bytes: Buffer.from('hi'), at: new Date(0) }
    expect(JSON.parse(jsonText(value))).toEqual({
      big: '12',
      map: [['a', 1]],
      set: [1],
      bytes: 'aGk=',
      at: '1970-01-01T00:00:00.000Z',
    })
    expect(jsonText(undefined)).toBe('null')
  })
})
