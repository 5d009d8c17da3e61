/** The codec: what comes back, how it is stored, and what cannot be. */

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { defineTask } from 'millrace'
import { webHandler } from 'millrace/web'
import { describe, expect, it } from 'vitest'
import { bluequeEnvelope } from '#src/cli/commands/import/import-blueque.js'
import { jsonGiven } from '#src/cli/flags.js'
import { envelopeJobs, plainJob } from '#src/cli/streaming/job-line.js'
import { CodecError } from '#src/core/errors.js'
import { jsonCodec, maxDepth, payloadBytes } from '#src/core/values/codec.js'
import { exactJson, exactJsonOfNode } from '#src/core/values/json.js'
import { readEnvelope } from '#src/stores/sqs/envelope.js'
import { root } from '../../cli/project.js'
import { testMill } from '../../test-mill.js'
import { again, any, decode, encode, key, refusal } from './codec-values.js'

function nested(levels: number, wrap: (inner: unknown) => unknown, core: unknown): unknown {
  let value = core
  for (let i = 0; i < levels; i += 1) value = wrap(value)
  return value
}

describe('round trips', () => {
  it('restore every type, however nested', () => {
    fc.assert(
      fc.property(any, (value) => {
        expect(again(value)).toStrictEqual(value)
      }),
      { seed: 1, numRuns: 600 },
    )
  })

  it('restore a map, a set, a date, a bigint, bytes and odd numbers inside each other', () => {
    const value = {
      when: new Date('2026-02-28T12:00:00.123Z'),
      never: new Date(Number.NaN),
      byDay: new Map<unknown, unknown>([
        [new Date(0), new Set([1n, -0, Number.NaN])],
        [{ a: [] }, new Uint8Array([0, 255])],
      ]),
      list: [undefined, null, -Infinity, new Map([[new Map([[1n, undefined]]), new Set([new Set()])]])],
    }

    expect(again(value)).toStrictEqual(value)
  })

  it('restore undefined alone', () => {
    expect(again(undefined)).toBeUndefined()
  })

  it('restore holes as undefined, and drop undefined fields as JSON does', () => {
    const holed = new Array<number>(3)
    holed[0] = 1
    expect(again(holed)).toStrictEqual([1, undefined, undefined])
    expect(again({ a: undefined, b: 1 })).toStrictEqual({ b: 1 })
  })

  it('restore a key that equals the mark of the wrapper', () => {
    for (const value of [{ $millrace: 1 }, { $millrace: 1, json: 5, types: [['date']] }, { $millrace: new Date(0) }]) {
      expect(again(value)).toStrictEqual(value)
    }
  })

  it('restore a Buffer as a Buffer, other bytes as bytes and an object without a prototype as a plain one', () => {
    expect(again(Buffer.from('é'))).toStrictEqual(Buffer.from('é'))
    expect(again(new Uint8Array([0xc3, 0xa9]))).toStrictEqual(new Uint8Array([0xc3, 0xa9]))
    expect(again(Object.assign(Object.create(null), { a: 1 }))).toStrictEqual({ a: 1 })
  })

  it('store what toJSON of a plain object returns, and call it once', () => {
    expect(again({ toJSON: () => ({ at: new Date(0) }) })).toStrictEqual({ at: new Date(0) })
    expect(again({ a: { toJSON: (name: string) => name } })).toStrictEqual({ a: 'a' })
    const self: object = Object.defineProperty({ a: 1 }, 'toJSON', { value: () => self })
    expect(again(self)).toStrictEqual({ a: 1 })
  })

  it('restore a plain object and a date of another realm', () => {
    const foreign = runInNewContext('({ when: new Date(5), list: [{ a: 1 }] })') as object

    expect(again(foreign)).toStrictEqual({ when: new Date(5), list: [{ a: 1 }] })
  })

  it('read UTF-8 bytes like text', () => {
    expect(decode(Buffer.from('{"a":"é"}'))).toStrictEqual({ a: 'é' })
    expect(payloadBytes('é')).toBe(2)
    expect(payloadBytes(new Uint8Array(3))).toBe(3)
  })
})

describe('the stored text', () => {
  it('is plain JSON if the value is', () => {
    expect(encode({ to: 'a@b.example', n: [1, null, true, { x: 0.5 }] })).toBe(
      '{"n":[1,null,true,{"x":0.5}],"to":"a@b.example"}',
    )
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        fc.pre(!/"__proto__"|"\$millrace"|"constructor"/.test(JSON.stringify(value)))
        // -0 is not JSON: it is read back as 0 by everybody else.
        const json = JSON.parse(JSON.stringify(value))
        expect(JSON.parse(encode(json))).toStrictEqual(json)
      }),
      { seed: 2, numRuns: 500 },
    )
  })

  it('lists the types next to the JSON if the value is not plain JSON', () => {
    expect(encode({ tags: new Set(['a']), paidAt: new Date(0) })).toBe(
      '{"$millrace":1,"json":{"paidAt":"1970-01-01T00:00:00.000Z","tags":["a"]},"types":[["date","paidAt"],["set","tags"]]}',
    )
  })

  it('is the same for every order of the keys', () => {
    fc.assert(
      fc.property(fc.dictionary(key, any, { noNullPrototype: true }), fc.integer(), (object, seed) => {
        const keys = Object.keys(object)
        const turn = keys.length === 0 ? 0 : Math.abs(seed) % keys.length
        const turned = [...keys.slice(turn), ...keys.slice(0, turn)].reverse()

        expect(encode(Object.fromEntries(turned.map((name) => [name, object[name]])))).toBe(encode(object))
      }),
      { seed: 3, numRuns: 300 },
    )
  })
})

describe('the fast path for JSON with sorted keys', () => {
  /** The same value with all keys of all objects in this order. */
  function ordered(value: unknown, inOrder: (names: string[]) => string[]): unknown {
    if (Array.isArray(value)) return value.map((item) => ordered(item, inOrder))
    if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value
    const names = inOrder(Object.keys(value).sort())
    return Object.fromEntries(names.map((name) => [name, ordered((value as Record<string, unknown>)[name], inOrder)]))
  }

  it('writes the same text as for unsorted keys', () => {
    const before = fc.record({ z: fc.oneof(fc.jsonValue(), any), a: fc.jsonValue() })
    fc.assert(
      fc.property(before, (value) => {
        fc.pre(!/"__proto__"/.test(JSON.stringify(Object.keys(value))))
        const sorted = ordered(value, (names) => names)
        expect(encode(sorted)).toBe(encode(ordered(value, (names) => names.reverse())))
        expect(again(sorted)).toStrictEqual(again(value))
      }),
      { seed: 4, numRuns: 500 },
    )
  })

  it('takes no other value: those that JSON.stringify would change are encoded with care, or refused', () => {
    expect(encode([-0, { a: undefined, b: 1 }])).toBe('{"$millrace":1,"json":["-0",{"b":1}],"types":[["number",0]]}')
    expect(encode({ $millrace: 1 })).toBe('{"$millrace":1,"json":{"$millrace":1},"types":[]}')
    expect(encode({ b: 1, c: { a: 1, constructor: 1 } })).toBe('{"b":1,"c":{"a":1,"constructor":1}}')
    expect(encode(Object.assign(['a'], { toJSON: () => 'b' }))).toBe('["a"]')
    const named = { a: 1, [Symbol.toStringTag]: 'Account' }
    expect(refusal(() => encode(named))).toBe('the value is an Account, which cannot be stored')
    // It is still a date inside, and has none of the methods of one.
    const disguised = Object.setPrototypeOf(new Date(0), Object.prototype)
    expect(refusal(() => encode({ disguised }))).toMatch(/'disguised' is an object with a prototype of its own/)
    const hostile = JSON.parse('{"a":1,"constructor":{"prototype":{}}}')
    expect(refusal(() => encode(hostile))).toMatch(/'constructor' is refused/)
    expect(refusal(() => encode(JSON.parse('{"__proto__":1,"a":1}')))).toMatch(/'__proto__' is refused/)
  })
})

describe('depth', () => {
  const wraps: [string, (inner: unknown) => unknown][] = [
    ['arrays', (inner) => [inner]],
    ['objects', (inner) => ({ a: inner })],
    ['sets', (inner) => new Set([inner])],
  ]

  it.each(wraps)('of 100 levels of %s is stored, and 101 levels are refused', (_, wrap) => {
    const deepest = nested(maxDepth, wrap, {})
    expect(again(deepest)).toStrictEqual(deepest)
    expect(again(nested(maxDepth, wrap, new Date(0)))).toBeDefined()

    expect(refusal(() => encode(nested(maxDepth + 1, wrap, {})))).toMatch(
      /nested deeper than 100 levels, or contains itself/,
    )
  })

  it('counts twice for maps, because they are stored as pairs', () => {
    const wrap = (inner: unknown) => new Map([[1, inner]])
    expect(again(nested(50, wrap, {}))).toStrictEqual(nested(50, wrap, {}))
    expect(refusal(() => encode(nested(51, wrap, {})))).toMatch(/nested deeper/)
  })

  it('is limited for stored text too', () => {
    expect(decode('['.repeat(101) + ']'.repeat(101))).toBeDefined()
    for (const levels of [103, 10_000, 1_000_000]) {
      expect(refusal(() => decode('['.repeat(levels) + ']'.repeat(levels)))).toMatch(/nested deeper|not JSON/)
      expect(refusal(() => decode(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`))).toMatch(/nested deeper|not JSON/)
    }
  })

  it('is limited: cycles through any holder are refused', () => {
    const object: Record<string, unknown> = {}
    object.self = [object]
    const map = new Map<unknown, unknown>()
    map.set(1, map)
    const set = new Set<unknown>()
    set.add(set)
    const list: unknown[] = []
    list.push(list)

    for (const cycle of [object, map, set, list]) expect(refusal(() => encode(cycle))).toMatch(/contains itself/)
  })
})

describe('an unsupported value', () => {
  class Money {
    readonly cents = 5
    toJSON() {
      return this.cents
    }
  }
  const refused: [unknown, string][] = [
    [() => 1, "the value at 'a.0.b' is a function, which cannot be stored"],
    [Symbol('x'), "the value at 'a.0.b' is a symbol, which cannot be stored"],
    ...(
      [
        [Promise.resolve(), 'a Promise'],
        [/x/, 'a RegExp'],
        [new Error('x'), 'an Error'],
        [new (class Moment extends Date {})(), 'a Moment'],
        [new (class Lru extends Map {})(), 'a Lru'],
        [new (class Tags extends Set {})(), 'a Tags'],
        [new (class List extends Array {})(), 'a List'],
        [new (class Bytes extends Uint8Array {})(), 'a Bytes'],
        [new WeakMap(), 'a WeakMap'],
        [new Float64Array(1), 'a Float64Array'],
        [new URL('http://a.example/b'), 'a URL'],
        [new Money(), 'a Money'],
        [new (class extends Money {})(), 'an object with a prototype of its own'],
        [Object.create({ inherited: 1 }), 'an object with a prototype of its own'],
      ] as const
    ).map(([value, what]): [unknown, string] => [
      value,
      `the value at 'a.0.b' is ${what}, which cannot be stored: give its fields as a plain object, or its text, or give the mill a codec of yours`,
    ]),
    [
      Object.assign(new Date(0), { zone: 'UTC' }),
      "the value at 'a.0.b' is a Date with a field 'zone' of its own, which would be lost",
    ],
    ['\ud800', "the value at 'a.0.b' is text with a lone surrogate"],
    [{ '\udfff': 1 }, "the value at 'a.0.b' has a key with a lone surrogate"],
  ]

  it.each(refused)('%o is refused with its path', (value, message) => {
    expect(refusal(() => encode({ a: [{ b: value }] }))).toBe(message)
  })

  it("is called 'the value' if it is at the top", () => {
    expect(refusal(() => encode(() => 1))).toBe('the value is a function, which cannot be stored')
  })

  const thrower = () => {
    throw new Error('mine')
  }
  const endless = (): unknown => ({ toJSON: endless, b: { toJSON: endless } })
  it.each([
    ['a getter', Object.defineProperty({}, 'a', { get: thrower, enumerable: true })],
    ['a toJSON', { toJSON: thrower }],
    ['a proxy', new Proxy({}, { ownKeys: thrower })],
    ['a toJSON that never ends', endless()],
  ])('causes a CodecError if %s throws', (_, value) => {
    refusal(() => encode(value))
  })
})

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

const text = '{"id":1234567890123456789,"of":["x",-9007199254740993],"safe":9007199254740991}'
const value = { id: 1234567890123456789n, of: ['x', -9007199254740993n], safe: 9007199254740991 }
const line = { text, number: 1 }
const rules = { task: 'post', key: undefined, newIds: false, options: {}, hash: () => createHash('sha256') }

describe('an integer beyond 2^53 from another language is exact', () => {
  it.each<[string, () => unknown]>([
    ['in an argument of the command line', () => jsonGiven(text, 'the input')],
    ['in a line of NDJSON', () => plainJob(line, rules).input],
    [
      'in a line of an envelope',
      () => envelopeJobs({ text: `{"task":"post","input":${text}}`, number: 1 }, rules, 0)[0]!.input,
    ],
    [
      'in the meta of an envelope',
      () => envelopeJobs({ text: `{"task":"post","input":1,"meta":${text}}`, number: 1 }, rules, 0)[0]!.options.meta,
    ],
    [
      'in the parameters of Blueque',
      () => {
        const task = { id: 'a', record: { parameters: text }, eta: undefined }
        const { envelope } = bluequeEnvelope(task as never, { queue: 'q', task: 'post', isText: false }) as {
          envelope: object
        }
        return envelopeJobs({ text: JSON.stringify(envelope), number: 1 }, rules, 0)[0]!.input
      },
    ],
    [
      'in a message of SQS',
      () => {
        const { payload } = readEnvelope(JSON.stringify({ v: 1, task: 'post', payload: text })) as { payload: string }
        return jsonCodec.decode(payload)
      },
    ],
    [
      'in a body of HTTP',
      async () => {
        const mill = testMill({ tasks: [defineTask({ name: 'post' })] })
        const headers = { 'content-type': 'application/json', 'x-millrace': '1', host: 'localhost' }
        const body = `{"task":"post","id":"a","input":${text}}`
        const request = new Request('http://localhost/api/v1/queues/default/jobs', { method: 'POST', headers, body })
        expect((await webHandler(mill).fetch(request, { address: '127.0.0.1' })).status).toBe(201)
        return (await mill.job('a').record())!.input
      },
    ],
  ])('%s', async (_, read) => {
    expect(await read()).toStrictEqual(value)
  })

  it('in the id that --key names', () => {
    expect(plainJob(line, { ...rules, key: 'id' }).options.id).toBe('1234567890123456789')
  })
})

describe('exact JSON', () => {
  it('takes no text for a number, whatever its content', () => {
    const texts = ['1234567890123456789', '#1234567890123456789', '"1234567890123456789"', '\\1234567890123456789']
    const given = { texts, n: 1 }
    expect(exactJson(JSON.stringify(given))).toEqual(given)
    expect(exactJson(JSON.stringify({ ...given, big: 0 }).replace(':0', ':12345678901234567890'))).toEqual({
      ...given,
      big: 12345678901234567890n,
    })
  })

  it('takes no text with an escaped # for a number, and no key', () => {
    for (const read of [exactJson, exactJsonOfNode]) {
      expect(read(String.raw`{"a":"\u0023123","b":12345678901234567890}`)).toStrictEqual({
        a: '#123',
        b: 12345678901234567890n,
      })
      expect(
        read(String.raw`{"#1" : ["#","##","\u0023x","\u0023\u0023#1","\\#1","\"#1"],"#":[-12345678901234567890]}`),
      ).toStrictEqual({ '#1': ['#', '##', '#x', '###1', '\\#1', '"#1'], '#': [-12345678901234567890n] })
    }
  })

  it.each([['x'], ['\n'], ['"'], ['\\']])('reads a text of 16 million %j beside a long number', (character) => {
    const given = { a: character.repeat(16_000_000), n: 2 ** 60 }
    const json = JSON.stringify(given)
    // Compared without a message: it would hold both texts.
    expect((exactJsonOfNode(json) as typeof given).a === given.a).toBe(true)
    expect((exactJson(json) as typeof given).n).toBe(1152921504606847000n)
  })

  it('leaves fractions, exponents and exact JavaScript numbers unchanged', () => {
    expect(exactJson('[0.1234567890123456789,1e20,9007199254740991,-0,1234567890123456e-3]')).toEqual([
      0.12345678901234568, 1e20, 9007199254740991, -0, 1234567890123.456,
    ])
  })

  it('leaves numbers that Node wrote into a stored payload as numbers', () => {
    const written = [2 ** 60, 2 ** 53, 1e20, -(2 ** 63), 123456789012345680000]
    expect(exactJsonOfNode(JSON.stringify(written))).toEqual(written)
    expect(jsonCodec.decode(jsonCodec.encode(written))).toEqual(written)
  })

  it('reports invalid JSON as JSON.parse does', () => {
    expect(() => exactJson('{"a":12345678901234567890')).toThrow(SyntaxError)
  })
})

it('JSON.parse is used only for text written by Millrace, npm or AWS', () => {
  const own =
    /^(?:stores\/|runtime\/line-channel|web\/access|mill\/base-folder|cli\/streaming\/envelopes|cli\/commands\/init-command|workers\/(?:claim-token|isolated\/child-output)|core\/(?:package-files|job\/job-failures|live-event|values\/json)|store-testing\/)/
  const src = join(root, 'src')
  const found = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && readFileSync(join(src, file), 'utf8').includes('JSON.parse('))
    .filter((file) => !own.test(file))

  expect(found).toEqual([])
})
