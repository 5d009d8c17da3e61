/** One mutant under comparison: prints the first sequence that tells its store from memory, or nothing; run by `mutants.ts`. */

import { pathToFileURL } from 'node:url'

const [dist = '', seed, sequences, steps] = process.argv.slice(2)
const testing = (await import(pathToFileURL(`${dist}/testing/testing.js`).href)) as typeof import('millrace/testing')

for (let i = 0; i < Number(sequences); i += 1) {
  const [model, subject] = [await testing.memoryHarness(), await testing.sqliteHarness()]
  try {
    await testing.compareStores(model, subject, { seed: Number(seed) + i, steps: Number(steps) })
  } catch {
    // A difference, or an error of the broken store: either way it was told apart.
    console.log(i)
    process.exit(0)
  } finally {
    await model.close()
    await subject.close()
  }
}
