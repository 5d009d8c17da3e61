import { defineTask, millrace } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'

const encode = defineTask({ name: 'encode', queue: 'video', retry: { max: 4 } })

/** A listener has the job 'film' in hand. */
async function handedOut() {
  const mill = millrace({ store: 'memory:', queues: { video: {} }, tasks: [encode] })
  onTestFinished(() => mill.close())
  await mill.enqueue(encode, {}, { id: 'film' })
  const claim = await mill.listener('video').next()
  return { mill, claim, jobs: mill.queue('video').jobs }
}

describe('a job held by a listener and failed from outside', () => {
  it('is dead although its task has attempts left, because its program still runs', async () => {
    const { claim, jobs } = await handedOut()
    expect(await jobs.fail('film', 'it hangs')).toBe(true)
    expect(await jobs.get('film')).toMatchObject({ state: 'dead', error: 'it hangs' })
    expect(await claim.complete()).toBe('lost')
  })

  it('is handed out again on request', async () => {
    const { jobs, mill } = await handedOut()
    expect(await jobs.fail('film', 'it hangs', { last: false })).toBe(true)
    expect(await mill.job('film').record()).toMatchObject({ state: 'ready', attempt: 2 })
  })
})
