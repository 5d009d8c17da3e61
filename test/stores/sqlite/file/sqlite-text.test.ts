import { expect, it } from 'vitest'
import { payloadToStored } from '#src/stores/rows/stored-text.js'

it('empty bytes are never bound with an empty buffer, which Node 22 would store as NULL', () => {
  const fromAnotherThread = structuredClone(new Uint8Array())
  expect(fromAnotherThread.buffer.byteLength).toBe(0)

  const stored = payloadToStored(fromAnotherThread) as Uint8Array
  expect(stored).toHaveLength(0)
  expect(stored.buffer.byteLength).toBeGreaterThan(0)
})
