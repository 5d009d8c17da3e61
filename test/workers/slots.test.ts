import { expect, it } from 'vitest'
import { Slots } from '#src/workers/slots.js'

it('slots in use have different numbers, from 0 on, however they are taken and returned', () => {
  const slots = new Slots(4)
  const held = new Set<number>()
  const turns = [1, 1, 1, 1, -2, 1, -0, 1, -3, -1, 1, 1]
  for (const turn of turns) {
    if (turn === 1) {
      const slot = slots.take()
      expect(held).not.toContain(slot)
      held.add(slot)
    } else {
      slots.give(-turn)
      held.delete(-turn)
    }
  }

  expect([...held].sort()).toEqual([0, 1, 2, 3])
  expect(slots.free).toBe(0)
})

it('a requested slot is given if it is free, otherwise another', () => {
  const slots = new Slots(4)

  expect([slots.take(2), slots.take(2), slots.take(9)].map((slot, i) => (i === 0 ? slot : slot !== 2))).toEqual([
    ...[2, true, true],
  ])
  const [last] = [slots.take()]
  slots.give(2)
  expect([last === 2, slots.take(2)]).toEqual([false, 2])
})
