/** The places of members, as rows have them: how many of them are read in a row. */

import { expect, it } from 'vitest'
import type { MemberOf } from '#src/stores/contract/new-join.js'
import { placeReader, placeRowsIn, placesText } from '#src/stores/rows/join-row.js'

const place = (number: number, how: Partial<MemberOf> = {}): MemberOf => ({
  ...{ join: { queue: 'mail', id: 'a "join"' }, set: 'all', number, onDead: 'fail', keepsResults: true },
  ...how,
})

it('places are read one after the other as each is by itself, whatever was read before', () => {
  const other = { join: { queue: 'mail', id: 'other' } }
  const texts = [
    [place(0)],
    [place(17)],
    [place(18, { set: 'rest' })],
    [place(19, { keepsResults: false })],
    // Begins and ends like the one before, and has another place between.
    [place(1), place(2, other), place(3)],
    [place(20)],
    [place(1), place(2)],
    [place(21, other)],
    [place(22, { join: { queue: 'mail', id: 'line\nbreak' } })],
  ].map(placesText)

  const placesOf = placeReader()

  expect(texts.map(placesOf)).toEqual(texts.map(placeRowsIn))
})
