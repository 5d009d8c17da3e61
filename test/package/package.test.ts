/** The package: what ships, that it opens nothing by itself, and that its types resolve for those who use it. */

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { publint } from 'publint'
import { afterAll, describe, expect, it } from 'vitest'
import { driverNames } from '#src/stores/sqlite/file/sqlite-driver.js'
import { project, root } from '../cli/project.js'
import { Document } from '../docs/document.js'
import { installed, packed } from './tarball.js'

const json = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8'))
const manifest = json('package.json') as {
  readonly bin: Record<string, string>
  readonly exports: Record<string, string | { readonly types: string; readonly default: string }>
  readonly dependencies: Record<string, string>
  readonly optionalDependencies: Record<string, string>
  readonly peerDependencies: Record<string, string>
  readonly scripts: Record<string, string>
}

/** What `exports` and `bin` name, and what threads and processes start with. */
const entries = [
  ...Object.values(manifest.exports).flatMap((target) => (typeof target === 'string' ? [] : [target.default.slice(2)])),
  ...Object.values(manifest.bin),
  ...['lease-thread', 'process-child', 'process-guard'].map((name) => `dist/mill/${name}-entry.js`),
  'dist/stores/sqlite/thread/sqlite-thread.js',
]

const filesBelow = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))

/** Runs an import in a process of its own, which writes down every module that is loaded. */
function imported(specifier: string) {
  const cwd = project({
    'package.json': '{"type":"module"}',
    'import.mjs': `await import('${specifier}'); console.log(JSON.stringify(process.getActiveResourcesInfo()))`,
    'watch.mjs': `import { register } from 'node:module'; register('./hooks.mjs', import.meta.url)`,
    'hooks.mjs': `import { appendFileSync } from 'node:fs'
export async function load(url, context, next) {
appendFileSync(new URL('./loaded.txt', import.meta.url), url + '\\n')
return next(url, context)
}`,
  })
  // Other tests write into what is installed next to it.
  const files = () => [...readdirSync(cwd), ...filesBelow('dist')]
  const before = files()
  const ran = spawnSync(process.execPath, ['--import', './watch.mjs', 'import.mjs'], {
    cwd,
    encoding: 'utf8',
    timeout: 20_000,
  })
  const loaded = readFileSync(join(cwd, 'loaded.txt'), 'utf8').trim().split('\n')
  const made = files().filter((file) => !before.includes(file))
  return { ...ran, loaded, made }
}

describe('the package', () => {
  const tarball = packed()
  const { file, files, unpackedSize } = tarball
  afterAll(tarball.remove)
  const paths = files.map(({ path }) => path)

  it('holds the program, its types, the documentation and nothing else', () => {
    const page = filesBelow('dist/web/page')
    const expected = [
      'LICENSE',
      'README.md',
      'CHANGELOG.md',
      'package.json',
      // What the window looks like is for those who read on the web, as are the pages made of the doc comments.
      ...filesBelow('docs').filter((file) => !/^docs\/(?:images\/window|api)\//.test(file)),
      ...entries,
      ...page,
    ]
    const types = paths.filter((path) => path.endsWith('.d.ts'))
    // What several of the entries need.
    const parts = paths.filter((path) => /^dist\/parts\/[\w-]+\.js$/.test(path))

    expect(paths.filter((path) => ![...types, ...parts].includes(path)).sort()).toEqual(expected.sort())
    expect(parts.length).toBeLessThan(120)
    expect(types).toEqual(expect.arrayContaining(['dist/index.d.ts', 'dist/store-testing/store-testing.d.ts']))
    expect(types.filter((path) => /^dist\/(?:cli|throttle|stores\/(?:memory|sqlite|redis\/lua))\//.test(path))).toEqual(
      [],
    )
    expect(page).toContain('dist/web/page/index.html')
    expect(manifest.scripts['prepack']).toBe(
      'rm -rf dist && npm run build && npm run build:page && node scripts/slim-dist.mjs',
    )
  })

  it('holds no tests, sources, maps, build state or foreign modules', () => {
    const foreign =
      /(?:^|\/)(?:test|node_modules|bench|proofs|examples|scripts|dashboard)\/|\.map$|(?<!\.d)\.ts$|buildinfo|\.tgz$|\.db$/

    expect(paths.filter((path) => foreign.test(path))).toEqual([])
  })

  // The store for Postgres brings functions of the database as text, which nothing makes shorter.
  it('is small: less than 5.2 MB unpacked, with five stores, the web handler and the documentation', () => {
    expect(unpackedSize).toBeLessThan(5_200_000)
  })

  it('passes publint without a finding', async () => {
    const bytes = readFileSync(file)
    const content = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength)
    const { messages } = await publint({ strict: true, pack: { tarball: content } })

    expect(messages).toEqual([])
  })

  it('has types for every importer that can load it: ESM, and CommonJS by `require` of ESM or a dynamic import', () => {
    const attw = join(root, 'node_modules/@arethetypeswrong/cli/dist/index.js')
    const { status, stdout } = spawnSync(process.execPath, [attw, file, '--profile', 'esm-only', '--format', 'ascii'], {
      encoding: 'utf8',
    })

    expect({ status, stdout }).toMatchObject({ status: 0, stdout: expect.stringContaining('millrace/web') })
  })

  it('has every file that one of its pages links to, except pictures of the dashboard', () => {
    const pages = paths.filter((path) => path.endsWith('.md'))
    const dead = pages.flatMap((page) =>
      new Document(page).links
        .filter((link) => !/^(?:[a-z]+:|#)/.test(link))
        .map((link) => posix.join(dirname(page), link.split('#')[0]!))
        .filter((target) => !paths.includes(target) && !target.startsWith('docs/images/window/'))
        .map((target) => `${page}: ${target}`),
    )

    expect(pages.length).toBeGreaterThan(50)
    expect(dead).toEqual([])
  })

  it('has every file that `exports` and `bin` name', () => {
    const named = Object.values(manifest.exports).flatMap((target) =>
      typeof target === 'string' ? [target] : [target.types, target.default],
    )
    const all = [...named, ...Object.values(manifest.bin)].map((path) => path.replace(/^\.\//, ''))

    expect(all.filter((path) => !paths.includes(path))).toEqual([])
    expect(all.length).toBeGreaterThanOrEqual(6)
  })

  it('has every file that its code names by the way from there', () => {
    const home = join(installed(tarball, {}), 'node_modules/millrace')
    const ways = paths
      .filter((path) => path.endsWith('.js') && !path.startsWith('dist/web/page/'))
      .flatMap((path) =>
        [...readFileSync(join(home, path), 'utf8').matchAll(/new URL\(['"`](\.[^'"`$]*)/g)].map(
          ([, way]) => `${path} names ${posix.join(dirname(path), way!)}`,
        ),
      )

    expect(ways.filter((way) => !existsSync(join(home, way.split(' names ')[1]!)))).toEqual([])
    expect(ways.length).toBeGreaterThanOrEqual(9)
  })

  it('loads few files for an import, works in its threads and processes, and keeps the names of its classes', () => {
    const program = `import { defineTask, millrace } from 'millrace'
export const double = defineTask({ name: 'double', run: (n) => 2 * n })
export const far = defineTask({ name: 'far', isolate: 'process', module: import.meta.url, run: (n) => 3 * n })
`
    const run = `import { millrace } from 'millrace'
import { double, far } from './tasks.mjs'
const mill = millrace({ store: 'sqlite:jobs.db', tasks: [double, far] })
const jobs = [await mill.enqueue(double, 21), await mill.enqueue(far, 14)]
const worker = mill.worker()
await worker.start()
console.log(worker.constructor.name, (await Promise.all(jobs.map((job) => job.result({ timeout: '20s' })))).join())
await mill.close()`
    const cwd = installed(tarball, { 'tasks.mjs': program, 'run.mjs': run }, ['@photostructure/sqlite'])
    const { stdout, stderr } = spawnSync(process.execPath, ['run.mjs'], { cwd, encoding: 'utf8', timeout: 30_000 })
    const { loaded } = imported(join(cwd, 'node_modules/millrace/dist/index.js'))

    expect({ stdout, stderr }).toEqual({ stdout: 'Worker 42,42\n', stderr: '' })
    expect(loaded.filter((url) => url.includes('/millrace/dist/')).length).toBeLessThan(40)
  }, 60_000)

  it('says which package a store on Redis needs', () => {
    const program = `import { millrace } from 'millrace'
await millrace({ store: 'redis://localhost:1' }).depths().catch(({ code, message }) => console.log(code, message))`
    const cwd = installed(tarball, { 'run.mjs': program })
    const { stdout } = spawnSync(process.execPath, ['run.mjs'], { cwd, encoding: 'utf8', timeout: 30_000 })

    expect(stdout).toMatch(/^config-invalid .*needs the package ioredis.*npm install ioredis/s)
  })

  it('has a command that begins with a shebang, which npm makes executable', () => {
    for (const path of Object.values(manifest.bin))
      expect(readFileSync(join(root, path), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
  })
})

describe('the lock file', () => {
  it('has every optional package for every platform, as npm ci requires', () => {
    const { packages } = json('package-lock.json') as {
      packages: Record<string, { optionalDependencies?: Record<string, string> }>
    }
    /** Whether Node finds a module from this folder: in a `node_modules` of it, or of one above. */
    const isFound = (folder: string, name: string): boolean =>
      packages[posix.join(folder, 'node_modules', name)] !== undefined ||
      (folder !== '' && isFound(folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/'))), name))
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter((name) => !isFound(path, name)),
    )

    expect(missing).toEqual([])
  })
})

describe('importing millrace', () => {
  const heavy = /node:sqlite|photostructure|commander|jiti|picocolors|opentelemetry/

  it('creates no file, holds no process, and loads no database driver, command line, transpiler or tracer', () => {
    const { status, stdout, stderr, made, loaded } = imported('millrace')

    expect({ status, stderr, made }).toEqual({ status: 0, stderr: '', made: ['loaded.txt'] })
    // Only the pipe it prints to may be open.
    expect((JSON.parse(stdout) as string[]).filter((resource) => !/Pipe|TTY|FS/.test(resource))).toEqual([])
    expect(loaded.some((url) => url.endsWith('/dist/mill/mill.js'))).toBe(true)
    expect(loaded.filter((url) => heavy.test(url))).toEqual([])
    expect(loaded.filter((url) => /\/dist\/(?:cli|store-testing|telemetry|testing|web)\/|\/hono\//.test(url))).toEqual(
      [],
    )
  })

  it('is seen to load them if they are used: the watch works', () => {
    const { loaded } = imported(join(root, 'dist/cli/program.js'))

    expect(loaded.some((url) => url.includes('/commander/') && heavy.test(url))).toBe(true)
  })

  it('exports the names that its types declare', async () => {
    const names = Object.keys(await import('millrace'))

    expect(names).toEqual(expect.arrayContaining(['millrace', 'defineTask', 'exponential', 'snooze', 'MillraceError']))
    expect(names.filter((name) => /^[A-Z]/.test(name) && !name.endsWith('Error'))).toEqual([])
  })
})

describe('the text that an editor shows for a type', () => {
  it('does not refer to other text, because TypeScript follows no `@inheritDoc`', () => {
    const declarations = filesBelow('dist').filter((file) => file.endsWith('.d.ts'))
    expect(declarations.length).toBeGreaterThan(100)
    expect(declarations.filter((file) => readFileSync(join(root, file), 'utf8').includes('{@inheritDoc'))).toEqual([])
  })
})

describe('the dependencies', () => {
  it('are exactly those that shipped code imports', () => {
    const imports = filesBelow('dist')
      .filter(
        (file) => file.endsWith('.js') && existsSync(join(root, file.replace(/^dist/, 'src').replace(/js$/, 'ts'))),
      )
      .flatMap((file) => [
        ...readFileSync(join(root, file), 'utf8').matchAll(
          /(?:^(?:import|export|\})[^'\n]*from|import\(|importModule\(|\brequire\()\s*'([^.#'][^']*)'/gm,
        ),
      ])
      .map(([, specifier]) => specifier!)
      .filter((specifier) => !specifier.startsWith('node:') && !/^millrace(\/|$)/.test(specifier))
    const { dependencies, optionalDependencies, peerDependencies } = manifest
    const declared = [dependencies, optionalDependencies, peerDependencies].flatMap((list) => Object.keys(list))

    // Loaded by name, unseen by bundlers.
    const drivers = driverNames.filter((name) => !name.startsWith('node:'))
    expect([...new Set([...imports, ...drivers])].sort()).toEqual(declared.sort())
  })
})
