/** Events: who hears what, and that a listener disturbs nobody. */
import { describe, expect, it } from 'vitest'
import { type EventMap, Events } from '#src/core/events.js'

const started: EventMap['worker.started'] = { worker: 'w', queues: ['a'] }

describe('events', () => {
  it('reach every listener for their name in the order added, and no other', () => {
    const events = new Events()
    const heard: string[] = []
    events.on('worker.started', (event) => heard.push(`first ${event.worker}`))
    events.on('worker.started', () => heard.push('second'))
    events.on('worker.stopped', () => heard.push('other'))

    events.emit('worker.started', started)

    expect(heard).toEqual(['first w', 'second'])
  })

  it('do not reach a removed listener', () => {
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

  it('are skipped cheaply if nobody listens', () => {
    expect(new Events().has('job.started')).toBe(false)
    expect(() => new Events().emit('worker.started', started)).not.toThrow()
  })

  it('reach the other listeners if one throws, which is reported', () => {
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

  it('report an async listener that rejects, and the process goes on', async () => {
    const events = new Events()
    const mine = new Error('mine')
    const failed = new Promise((resolve) => events.on('hook.failed', resolve))
    events.on('worker.started', async () => {
      throw mine
    })

    events.emit('worker.started', started)

    expect(await failed).toEqual({ hook: 'listener of worker.started', error: mine })
  })

  it('do not loop if the listener for failures fails', () => {
    const events = new Events()
    let calls = 0
    events.on('hook.failed', () => {
      calls += 1
      throw new Error('again')
    })

    events.emit('hook.failed', { hook: 'x', error: 1 })

    expect(calls).toBe(1)
  })

  it('do not reach a listener that is added while they are emitted', () => {
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

  it('reach the remaining listeners if one removes itself', () => {
    const events = new Events()
    const heard: string[] = []
    const off = events.on('worker.started', () => off())
    events.on('worker.started', () => heard.push('second'))

    events.emit('worker.started', started)

    expect(heard).toEqual(['second'])
  })
})
