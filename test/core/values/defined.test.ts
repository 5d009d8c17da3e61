/** What `defined` leaves out, and what it keeps. */

import { expect, it } from 'vitest'
import { defined } from '#src/core/values/defined.js'

it('leaves out undefined properties, and keeps other values in their order', () => {
  const given: { last?: boolean; note: string | null; count: number | undefined; of: string | undefined } = {
    ...{ of: '', count: undefined, note: null, last: false },
  }
  expect(Object.entries(defined(given))).toEqual([
    ['of', ''],
    ['note', null],
    ['last', false],
  ])
})

it('does not change the given object', () => {
  const given = { id: 'a', group: undefined }
  expect(defined(given)).not.toBe(given)
  expect(Object.keys(given)).toEqual(['id', 'group'])
})
