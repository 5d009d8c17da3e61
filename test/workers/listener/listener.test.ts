import type { MillOptions } from 'millrace'
import { describe, expect, it } from 'vitest'
import { JobCancelledError, PayloadTooLargeError } from '#src/core/errors.js'
import { poll } from '#src/store-testing/servers/poll.js'
import { keyIn, tokenOf } from '#src/workers/claim-token.js'
import { nextEvent, recorded } from '../../next-event.js'
import { storeKinds, testMill } from '../../test-mill.js'
import { enqueue, jobOf, listenerOn, video } from './listener-scene.js'

describe.each(storeKinds)('a listener on %s', (kind) => {
  const open = (options: Partial<MillOptions> = {}) =>
    testMill({ queues: { video: {} }, tasks: [video], ...options }, kind)

  it('returns the jobs of its queue in order, with everything known about each', async () => {
    const mill = open()
    const listener = listenerOn(mill)
    for (const id of ['a', 'b', 'c']) await mill.enqueue(video, { file: id }, { id, meta: { for: id } })

    const claims = [await listener.next(), await listener.next(), await listener.next()]
    expect(claims.map(({ id }) => id)).toEqual(['a', 'b', 'c'])
    expect(claims[0]).toMatchObject({ task: 'encode', queue: 'video', attempt: 1, crashes: 0 })
    expect(claims[0]).toMatchObject({ input: { file: 'a' }, meta: { for: 'a' }, fence: expect.any(Number) })
    expect(claims[0]!.lastCheckpoint).toBeUndefined()
    expect(claims[0]!.signal.aborted).toBe(false)
  })

  it('gives a job to the call that has waited longest, and each call its own', async () => {
    const mill = open()
    const listener = listenerOn(mill)
    const calls = [listener.next(), listener.next()]
    await enqueue(mill, 1, { id: 'first' })
    expect((await calls[0]!).id).toBe('first')
    await enqueue(mill, 2, { id: 'second' })
    expect((await calls[1]!).id).toBe('second')
  })

  it('is listed as a worker from its first call until it is closed', async () => {
    const mill = open()
    const listener = listenerOn(mill, { concurrency: 3 })
    expect(await mill.workers()).toEqual([])
    const waiting = listener.next().catch((error: Error) => error)
    const [record] = await poll(async () => ((await mill.workers())!.length > 0 ? mill.workers() : undefined), {
      what: 'the listener is in the registry',
      withinMs: 5_000,
    })
    expect(record).toMatchObject({ id: listener.id, pid: process.pid, queues: ['video'], concurrency: 3 })
    await listener.close()
    expect(await waiting).toMatchObject({ code: 'closed' })
    expect(await mill.workers()).toEqual([])
    await expect(listener.next()).rejects.toMatchObject({ code: 'closed' })
  })

  it('stores what is reported about a job: where it runs, its progress, its log and its checkpoint', async () => {
    const mill = open()
    const listener = listenerOn(mill)
    await enqueue(mill, 1, { id: 'a' })
    const claim = await listener.next()
    expect((await jobOf(mill, 'a'))?.startedAt).toBeUndefined()

    expect(await claim.started({ pid: 4_242, host: 'elsewhere' })).toBe('ok')
    claim.log('a line')
    await claim.checkpoint({ frame: 7 })
    claim.progress(0.5, 'half way')
    expect(await claim.extend()).toBe('ok')
    const running = await poll(
      async () => {
        const job = await jobOf(mill, 'a')
        return job?.progress !== undefined && job.log !== undefined ? job : undefined
      },
      { what: 'the record has it all', withinMs: 10_000 },
    )
    expect(running).toMatchObject({ state: 'running', pid: 4_242, host: 'elsewhere', startedAt: expect.any(Date) })
    expect(running).toMatchObject({ progress: { fraction: 0.5, note: 'half way' }, checkpoint: { frame: 7 } })
    expect(running.log).toBe('a line\n')

    expect(await claim.release()).toBe('ok')
    const again = await listener.next()
    expect(again).toMatchObject({ attempt: 1, lastCheckpoint: { frame: 7 } })
  })

  it.each([[{ url: 'x' }], [null], [undefined], ['ünïcödé 🎬\0'], ['é'.repeat(500_000)]])(
    'completes a job with its result',
    async (result) => {
      const mill = open({ maxPayloadBytes: 1_048_576 })
      const listener = listenerOn(mill)
      const job = await enqueue(mill, result ?? 'some', { id: 'a' })
      const claim = await listener.next()
      expect(claim.input).toEqual(result ?? 'some')
      expect(await claim.complete(result)).toBe('ok')
      expect((await mill.depths(['video']))[0]).toMatchObject({ processed: 1, failed: 0, running: 0 })
      if (result !== undefined) expect(await job.result()).toEqual(result)
    },
  )

  it('refuses a result that cannot be stored, and then settles nothing', async () => {
    const mill = open()
    const listener = listenerOn(mill)
    await enqueue(mill, 1, { id: 'a' })
    const claim = await listener.next()
    await expect(claim.complete('x'.repeat(1_048_576))).rejects.toThrow(PayloadTooLargeError)
    await expect(claim.complete(() => {})).rejects.toMatchObject({ code: 'codec-failed' })
    expect((await jobOf(mill, 'a'))?.state).toBe('running')
    expect(await claim.complete('short')).toBe('ok')
  })

  it('answers without throwing if a claim is settled twice or too late', async () => {
    const mill = open()
    const listener = listenerOn(mill)
    await enqueue(mill, 1, { id: 'a' })
    await enqueue(mill, 2, { id: 'b' })
    const [a, b] = [await listener.next(), await listener.next()]
    const refused = recorded(mill, 'settle.refused')

    expect(await Promise.all([a.complete(1), a.fail(new Error('no'))])).toEqual(['ok', 'lost'])
    expect(['lost', 'gone']).toContain(await a.release())
    const lost = nextEvent(mill, 'settle.refused', ({ id }) => id === 'b')
    await mill.queue('video').jobs.fail('b', 'from outside')
    expect(await b.complete(2)).toBe('lost')
    await lost
    expect(refused.length).toBeGreaterThanOrEqual(3)
    expect(await b.extend()).toBe('lost')
  })

  it('treats a failure as final unless a retry is requested', async () => {
    const mill = open()
    const listener = listenerOn(mill)
    await enqueue(mill, 1, { id: 'a' })
    expect(await (await listener.next()).fail(new Error('exit code 1'))).toBe('ok')
    expect(await jobOf(mill, 'a')).toMatchObject({ state: 'dead', reason: 'no-retries' })
    expect((await jobOf(mill, 'a'))?.error).toContain('exit code 1')
    await listener.close()

    const patient = listenerOn(mill, { retry: { max: 1, backoff: () => 0 } })
    await enqueue(mill, 1, { id: 'b' })
    expect(await (await patient.next()).fail('once')).toBe('ok')
    const second = await patient.next()
    expect(second).toMatchObject({ id: 'b', attempt: 2 })
    expect(await second.fail('twice')).toBe('ok')
    expect(await jobOf(mill, 'b')).toMatchObject({ state: 'dead', reason: 'max-retries' })
  })

  it('aborts a cancelled job, whose failure or release is then its end', async () => {
    const mill = open({ queues: { video: { lease: '3s' } } })
    const listener = listenerOn(mill)
    await enqueue(mill, 1, { id: 'a' })
    const claim = await listener.next()
    await mill.queue('video').jobs.cancel(['a'])
    await new Promise((resolve) => claim.signal.addEventListener('abort', resolve))
    expect(claim.signal.reason).toBeInstanceOf(JobCancelledError)
    expect(await claim.release()).toBe('ok')
    expect((await jobOf(mill, 'a'))?.state).toBe('cancelled')
  })

  it('waits with the next job until there is room for it', async () => {
    const mill = open()
    const listener = listenerOn(mill, { concurrency: 1 })
    await enqueue(mill, 1, { id: 'a' })
    await enqueue(mill, 2, { id: 'b' })
    const first = await listener.next()
    const claimed: string[] = []
    const second = listener.next().then(({ id }) => claimed.push(id))
    await enqueue(mill, 3, { id: 'c' })
    expect(claimed).toEqual([])
    await first.complete()
    await second
    expect(claimed).toEqual(['b'])
  })

  it('forgets a caller that stopped waiting, and claims no job for it', async () => {
    const mill = open()
    const listener = listenerOn(mill)
    const leaving = new AbortController()
    const gone = listener.next({ signal: leaving.signal })
    leaving.abort(new Error('enough'))
    await expect(gone).rejects.toThrow('enough')
    await enqueue(mill, 1, { id: 'a' })
    expect((await mill.depths(['video']))[0]).toMatchObject({ ready: 1, running: 0 })
    await expect(listener.next({ signal: leaving.signal })).rejects.toThrow('enough')
    expect((await listener.next()).id).toBe('a')
  })

  it('does not allow a running job to be deleted', async () => {
    const mill = open()
    const listener = listenerOn(mill)
    await enqueue(mill, 1, { id: 'a' })
    await listener.next()
    await expect(mill.queue('video').jobs.delete(['a'])).rejects.toThrow(/job 'a' runs .*cancel it/)
    expect((await jobOf(mill, 'a'))?.state).toBe('running')
  })
})

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
