import { readdirSync } from 'node:fs'
import { runContractCase, storeContract } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { harnesses } from './harnesses.js'

for (const [name, makeHarness] of harnesses) {
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

describe('the contract suite', () => {
  it('runs on every store there is', () => {
    const stores = readdirSync(new URL('../../src/stores', import.meta.url), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)

    const kinds = new Set([...harnesses.keys()].map((name) => name.split('-')[0]!))
    expect([...kinds].sort()).toEqual(stores.sort())
  })

  it('says each claim once', () => {
    const titles = storeContract.flatMap(({ cases }) => cases.map(({ title }) => title))

    expect(titles.filter((title, i) => titles.indexOf(title) !== i)).toEqual([])
  })
})
