/** Events: who hears what, and that a listener disturbs nobody. */

import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel'
import { defineTask, millrace } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type EventMap, Events } from '#src/core/events.js'
import { nextEvent } from '../next-event.js'
import { testMill } from '../test-mill.js'

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

/** What is published on the channel until the test is over. */
function heardOn(event: string): unknown[] {
  const heard: unknown[] = []
  const hear = (message: unknown) => void heard.push(message)
  subscribe(`millrace:${event}`, hear)
  onTestFinished(() => void unsubscribe(`millrace:${event}`, hear))
  return heard
}

describe('the channel of an event', () => {
  it('carries the events of a job as the mill emits them', async () => {
    const names = ['job.enqueued', 'job.started', 'job.completed', 'worker.started', 'worker.stopped'] as const
    const heard = new Map(names.map((name) => [name, heardOn(name)]))
    const double = defineTask({ name: 'double', run: async (n: number) => n * 2 })
    const mill = testMill({ tasks: [double] })
    const { id } = await mill.enqueue(double, 4, { id: 'four' })
    const completed = nextEvent(mill, 'job.completed')
    await mill.worker().start()
    const event = await completed
    await mill.close()

    const ref = { queue: 'default', id, task: 'double' }
    expect(heard.get('job.enqueued')).toEqual([{ ...ref, outcome: 'added' }])
    expect(heard.get('job.started')).toMatchObject([{ ...ref, attempt: 1 }])
    expect(heard.get('job.completed')).toEqual([event])
    expect([heard.get('worker.started')?.length, heard.get('worker.stopped')?.length]).toEqual([1, 1])
  })

  it('makes hot paths build the event only while somebody has subscribed', () => {
    const events = new Events()
    const hear = () => {}
    expect(events.has('job.started')).toBe(false)
    subscribe('millrace:job.started', hear)
    expect(events.has('job.started')).toBe(true)
    unsubscribe('millrace:job.started', hear)
    expect(events.has('job.started')).toBe(false)
  })

  it('publishes nothing if nobody has subscribed', () => {
    const stopped: EventMap['worker.stopped'] = { worker: 'w' }
    expect(channel('millrace:worker.stopped').hasSubscribers).toBe(false)
    expect(() => new Events().emit('worker.stopped', stopped)).not.toThrow()
  })
})

const mill = millrace({ store: 'memory:' })
const listening = (name: unknown) => () => mill.on(name as 'job.completed', () => {})

it.each([
  ['completed', 'there is no event "completed"; probably \'job.completed\' is meant. There are job.enqueued, '],
  ['active', "; probably 'job.started' is meant"],
  ['stalled', "; probably 'job.crashed' is meant"],
  ['job.complete', "; probably 'job.completed' is meant"],
  ['toString', 'there is no event "toString". There are '],
  [undefined, 'there is no event undefined. There are '],
])('a listener for the unknown event %s is refused with a suggestion', (name, message) => {
  expect(listening(name)).toThrow(message)
  expect(listening(name)).toThrow(expect.objectContaining({ code: 'argument-invalid' }))
})
