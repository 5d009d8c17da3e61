/** The event channels: what a tool hears that knows no mill. */

import { channel, subscribe, unsubscribe } from 'node:diagnostics_channel'
import { defineTask } from 'millrace'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type EventMap, Events } from '#src/core/events.js'
import { nextEvent } from '../next-event.js'
import { testMill } from '../test-mill.js'

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
