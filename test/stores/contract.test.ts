import { readdirSync } from 'node:fs'
import { memoryHarness, storeContract } from 'millrace/store-testing'
import { describe, expect, it } from 'vitest'
import { harnesses } from './harnesses.js'

describe('the contract suite', () => {
  it('runs on every existing store', () => {
    const stores = readdirSync(new URL('../../src/stores', import.meta.url), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
      .filter((name) => !['contract', 'rules', 'rows', 'sql'].includes(name))

    const kinds = new Set([...harnesses.keys()].map((name) => name.split('-')[0]!))
    expect([...kinds].sort()).toEqual(stores.sort())
    const files = readdirSync(import.meta.dirname).filter((name) => /^contract-.*\.test\.ts$/.test(name))
    expect(files.sort()).toEqual([...harnesses.keys()].map((name) => `contract-${name}.test.ts`).sort())
  })

  it('has a different title for each case', () => {
    const titles = storeContract.flatMap(({ cases }) => cases.map(({ title }) => title))

    expect(titles.filter((title, i) => titles.indexOf(title) !== i)).toEqual([])
  })
  it('skips for a store with every trait only the cases that need a server', async () => {
    const store = await (await memoryHarness()).open()
    const skipped = storeContract.flatMap(({ cases }) =>
      cases.map(({ needs }) => needs?.(store) ?? true).filter((answer) => answer !== true),
    )

    expect(new Set(skipped)).toEqual(
      new Set(['the store is no server that could start anew', 'the store is no server that could claim at a ring']),
    )
  })
})
