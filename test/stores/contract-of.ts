/** The contract of one store: each of its cases as a test. A file for each store, so that they are run beside each other. */

import type { Store } from 'millrace/store'
import { type HarnessMaker, runContractCase, storeContract } from 'millrace/store-testing'
import { afterAll, beforeAll, describe, it } from 'vitest'
import { harnesses } from './harnesses.js'

/** `only`: the concerns in which it differs from a store that runs all of them. Throws where there is none of such a name. */
export function contractOf(name: string, only?: readonly string[]): void {
  contractOn(name, harnesses.get(name)!, only)
}

export function contractOn(name: string, makeHarness: HarnessMaker, only?: readonly string[]): void {
  const unknown = only?.filter((concern) => !storeContract.some((one) => one.concern === concern)) ?? []
  if (unknown.length > 0) throw new Error(`the contract has no concern ${unknown.join(', ')}`)
  const skips = new Map<string, number>()
  describe(`the ${name} store`, () => {
    /** Closed: it says what a store of this kind has, so that a case which it skips needs none of its own. */
    let kind: Store
    // The server of the first is looked for, and unpacked on a machine without one.
    beforeAll(async () => {
      const harness = await makeHarness()
      kind = await harness.open()
      await harness.close()
    }, 60_000)
    afterAll(() => {
      for (const [reason, cases] of skips) console.log(`skipped on ${name}: ${cases} cases, as ${reason}`)
    })
    for (const { concern, cases } of storeContract) {
      if (only !== undefined && !only.includes(concern)) continue
      describe(concern, () => {
        for (const contractCase of cases) {
          it(contractCase.title, async (context) => {
            const needed = contractCase.needs?.(kind) ?? true
            const skipped = needed === true ? await runContractCase(makeHarness, contractCase) : needed
            if (skipped === undefined) return
            skips.set(skipped, (skips.get(skipped) ?? 0) + 1)
            context.skip(skipped)
          })
        }
      })
    }
  })
}
