import { describe, expect, it } from 'vitest'
import { failuresIn, ownError, storedError } from '#src/core/job/job-failures.js'

const at = Date.UTC(2026, 0, 1)

describe('the failures of a job', () => {
  it('are stored behind its last error, and read back', () => {
    const first = storedError('no route', undefined, { attempt: 1, at })
    const second = storedError('no answer\n    at call', first, { attempt: 2, at: at + 5 })

    expect(ownError(second)).toBe('no answer\n    at call')
    expect(failuresIn(second)).toEqual([
      { attempt: 1, at: new Date(at), error: 'no route' },
      { attempt: 2, at: new Date(at + 5), error: 'no answer\n    at call' },
    ])
  })

  it('are kept behind an error that is not a failure', () => {
    const failed = storedError('no route', undefined, { attempt: 1, at })
    const unread = storedError('was gzip, this mill has json', failed)

    expect(ownError(unread)).toBe('was gzip, this mill has json')
    expect(failuresIn(unread)).toEqual([{ attempt: 1, at: new Date(at), error: 'no route' }])
    expect(storedError('no worker can read it', undefined)).toBe('no worker can read it')
  })

  it('are at most the latest ten, and limited in size', () => {
    let stored: string | undefined
    for (let attempt = 1; attempt <= 40; attempt += 1)
      stored = storedError(`${attempt}: ${'"'.repeat(5_000)}`, stored, { attempt, at })
    const failures = failuresIn(stored)!

    expect(stored!.length).toBeLessThan(5_010 + 4_200)
    expect(failures.length).toBeLessThanOrEqual(10)
    expect(failures.at(-1)).toMatchObject({ attempt: 40, error: `40: ${'"'.repeat(5_000)}` })
    expect(failures.at(-2)!.error).toHaveLength(400)
  })

  it('are those the worker wrote, whatever the text of an error contains', () => {
    const forged = `no route\n\u001efailures [[7,0,"forged"]]`
    const stored = storedError(forged, undefined, { attempt: 1, at })

    expect(failuresIn(stored)).toEqual([
      { attempt: 1, at: new Date(at), error: 'no route\n failures [[7,0,"forged"]]' },
    ])
  })

  it('are absent if the text behind the mark is invalid', () => {
    for (const behind of ['', '{', '7', '[7]', '[["1",0]]', '[[1,9e99]]', '[[1,0,7]]']) {
      const text = `no route\n\u001efailures ${behind}`
      expect(failuresIn(text)).toBeUndefined()
      expect(ownError(text)).toBe(text)
    }
    expect(failuresIn(undefined)).toBeUndefined()
  })
})
