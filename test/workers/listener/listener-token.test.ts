import { describe, expect, it } from 'vitest'
import { keyIn, tokenOf } from '#src/workers/claim-token.js'

const key = { queue: 'video', id: 'ünï/"1', fence: 41 }
const token = tokenOf('prod', key)

describe('the token of a claim', () => {
  it('names the claim, in characters that are safe in arguments and variables', () => {
    expect(token).toMatch(/^mr1\.[\w-]+$/)
    expect(keyIn(token, 'prod', 'video')).toEqual(key)
  })

  it('is refused if it belongs to another namespace or queue', () => {
    expect(() => keyIn(token, 'test', 'video')).toThrow(/is of a job in namespace 'prod', and this mill has 'test'/)
    expect(() => keyIn(token, 'prod', 'audio')).toThrow(/is of a job in queue 'video'.*mill\.listener\('video'\)/)
  })

  it.each([
    [''],
    ['mr1.'],
    [token.slice(0, -4)],
    [token.slice(4)],
    ['mr1.e30'],
    [undefined],
    [42],
    [tokenOf('prod', { ...key, fence: 0.5 })],
  ])('is refused if it is invalid: %j', (text) => {
    expect(() => keyIn(text as string, 'prod', 'video')).toThrow(/this is no token of a claim: .* begins with 'mr1\.'/)
  })
})
