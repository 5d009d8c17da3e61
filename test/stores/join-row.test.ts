/** The places of members, as rows have them. */

import { expect, it } from 'vitest'
import type { MemberOf } from '#src/stores/contract/new-join.js'
import { placesIn, placesText } from '#src/stores/rows/join-row.js'

const place = (number: number, how: Partial<MemberOf> = {}): MemberOf => ({
  ...{ join: { queue: 'mail', id: 'a "join"' }, set: 'all', number, onDead: 'fail', keepsResults: true },
  ...how,
})

it.each([
  ['the number at the end of its id', 'import.17', [place(17)]],
  ['another number than its id', 'import.17', [place(7)]],
  ['an id without a number', 'import', [place(0)]],
  ['an id that ends with zeros', 'import.007', [place(7)]],
  ['an end that keeps no results', 'import.0', [place(0, { keepsResults: false })]],
  ['an end that goes on', 'import.1', [place(1, { onDead: 'go-on' })]],
  ['several', 'import.2', [place(2), place(5, { set: 'rest', onDead: 'hold' }), place(2, { set: 'third' })]],
  ['a join whose id has a line break', 'import.3', [place(3, { join: { queue: 'mail', id: 'line\nbreak' } })]],
] as const)('places are read as they were stored: %s', (_, id, places) => {
  expect(placesIn(placesText(places, id), id)).toEqual(places)
  expect(placesIn(placesText(places), id)).toEqual(places)
})

it('members of one set have the same text', () => {
  const texts = [0, 7, 4_096].map((number) => placesText([place(number)], `import.${number}`))

  expect(new Set(texts)).toEqual(new Set(['[["mail","a \\"join\\"","all"]]']))
})
