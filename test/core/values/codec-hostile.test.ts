/** The codec before hostile text: nothing gets further than a CodecError. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CodecError } from '#src/core/errors.js'
import { again, any, decode, encode, refusal } from './codec-values.js'

describe('a prototype', () => {
  const pollute = [
    '{"__proto__":{"polluted":1}}',
    '{"a":[{"__proto__":{"polluted":1}}]}',
    '{"constructor":{"prototype":{"polluted":1}}}',
    '{"$millrace":1,"json":{"__proto__":{"polluted":1}},"types":[]}',
    '{"$millrace":1,"json":{},"types":[["date","__proto__","polluted"]]}',
    '{"$millrace":1,"json":{},"types":[["date","constructor","prototype","polluted"]]}',
    '{"$millrace":1,"json":{},"types":[["undefined","toString"]]}',
  ]

  it.each(pollute)('is not reached by reading %s', (text) => {
    const before = Object.getOwnPropertyNames(Object.prototype)

    refusal(() => decode(text))

    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before)
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  it('is not stored', () => {
    expect(refusal(() => encode(JSON.parse('{"__proto__":{"polluted":1}}')))).toMatch(/key '__proto__' is refused/)
    expect(refusal(() => encode({ constructor: { prototype: {} } }))).toMatch(/key 'constructor' is refused/)
    expect(refusal(() => encode({ constructor: { toJSON: () => ({ prototype: 1 }) } }))).toMatch(/'constructor'/)
  })

  it('has a name that is harmless as text', () => {
    const value = { constructor: 'Ford', prototype: true, list: ['__proto__'], map: new Map([['__proto__', 1]]) }
    expect(again(value)).toStrictEqual(value)
  })
})

describe('hostile text', () => {
  const wrapped = (json: string, types: string) => `{"$millrace":1,"json":${json},"types":${types}}`
  const hostile = [
    wrapped('{"a":1}', '[["date","a"]]'),
    wrapped('{"a":"x"}', '[["date","a"]]'),
    wrapped('{"a":"1e9"}', '[["number","a"]]'),
    wrapped('{"a":"1.5"}', '[["bigint","a"]]'),
    wrapped('{"a":[1]}', '[["map","a"]]'),
    wrapped('{"a":[[1,2,3]]}', '[["map","a"]]'),
    wrapped('{"a":1}', '[["undefined","a"]]'),
    wrapped('{"a":1}', '[["eval","a"]]'),
    wrapped('{"a":[]}', '[["undefined","a","length"]]'),
    wrapped('{"a":"AAAA"}', '[["bytes","a"],["undefined","a",0]]'),
    wrapped('{"a":[null]}', '[["set","a"],["undefined","a",0]]'),
    wrapped('{"a":[]}', '[["set","a"],["set","a"]]'),
    wrapped('{"a":null}', '[["undefined","b"]]'),
    wrapped('{"a":null}', '[["undefined",{"toString":1}]]'),
    wrapped('{"a":null}', '[["undefined",null]]'),
    wrapped('{"a":null}', '[[]]'),
    wrapped('{"a":null}', '["undefined"]'),
    wrapped('{"a":null}', '[[["undefined"],"a"]]'),
    wrapped('"text"', '[["undefined",0]]'),
    wrapped('{}', '{}'),
    wrapped('{}', 'null'),
    '{"$millrace":1,"types":[]}',
    '{"$millrace":2,"json":1,"types":[]}',
    '{"$millrace":null}',
    '',
    '{',
    'undefined',
    '[1,]',
    "{'a':1}",
    '\u0000',
  ]

  it.each(hostile)('%j is refused', (text) => {
    refusal(() => decode(text))
  })

  it('is refused if its bytes are not UTF-8', () => {
    expect(refusal(() => decode(new Uint8Array([0x22, 0xff, 0x22])))).toMatch(/not JSON/)
  })

  it('made by mutation yields a value or a CodecError, never anything else', () => {
    const texts = fc.sample(any, { seed: 4, numRuns: 200 }).map(encode)
    const piece = fc.constantFrom(
      '"',
      '[',
      ']',
      '{',
      '}',
      ',',
      ':',
      '0',
      '-',
      'null',
      '"length"',
      '"__proto__"',
      '["date"',
      '"undefined"',
      '\\u',
      '\ud800',
      ' ',
    )
    const before = Object.getOwnPropertyNames(Object.prototype)
    fc.assert(
      fc.property(
        fc.constantFrom(...texts),
        fc.array(fc.tuple(fc.nat(), fc.nat(6), piece), { minLength: 1, maxLength: 4 }),
        (original, edits) => {
          let text = original
          for (const [where, cut, insert] of edits) {
            const at = where % (text.length + 1)
            text = text.slice(0, at) + insert + text.slice(at + cut)
          }
          for (const payload of [text, new TextEncoder().encode(text)]) {
            try {
              decode(payload)
            } catch (error) {
              expect(error).toBeInstanceOf(CodecError)
            }
          }
        },
      ),
      { seed: 4, numRuns: 3_000 },
    )
    expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before)
  })

  it('made of wrappers with random notes yields a value or a CodecError', () => {
    const step = fc.oneof(
      fc.constantFrom('a', 'b', 'length', '0', '__proto__', 'constructor', 'toString'),
      fc.integer({ min: -1, max: 2 }),
      fc.jsonValue({ maxDepth: 1 }),
    )
    const type = fc.constantFrom('date', 'map', 'set', 'bigint', 'bytes', 'undefined', 'number', 'toString')
    const note = fc.tuple(type, fc.array(step, { maxLength: 3 })).map(([name, path]) => [name, ...path])
    const json = fc.constantFrom<unknown>({ a: [null, [[1, 2]]], b: { a: 'AAAA' } }, [[null], '1'], null, '5', [])
    fc.assert(
      fc.property(json, fc.array(note, { maxLength: 4 }), (value, types) => {
        try {
          decode(JSON.stringify({ $millrace: 1, json: value, types }))
        } catch (error) {
          expect(error).toBeInstanceOf(CodecError)
        }
      }),
      { seed: 5, numRuns: 3_000 },
    )
  })
})
