import { describe, expect, it } from 'vitest'
import { probablyMeant } from '#src/core/values/spelling.js'

describe('the word that was probably meant', () => {
  const words = ['weight', 'queues', 'lease', 'tasks', 'env']

  it.each([
    ['wieght', 'weight'],
    ['Weight', 'weight'],
    ['queus', 'queues'],
    ['taks', 'tasks'],
    ['leas', 'lease'],
  ])('%s is %s', (word, meant) => {
    expect(probablyMeant(word, words)).toBe(meant)
  })

  it('is told only if it is near, and the only one that is so near', () => {
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
