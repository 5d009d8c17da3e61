/** The contract of one store: each of its cases as a test. A file for each store, so that they are run beside each other. */

import { runContractCase, storeContract } from 'millrace/store-testing'
import { describe, it } from 'vitest'
import { harnesses } from './harnesses.js'

export function contractOf(name: string): void {
  const makeHarness = harnesses.get(name)!
  describe(`the ${name} store`, () => {
    for (const { concern, cases } of storeContract) {
      describe(concern, () => {
        for (const contractCase of cases) {
          it(contractCase.title, async (context) => {
            const skipped = await runContractCase(makeHarness, contractCase)
            if (skipped !== undefined) {
              console.log(`skipped on ${name}: ${contractCase.title} (${skipped})`)
              context.skip(skipped)
            }
          })
        }
      })
    }
  })
}
