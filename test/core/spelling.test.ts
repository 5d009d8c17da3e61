import { describe, expect, it } from 'vitest'
import { probablyMeant } from '#src/core/messages/spelling.js'

describe('a spelling suggestion', () => {
  const words = ['weight', 'queues', 'lease', 'tasks', 'env']

  it.each([
    ['wieght', 'weight'],
    ['Weight', 'weight'],
    ['queus', 'queues'],
    ['taks', 'tasks'],
    ['leas', 'lease'],
  ])('for %s is %s', (word, meant) => {
    expect(probablyMeant(word, words)).toBe(meant)
  })

  it('is given only for a near word, and only if it is the nearest one', () => {
    expect(['wght', 'xy', 'en', 'anything'].map((word) => probablyMeant(word, words))).toEqual([
      'weight',
      undefined,
      'env',
      undefined,
    ])
    expect(probablyMeant('ab', ['ac', 'ad'])).toBeUndefined()
    expect(probablyMeant('a', [])).toBeUndefined()
  })
})
