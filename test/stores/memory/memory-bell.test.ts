import { expect, it } from 'vitest'
import { MemoryBell } from '#src/stores/memory/memory-bell.js'

const longMs = 25_000

/** The names of those who wake, in the order in which they do. */
function wakings(bell: MemoryBell) {
  const woken: string[] = []
  const abort = new AbortController()
  return {
    woken,
    abort,
    rest: (name: string, queues: readonly string[]) =>
      bell.rung(queues, longMs, [abort.signal]).then((queue) => void woken.push(`${name} ${queue}`)),
    watch: (name: string) => bell.ended(longMs, [abort.signal]).then((told) => void woken.push(`${name} ${told}`)),
  }
}

it('the memory bell wakes waiters for a queue first come, first woken, one for each ring', async () => {
  const bell = new MemoryBell()
  const { woken, abort, rest } = wakings(bell)
  const rests = [rest('a', ['other']), rest('b', ['mail', 'other']), rest('c', ['mail']), rest('d', ['mail'])]

  bell.ring('mail')
  bell.ring('mail')
  await Promise.all([rests[1], rests[2]])
  expect(woken).toEqual(['b mail', 'c mail'])

  abort.abort()
  await Promise.all(rests)
  expect(woken.slice(2).sort()).toEqual(['a undefined', 'd undefined'])
})

it('the memory bell wastes no ring on a waiter that has left', async () => {
  const bell = new MemoryBell()
  const { woken, rest } = wakings(bell)
  await bell.rung(['mail'], 5, [])
  await bell.rung(['mail'], longMs, [AbortSignal.abort()])
  const later = rest('b', ['mail'])

  bell.ring('mail')

  await later
  expect(woken).toEqual(['b mail'])
})

it('the memory bell tells all watchers that jobs ended, and nobody else', async () => {
  const bell = new MemoryBell()
  const { woken, abort, rest, watch } = wakings(bell)
  const waiting = rest('a', ['mail'])
  const watching = [watch('b'), watch('c')]

  bell.tellEnds()

  await Promise.all(watching)
  expect(woken).toEqual(['b true', 'c true'])
  abort.abort()
  await waiting
})
