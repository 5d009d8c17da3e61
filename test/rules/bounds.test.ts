/** The bounds of memories: what remains of a job that is cancelled, and how long its id is remembered. */
import { expect, it } from 'vitest'
import { leavesRemains, rememberedForMs } from '#src/stores/rules/bounds.js'

const untouched = { isRunning: false, attempt: 1, crashes: 0, suspect: false, hasNotes: false }

it('a job that never began leaves nothing behind', () => {
  expect(leavesRemains(untouched)).toBe(false)
})

it.each([{ isRunning: true }, { attempt: 2 }, { crashes: 1 }, { suspect: true }, { hasNotes: true }])(
  'a job that began, as %o shows, leaves a trace',
  (sign) => {
    expect(leavesRemains({ ...untouched, ...sign })).toBe(true)
  },
)

it("a user's own id is remembered for as long as the user asked, whatever its job leaves behind", () => {
  expect(rememberedForMs('completed', 5_000)).toBe(5_000)
  expect(rememberedForMs('cancelled', 5_000, false)).toBe(5_000)
  expect(rememberedForMs('cancelled', 5_000, true)).toBe(5_000)
})

it('a generated id is remembered only if its job was cancelled: for a minute, or for an hour if the job had begun', () => {
  expect(rememberedForMs('completed', 0)).toBe(0)
  expect(rememberedForMs('cancelled', 0, false)).toBe(60_000)
  expect(rememberedForMs('cancelled', 0, true)).toBe(3_600_000)
})
