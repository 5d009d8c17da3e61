import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'millrace-exit-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** Exits so many ms after the file is there. The thread that has made it is at its tables or its statements then. */
const exitsAfterMs = [0, 0, 0, 1, 4, 8, 8, 10]

const exit = `
  setTimeout(() => {
    while (!existsSync(file));
    for (const until = performance.now() + exitsAfterMs; performance.now() < until; );
    process.exit(0)
  }, 10)
`

const programs = {
  'a store that is being opened': `
    const { SqliteStore } = await import(${at('#src/stores/sqlite/sqlite-store.js')})
    void new SqliteStore({ file }).depth([])
    ${exit}
  `,
  'the store of another thread that is being opened': `
    const { startStoreThread } = await import(${at('#src/mill/store-thread.js')})
    const entry = new URL('data:text/javascript,' + encodeURIComponent(\`
      import { workerData } from 'node:worker_threads'
      import { storeSource } from ${at('#src/mill/store-source.js')}
      void storeSource(workerData.descriptor).create().then((store) => store.depth([]))
    \`))
    startStoreThread('opener', entry, { descriptor: 'sqlite:' + file })
    ${exit}
  `,
}

function at(specifier: string): string {
  return JSON.stringify(import.meta.resolve(specifier))
}

it.each(Object.entries(programs))('a program that exits with 0 next to %s ends with 0', (_, program) => {
  const ends = exitsAfterMs.map((exitsAfterMs, i) => {
    const { status, signal, stderr } = spawnSync(
      process.execPath,
      ['--input-type=module', '-e', `${prelude(join(directory, `${i}.db`), exitsAfterMs)}${program}`],
      { encoding: 'utf8', timeout: 30_000 },
    )
    return { status, signal, stderr }
  })

  expect(ends).toEqual(exitsAfterMs.map(() => ({ status: 0, signal: null, stderr: '' })))
})

function prelude(file: string, exitsAfterMs: number): string {
  return `
    import { existsSync } from 'node:fs'
    const file = ${JSON.stringify(file)}
    const exitsAfterMs = ${exitsAfterMs}
  `
}
