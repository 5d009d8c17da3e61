/** The reading of a settings file: which values its lines have, and why others are not read. */

import { describe, expect, it } from 'vitest'
import type { PythonValue } from '#src/cli/commands/import/python-value.js'
import { settingsIn } from '#src/cli/commands/import/settings-file.js'

/** By name, and the notes as `line setting: text`. */
function read(text: string) {
  const { settings, notes } = settingsIn(text, 'settings.py')
  return {
    values: Object.fromEntries([...settings].map(([name, { value }]) => [name, value])),
    told: notes.map(({ line, setting = '', text }) => `${line} ${setting}: ${text}`),
  }
}

describe('a Python value', () => {
  const values: readonly [string, PythonValue][] = [
    ["'a'", 'a'],
    ['"it\'s"', "it's"],
    ["'it\\'s'", "it's"],
    ["'a' \"b\" # c'", 'ab'],
    ["'# no comment'", '# no comment'],
    ["'''a'b'''", "a'b"],
    ['""', ''],
    ["r'\\n'", '\\n'],
    ["u'\\u00e9\\x41\\101\\q'", 'éAA\\q'],
    ['1_000', 1_000],
    ['0x10', 16],
    ['-1.5e3', -1_500],
    ['60 * 15', 900],
    ['True', true],
    ['None', null],
    ["('a')", 'a'],
    ["('a',)", ['a']],
    ['[1, [2], ]', [1, [2]]],
    ['()', []],
    ["os.getenv('X')", { variable: 'X' }],
    ["os . environ . get ( 'X' , default = 'y' )", { variable: 'X', otherwise: 'y' }],
    ["getenv('X', None)", { variable: 'X' }],
    ["os.environ['X']", { variable: 'X' }],
    ["int(os.getenv('X', 3))", { variable: 'X', otherwise: 3 }],
    ["int('7')", 7],
    ["os.path.join('a', 'b/', '/c', 'd')", '/c/d'],
    ["os.path.join(os.path.dirname(os.path.dirname(__file__)), 'q')", { below: '../q' }],
    ['EARLIER', 'e'],
  ]
  it.each(values)('is understood: %s', (text, value) => {
    const { values, told } = read(`EARLIER = 'e'\nX = ${text}\n`)
    expect(told).toEqual([])
    expect(values['X']).toEqual(value)
  })

  const odd: readonly [string, RegExp][] = [
    ['', /has no value/],
    ["'a", /has a quote that is not closed/],
    ["'a' + 'b'", /is computed/],
    ["'a' if 1 else 'b'", /is computed/],
    ["os.getenv('X') == 'y'", /is computed/],
    ["os.getenv('X') or 'y'", /is computed/],
    ['2 ** 3', /is computed|form/],
    ["'a' * 3", /is computed/],
    ["'a'; Y = 'b'", /two statements/],
    ["f'{a}'", /formatted/],
    ["b'a'", /is no text/],
    ["'\\N{DASH}'", /has an escape/],
    ["'\\U00110000'", /has a wrong escape/],
    ["'\\xg'", /has an escape/],
    ['0777', /no number/],
    ['1e999', /too large/],
    ['1j', /is computed/],
    ["{'a': 1}", /form that is not read/],
    ["''SECRET KEY", /is computed/],
    ['UNKNOWN', /a name whose value is not known/],
    ['constructor', /a name whose value is not known/],
    ['toString()', /calls a function, and no Python is run/],
    ['os.getenv(NAME)', /a name whose value is not known/],
    ["os.getenv('X', ['y'])", /arguments that are not read/],
    ["os.path.join(os.getenv('X'), 'y')", /arguments that are not read/],
    ["int('many')", /arguments that are not read/],
    [`${'('.repeat(4_000)}`, /is not closed/],
    [`${'('.repeat(40)}1${')'.repeat(40)}`, /nested more than 16 deep/],
    [`'${'a'.repeat(5_000)}'`, /longer than 4096 characters/],
    ['1)', /closes a bracket that is not open/],
    ["'''a", /is not closed: nothing from here to the end/],
    ["\\\n'a'", /goes on over 2 lines/],
    ["(\n'a',\n)", /goes on over 3 lines/],
    ["'''a\nb'''", /goes on over 2 lines/],
    ["'a\\\nb'", /goes on over 2 lines/],
  ]
  it.each(odd)('is reported with its line and the reason if it is not understood: %j', (text, why) => {
    const { values, told } = read(`X = 'before'\nX = ${text}`)
    // That of before is not true any more.
    expect(values).toEqual({})
    expect(told).toEqual([expect.stringMatching(/^2 X: /)])
    expect(told[0]).toMatch(why)
  })
})

describe('a settings file', () => {
  it('is read on after a line that is not understood', () => {
    const { values, told } = read(
      "\ufeffA = 'x\r\nB = (1,\r\n2)\rC = 3\n'''of\nmany\nlines'''\n# D = 4\nE = 5 # 6\n".slice(1),
    )
    expect(values).toEqual({ C: 3, E: 5 })
    expect(told.map((note) => note.split(':')[0])).toEqual(['1 A', '2 B'])
  })

  it('uses the last of several lines for a setting', () => {
    expect(read("A = 'x'\nB = A\nA = 'y'\n").values).toEqual({ A: 'y', B: 'x' })
  })

  it.each([
    ['if DEBUG:\n    A = 2', '2 A', 'block that begins in line 1'],
    ['if DEBUG: A = 2', '1 A', 'block that begins in line 1'],
    ['try:\n    from local import *\nexcept ImportError:\n    pass', '2 ', 'takes settings from the module local'],
    ['if DEBUG:\n  if X:\n    A = 2', '3 A', 'block that begins in line 1'],
    ['if DEBUG:\n  pass\nelse:\n  A = 2', '4 A', 'block that begins in line 3'],
    ['with x as y:\n  A, B = 1, 2', '2 A', 'block'],
    ['  A = 2', '1 A', 'indented, but not in a block'],
  ])('leaves the contents of a block unread, and keeps earlier settings: %j', (text, place, why) => {
    const { values, told } = read(`A = 1\n${text}\n`)
    const [line, name] = place.split(' ')
    expect(values).toMatchObject({ A: 1 })
    expect(told[0]).toMatch(new RegExp(`^${Number(line) + 1} ${name}: .*`))
    expect(told[0]).toContain(why.replace(/line (\d)/, (_, n: string) => `line ${Number(n) + 1}`))
  })

  it.each(['A, B = 1, 2', 'A += 1', 'del A', 'A = B = 2', "x(); A = '2'"])(
    'drops a setting that an unread line changes: %s',
    (text) => {
      const { values, told } = read(`A = 1\n${text}\n`)
      expect(values).toEqual({})
      expect(told[0]).toMatch(/^2 /)
    },
  )

  it.each([
    'import os, sys',
    'from os import environ',
    'from datetime import timedelta',
    'pass',
    '"a docstring"',
    'def f():\n    A = 2',
    'class C(Base):\n    A = 2',
    '@decorated\ndef f(): A = 2',
    'lower = compute()',
  ])('reports nothing about a line that sets no setting: %j', (text) => {
    expect(read(`A = 1\n${text}\n`)).toEqual({ values: { A: 1 }, told: [] })
  })

  it.each(['from base import *', 'from base import AWS_REGION', 'load(globals())'])(
    'reports a line that may set others: %s',
    (text) => {
      expect(read(`${text}\n`).told).toEqual([expect.stringMatching(/^1 : /)])
    },
  )
})
