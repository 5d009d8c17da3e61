/** The codec: what comes back, how it is stored, and what cannot be. */

import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { maxDepth, payloadBytes } from '#src/core/values/codec.js'
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
