import { millrace } from 'millrace'
import { expect, it } from 'vitest'

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
