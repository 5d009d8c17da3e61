/** Events: who hears what, and that a listener disturbs nobody. */
import { describe, expect, it } from 'vitest'
import { type EventMap, Events } from '#src/core/events.js'

const started: EventMap['worker.started'] = { worker: 'w', queues: ['a'] }

describe('events', () => {
  it('reach every listener of their name in the order added, and no other', () => {
    const events = new Events()
    const heard: string[] = []
    events.on('worker.started', (event) => heard.push(`first ${event.worker}`))
    events.on('worker.started', () => heard.push('second'))
    events.on('worker.stopped', () => heard.push('other'))

    events.emit('worker.started', started)

    expect(heard).toEqual(['first w', 'second'])
  })

  it('are heard no more once the listener is taken off', () => {
    const events = new Events()
    const heard: number[] = []
    const off = events.on('worker.started', () => heard.push(1))
    expect(events.has('worker.started')).toBe(true)

    off()
    off()
    events.emit('worker.started', started)

    expect(heard).toEqual([])
    expect(events.has('worker.started')).toBe(false)
  })

  it('are skipped cheaply when nobody listens', () => {
    expect(new Events().has('job.started')).toBe(false)
    expect(() => new Events().emit('worker.started', started)).not.toThrow()
  })

  it('reach the others when one listener throws, which is reported', () => {
    const events = new Events()
    const failed: EventMap['hook.failed'][] = []
    const heard: number[] = []
    const mine = new Error('mine')
    events.on('hook.failed', (event) => failed.push(event))
    events.on('worker.started', () => {
      throw mine
    })
    events.on('worker.started', () => heard.push(1))

    events.emit('worker.started', started)

    expect(heard).toEqual([1])
    expect(failed).toEqual([{ hook: 'listener of worker.started', error: mine }])
  })

  it('report an async listener that rejects instead of ending the process', async () => {
    const events = new Events()
    const mine = new Error('mine')
    const failed = new Promise((resolve) => events.on('hook.failed', resolve))
    events.on('worker.started', async () => {
      throw mine
    })

    events.emit('worker.started', started)

    expect(await failed).toEqual({ hook: 'listener of worker.started', error: mine })
  })

  it('do not go round in circles when the listener of failures fails', () => {
    const events = new Events()
    let calls = 0
    events.on('hook.failed', () => {
      calls += 1
      throw new Error('again')
    })

    events.emit('hook.failed', { hook: 'x', error: 1 })

    expect(calls).toBe(1)
  })

  it('are not heard by one who is added while they are told', () => {
    const events = new Events()
    let calls = 0
    const again = () => {
      calls += 1
      events.on('worker.started', () => again())
    }
    events.on('worker.started', again)

    events.emit('worker.started', started)

    expect(calls).toBe(1)
  })

  it('reach those that are left when one takes itself off', () => {
    const events = new Events()
    const heard: string[] = []
    const off = events.on('worker.started', () => off())
    events.on('worker.started', () => heard.push('second'))

    events.emit('worker.started', started)

    expect(heard).toEqual(['second'])
  })
})
