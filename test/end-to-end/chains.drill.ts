import { expect, it } from 'vitest'
import { chains } from '../../proofs/chains/chains-drill.js'

it('a parent that is killed between its calls has each child exactly once, also as an isolated task', {
  timeout: 120_000,
}, async () => {
  const seen = await chains({ children: 10, kills: 4 })

  for (const one of seen) expect(one).toMatchObject({ runs: 5, wanted: 14, ran: 14, repeated: 0, completed: 14 })
  expect(seen.map(({ kind }) => kind)).toEqual(['parent', 'apart'])
})
