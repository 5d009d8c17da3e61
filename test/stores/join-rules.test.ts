/** The rules of joins: which member of many has an id. */

import { expect, it } from 'vitest'
import { memberId, numberOf } from '#src/stores/rules/join-rules.js'

it.each([0, 1, 9, 10, 4_096, 99_999])('the id of member %i names it', (number) => {
  const set = { ids: 'import.2', isMany: true }
  expect(numberOf(set, memberId(set, number))).toBe(number)
})

it.each([
  'import',
  'import.',
  'import.x',
  'import.07',
  'import.00',
  'import.-1',
  'import.1.0',
  'imports.1',
  'export.1',
  '.1',
])('no member has the id %j', (id) => expect(numberOf({ ids: 'import', isMany: true }, id)).toBeUndefined())

it('a member that is not one of many has the id of its set, whatever that ends with', () => {
  const set = { ids: 'import.7', isMany: false }
  expect(numberOf(set, memberId(set, 0))).toBe(0)
  expect(numberOf(set, 'import')).toBeUndefined()
  expect(numberOf(set, 'import.7.0')).toBeUndefined()
})
