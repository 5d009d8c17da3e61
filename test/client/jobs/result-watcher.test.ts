import type { Records, Store } from 'millrace/store'
import { describe, expect, it } from 'vitest'
import { ResultWatcher } from '#src/client/jobs/result-watcher.js'
import { UnservedQueues } from '#src/client/jobs/unserved-queues.js'
import { Events } from '#src/core/events.js'

type Watch = Records['watch']

function watcherOn(watch: Watch): ResultWatcher {
  const unserved = new UnservedQueues(new Events(), () => performance.now())
  return new ResultWatcher(async () => ({ records: { watch } }) as unknown as Store, unserved)
}

describe('the result watcher', () => {
  it('asks the store once for all jobs, with plain names only, until one has ended', async () => {
    const asked: unknown[] = []
    let answer = (_: { queue: string; id: string }[]) => {}
    const watcher = watcherOn((jobs) => {
      asked.push(structuredClone(jobs))
      return new Promise((resolve) => (answer = resolve))
    })
    const ended = watcher.ended('q', 'a', 10_000)
    await new Promise(setImmediate)
    answer([{ queue: 'q', id: 'a' }])
    await ended

    expect(asked).toEqual([[{ queue: 'q', id: 'a' }]])
  })

  it('rejects all waits if the store cannot be watched, instead of asking again and again', async () => {
    let calls = 0
    const watcher = watcherOn(async () => {
      calls += 1
      throw new Error('store away')
    })

    await expect(watcher.ended('q', 'a', 10_000)).rejects.toThrow('store away')
    expect(calls).toBe(1)
  })

  it('gives up after its timeout', async () => {
    const watcher = watcherOn(
      (_, __, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve([]))),
    )
    await watcher.ended('q', 'a', 5)
  })
})
