import { expect, it } from 'vitest'
import { isListenerId } from '#src/core/values/ids.js'
import { identityIn, nextWorkerId, processIdentity } from '#src/runtime/process/process-identity.js'

const here = processIdentity()

it('worker ids name their process, whether they are listeners, and nothing that a clone of the machine would repeat', () => {
  const ids = [nextWorkerId(here), nextWorkerId(here), nextWorkerId(here, true)]
  const [first, second] = ids.map((id) => /-([\da-f]{12})$/.exec(id)?.[1])
  expect(first).toBeDefined()
  expect(first).not.toBe(second)
  for (const id of ids) expect(identityIn(id, here)).toEqual({ pid: here.pid, ticks: here.ticks })
  expect(ids.map(isListenerId)).toEqual([false, false, true])
  expect(identityIn(nextWorkerId({ ...here, boot: 'another' }), here)).toBeUndefined()
})

it('worker ids of an older version can be read', () => {
  const [place] = nextWorkerId(here).split(`${here.pid}/`)
  for (const end of ['1', 't3-1']) {
    const id = `${place}${here.pid}/${here.ticks}/${end}`
    expect(identityIn(id, here)).toEqual({ pid: here.pid, ticks: here.ticks })
    expect(isListenerId(id)).toBe(false)
  }
})
