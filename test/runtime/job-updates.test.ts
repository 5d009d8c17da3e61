import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  CodecError,
  JobCancelledError,
  LeaseLostError,
  PayloadTooLargeError,
  StoreUnavailableError,
} from '#src/core/errors.js'
import { Events } from '#src/core/events.js'
import { defineTask } from '#src/core/task/task.js'
import { maxDepth } from '#src/core/values/codec.js'
import { JobExecution } from '#src/runtime/run/execution.js'
import type { Claim } from '#src/stores/contract/claim.js'
import type { Records } from '#src/stores/contract/job-records.js'
import type { ExtendAnswer, ExtendItem } from '#src/stores/contract/settle.js'
import { memoryTraits } from '#src/stores/memory/memory-traits.js'
import { claimOf } from './claim-of.js'
import { notesOn } from './updates-on.js'

const claim = claimOf({ fence: 7 })

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

function scene(...answers: (ExtendAnswer | Error)[]) {
  return sceneWith({}, answers)
}

function sceneWith(more: { readonly records?: Records }, answers: (ExtendAnswer | Error)[]) {
  const sent: ExtendItem[] = []
  const extend = async (items: readonly ExtendItem[]) => {
    sent.push(...items)
    const answer = answers.shift() ?? 'ok'
    if (answer instanceof Error) throw answer
    return items.map(() => answer)
  }
  const events = new Events()
  const notes = notesOn({ extend, traits: memoryTraits, ...more }, events)
  const job = (more: Partial<Claim> = {}) =>
    new JobExecution({ ...claim, ...more }, defineTask({ name: 't' }), 1, {}, notes)
  return { sent, notes, job, events }
}

const away = new StoreUnavailableError('away')

describe('lines of a log', () => {
  it('are sent together, about a second after the first, and renew no lease', async () => {
    const { sent, job } = scene()
    const one = job()
    one.log('first')
    one.log('second')
    expect(sent).toEqual([])
    await vi.advanceTimersByTimeAsync(1_000)

    expect(sent).toEqual([{ queue: 'q', id: 'a', fence: 7, leaseMs: 0, beat: { log: 'first\nsecond\n' } }])
  })

  it('are sent again, before later ones, if the store was away', async () => {
    const { sent, job } = scene(away)
    const one = job()
    one.log('first')
    await vi.advanceTimersByTimeAsync(1_000)
    one.log('second')
    await vi.advanceTimersByTimeAsync(1_000)

    expect(sent.map(({ beat }) => beat?.log)).toEqual(['first\n', 'first\nsecond\n'])
  })

  it('that are still unsent go into the last message of the job, with its progress', () => {
    const { notes, job } = scene()
    const one = job()
    expect(notes.lastUpdate(one)).toBeUndefined()
    one.log('done')
    one.progress(1, 'all')

    const beat = { log: 'done\n', progress: { fraction: 1, note: 'all' } }
    expect(notes.lastUpdate(one)).toEqual({ queue: 'q', id: 'a', fence: 7, leaseMs: 0, beat })
    expect(notes.lastUpdate(one)).toBeUndefined()
  })

  it('that are not valid text are converted', async () => {
    const { sent, job } = scene()
    job().log('\ud800 half' as string)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(sent[0]?.beat?.log).toBe('\ufffd half\n')
  })
})

describe('a checkpoint', () => {
  it('is sent at once, and renews no lease', async () => {
    const { sent, job } = scene()
    await job().checkpoint({ done: 3 })
    expect(sent).toEqual([
      { queue: 'q', id: 'a', fence: 7, leaseMs: 0, beat: { checkpoint: { payload: '{"done":3}' } } },
    ])
  })

  it('is retried as long as the store is away', async () => {
    const { sent, job } = scene(away, away)
    const saved = job().checkpoint(1)
    await vi.advanceTimersByTimeAsync(60_000)
    await saved
    expect(sent).toHaveLength(3)
  })

  it('is not overwritten by an earlier one that is retried after it', async () => {
    const { sent, job } = scene(away)
    const one = job()
    const first = one.checkpoint(1)
    await vi.advanceTimersByTimeAsync(1)
    await one.checkpoint(2)
    await vi.advanceTimersByTimeAsync(60_000)
    await first
    expect([sent.length, sent.at(-1)!.beat!.checkpoint]).toEqual([3, { payload: '2' }])
  })

  /** Jobs whose marks are being sent by one call or several: the store carries out the first of them when it is let go. */
  async function marking(ids: readonly string[], maxBatch: number) {
    const stored = new Map<string, unknown>()
    let [calls, letGo] = [0, () => {}]
    const held = new Promise<void>((resolve) => (letGo = resolve))
    const extend = async (items: readonly ExtendItem[]) => {
      calls += 1
      if (calls === 1) await held
      for (const { id, beat } of items) stored.set(id, JSON.parse(String(beat!.checkpoint!.payload)).value)
      return items.map(() => 'ok' as const)
    }
    const notes = notesOn({ extend, traits: { ...memoryTraits, maxBatch } })
    const earlier = { ...claim, checkpoint: { payload: '1' } }
    const jobs = ids.map((id) => new JobExecution({ ...earlier, id }, defineTask({ name: 't' }), 1, {}, notes))
    for (const job of jobs) notes.done(job, 'CALL')
    await vi.advanceTimersByTimeAsync(1_000)
    return { stored, jobs, letGo }
  }

  it('is not overwritten by marks that are sent after it, with those of other jobs before them', async () => {
    const { stored, jobs, letGo } = await marking(['a', 'b'], 1)
    await jobs[1]!.checkpoint(2)
    letGo()
    await vi.advanceTimersByTimeAsync(5_000)

    expect(Object.fromEntries(stored)).toEqual({ a: 1, b: 2 })
  })

  it('is not overwritten by marks that are under way when it is stored', async () => {
    const { stored, jobs, letGo } = await marking(['a'], 250)
    const kept = jobs[0]!.checkpoint(2)
    await vi.advanceTimersByTimeAsync(1)
    letGo()
    await kept

    expect(stored.get('a')).toBe(2)
  })

  it('that waits for marks under way is given up if the attempt ends meanwhile', async () => {
    const { jobs } = await marking(['a'], 250)
    const kept = jobs[0]!.checkpoint(2)
    const reason = new LeaseLostError('q', 'a')
    jobs[0]!.abort(reason)

    await expect(kept).rejects.toBe(reason)
  })

  it('is given up if the attempt ends meanwhile', async () => {
    const { job } = scene(away, away, away, away, away, away, away, away)
    const one = job()
    const saved = one.checkpoint(1)
    const reason = new LeaseLostError('q', 'a')
    one.abort(reason)
    await expect(saved).rejects.toBe(reason)
  })

  it('is not sent once its run has ended, and then says so', async () => {
    const { sent, job } = scene(away, 'lost')
    const one = job()
    const saved = one.checkpoint(1)
    one.isDecided = true
    const refused = expect(saved).rejects.toThrow(
      /checkpoint of job 'a' in queue 'q' was not stored: its run had ended/,
    )
    await vi.advanceTimersByTimeAsync(60_000)
    await refused
    expect([sent.length, one.signal.aborted]).toEqual([1, false])
  })

  it('does not take its claim for lost if the end of its run comes before it', async () => {
    const { job } = scene('lost')
    const one = job()
    const saved = one.checkpoint(1)
    one.isDecided = true
    await expect(saved).rejects.toMatchObject({ code: 'argument-invalid' })
    expect(one.signal.aborted).toBe(false)
  })

  it('that its handler does not await, and a field, end no process when they are given up', async () => {
    const unhandled: unknown[] = []
    const note = (error: unknown) => unhandled.push(error)
    process.on('unhandledRejection', note)
    onTestFinished(() => void process.off('unhandledRejection', note))
    const records = { setFields: () => Promise.reject(away), get: () => Promise.reject(away) } as never
    const { job } = sceneWith({ records }, [away])
    const one = job()
    void one.checkpoint(1)
    void one.fields.set({ node: 1 })
    void one.fields.get()
    one.abort(new LeaseLostError('q', 'a'))
    await vi.advanceTimersByTimeAsync(60_000)
    await new Promise((resolve) => setImmediate(resolve))
    expect(unhandled).toEqual([])
  })

  it('of a lost claim is refused, and its handler is aborted', async () => {
    const { job } = scene('lost')
    const one = job()
    await expect(one.checkpoint(1)).rejects.toBeInstanceOf(LeaseLostError)
    expect(one.signal.aborted).toBe(true)
  })

  it('of a cancelled job is stored, and its handler is aborted', async () => {
    const { job } = scene('cancel')
    const one = job()
    await one.checkpoint(1)
    expect(one.signal.reason).toBeInstanceOf(JobCancelledError)
  })

  it('that cannot be stored is refused before anything is sent', async () => {
    const { sent, job } = scene()
    await expect(job().checkpoint('x'.repeat(1_000))).rejects.toBeInstanceOf(PayloadTooLargeError)
    await expect(job().checkpoint(Symbol('no'))).rejects.toBeInstanceOf(CodecError)
    expect(sent).toEqual([])
  })

  it('of an earlier attempt is found by a later one', () => {
    const { job } = scene()
    expect(job().lastCheckpoint).toBeUndefined()
    expect(job({ checkpoint: { payload: '{"done":3}' } }).lastCheckpoint).toEqual({ done: 3 })
    expect(() => job({ checkpoint: { payload: '1', codec: 'other' } }).lastCheckpoint).toThrow(CodecError)
  })
})

describe('finished calls to enqueue', () => {
  const marks = (item: ExtendItem) => JSON.parse(String(item.beat!.checkpoint!.payload))

  it('are sent with the checkpoint about a second later, once', async () => {
    const { sent, job, notes } = scene()
    const one = job()
    notes.done(one, 'first')
    notes.done(one, 'second')
    await vi.advanceTimersByTimeAsync(1_000)
    await one.checkpoint({ half: true })
    await vi.advanceTimersByTimeAsync(5_000)

    expect(sent.map(marks)).toEqual([
      { 'millrace:enqueued': ['first', 'second'] },
      { 'millrace:enqueued': ['first', 'second'], value: { half: true } },
    ])
  })

  it('go into the last message of an attempt only if another attempt may follow', () => {
    const { job, notes } = scene()
    const one = job()
    notes.done(one, 'first')

    expect(notes.lastUpdate(one, { kind: 'complete', result: undefined })).toBeUndefined()
    expect(marks(notes.lastUpdate(one, { kind: 'bury', reason: 'as told' })!)).toEqual({
      'millrace:enqueued': ['first'],
    })
  })

  it('are known to the next attempt, separate from the checkpoint', () => {
    const { job, notes } = scene()
    const payload = '{"millrace:enqueued":["first"],"value":7}'
    const next = job({ checkpoint: { payload } })

    expect([next.lastCheckpoint, notes.isDone(next, 'first'), notes.isDone(next, 'second')]).toEqual([7, true, false])
  })

  it('are sent again if the store was away, together with other unsent data', async () => {
    const { sent, job, notes } = scene(away)
    const one = job()
    notes.done(one, 'first')
    one.log('line')
    await vi.advanceTimersByTimeAsync(2_500)

    expect(sent).toHaveLength(2)
    expect(sent[1]).toMatchObject({ beat: { log: 'line\n' } })
    expect(marks(sent[1]!)).toEqual({ 'millrace:enqueued': ['first'] })
  })

  it('are left out if this process cannot read the checkpoint, so as not to overwrite it', async () => {
    const { sent, job, notes } = scene()
    const one = job({ checkpoint: { payload: '1', codec: 'other' } })
    notes.done(one, 'first')
    await vi.advanceTimersByTimeAsync(2_000)

    expect(sent).toEqual([])
  })

  it('are sent with the checkpoint as it was stored, even if its handler has changed the value since', async () => {
    const { sent, notes, job } = scene()
    const one = job()
    const progress = { page: 1 }
    await one.checkpoint(progress)
    progress.page = 2
    notes.done(one, 'CALL')
    await vi.advanceTimersByTimeAsync(1_000)

    expect(sent.at(-1)!.beat!.checkpoint).toEqual({ payload: '{"millrace:enqueued":["CALL"],"value":{"page":1}}' })
  })

  it('are left out if no codec can store them with the value, which is stored and settled all the same', async () => {
    const { sent, notes, job } = scene()
    const one = job()
    let deepest: unknown = 'deep'
    for (let depth = 0; depth <= maxDepth; depth += 1) deepest = [deepest]
    await one.checkpoint(deepest)
    notes.done(one, 'CALL')
    one.log('a line')
    await vi.advanceTimersByTimeAsync(1_000)
    await one.checkpoint(deepest)
    notes.done(one, 'ANOTHER')

    expect(sent.map(({ beat }) => Object.keys(beat!))).toEqual([['checkpoint'], ['log'], ['checkpoint']])
    expect(notes.lastUpdate(one, { kind: 'bury', reason: 'x' })).toBeUndefined()
  })

  it('have a key that no checkpoint may have', async () => {
    await expect(scene().job().checkpoint({ 'millrace:enqueued': [] })).rejects.toThrow(CodecError)
  })
})
