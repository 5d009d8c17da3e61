/** How many jobs an action on chosen jobs changes at once. */

import type { StoredJob } from 'millrace/store'
import { expect, it } from 'vitest'
import { filteredSteps } from '#src/client/admin/job-filter.js'
import { total } from '#src/client/admin/step-loop.js'

/** An action on this many ready jobs; `isAwaited`: whether others wait for the store at a call of this number. */
async function sizesOf(jobs: number, isAwaited: (call: number) => boolean): Promise<number[]> {
  const sizes: number[] = []
  const changed = await total(
    filteredSteps({
      states: ['ready'],
      matches: () => true,
      list: async ({ limit, cursor = '0' }) => {
        const from = Number(cursor)
        const to = Math.min(jobs, from + limit)
        const page = Array.from({ length: to - from }, (_, i) => ({ id: `${from + i}` }) as StoredJob)
        return { jobs: page, ...(to < jobs ? { cursor: String(to) } : {}) }
      },
      act: async (ids) => {
        sizes.push(ids.length)
        return { changed: ids.length, more: false, ...(isAwaited(sizes.length) ? { isAwaited: true } : {}) }
      },
    }).step,
  )
  expect(changed).toBe(jobs)
  return sizes
}

it('an action on chosen jobs changes a page at once, and five jobs while others wait for the store', async () => {
  expect(await sizesOf(120, () => false)).toEqual([50, 50, 20])
  expect(await sizesOf(120, () => true)).toEqual([50, ...Array.from({ length: 14 }, () => 5)])
  expect(await sizesOf(120, (call) => call < 3)).toEqual([50, 5, 5, 40, 20])
})
