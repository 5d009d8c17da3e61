/** The package: what ships, that it opens nothing by itself, and that its types resolve for those who use it. */

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { project, root } from './cli/project.js'

const json = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8'))
const manifest = json('package.json') as {
  readonly bin: Record<string, string>
  readonly exports: Record<string, string | { readonly types: string; readonly default: string }>
  readonly dependencies: Record<string, string>
  readonly optionalDependencies: Record<string, string>
  readonly peerDependencies: Record<string, string>
  readonly scripts: Record<string, string>
}

interface Packed {
  readonly files: readonly { readonly path: string; readonly mode: number }[]
  readonly unpackedSize: number
}

/** What `npm pack` would put into the tarball. Without scripts: `dist` is in use while tests run. */
function packed(): Packed {
  const { status, stdout, stderr } = spawnSync(
    'npm',
    ['pack', '--dry-run', '--json', '--ignore-scripts', '--offline'],
    {
      cwd: root,
      encoding: 'utf8',
    },
  )
  if (status !== 0) throw new Error(`npm pack exited with ${status}: ${stderr}`)
  // An object by name, or, before npm 12, a list.
  const [pack] = Object.values(JSON.parse(stdout) as Record<string, Packed>)
  return pack!
}

const filesBelow = (folder: string) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))

describe('the tarball', () => {
  const { files, unpackedSize } = packed()
  const paths = files.map(({ path }) => path)

  it('holds the program, its types, the documentation and nothing else', () => {
    const compiled = filesBelow('src').flatMap((file) => {
      const stem = file.replace(/^src/, 'dist').replace(/\.ts$/, '')
      // Nothing that is exported has a type from there.
      const isUntyped = /^dist\/(?:cli|stores\/(?:memory|sqlite|redis\/lua)|throttle)\//.test(stem)
      return isUntyped ? [`${stem}.js`] : [`${stem}.js`, `${stem}.d.ts`]
    })
    const expected = ['LICENSE', 'README.md', 'CHANGELOG.md', 'package.json', ...filesBelow('docs'), ...compiled]
    // A file whose source is gone lies in `dist` until the next pack, which begins with an empty one.
    const isStale = (path: string) => path.startsWith('dist/') && !expected.includes(path)

    expect(paths.filter((path) => !isStale(path)).sort()).toEqual(expected.sort())
    expect(manifest.scripts['prepack']).toMatch(/^rm -rf dist && /)
  })

  it('holds no tests, sources, maps, build state or modules of others', () => {
    const foreign =
      /(?:^|\/)(?:test|node_modules|bench|proofs|examples|scripts)\/|\.map$|(?<!\.d)\.ts$|buildinfo|\.tgz$|\.db$/

    expect(paths.filter((path) => foreign.test(path))).toEqual([])
  })

  it('is small: less than 3.5 MB unpacked, documentation included', () => {
    expect(unpackedSize).toBeLessThan(3_500_000)
  })

  it('has every file that `exports` and `bin` name', () => {
    const named = Object.values(manifest.exports).flatMap((target) =>
      typeof target === 'string' ? [target] : [target.types, target.default],
    )
    const all = [...named, ...Object.values(manifest.bin)].map((path) => path.replace(/^\.\//, ''))

    expect(all.filter((path) => !paths.includes(path))).toEqual([])
    expect(all.length).toBeGreaterThanOrEqual(6)
  })

  it('has a command that begins with a shebang, which npm makes executable', () => {
    for (const path of Object.values(manifest.bin))
      expect(readFileSync(join(root, path), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
  })
})

describe('the lock file', () => {
  it('has every optional package of every platform, as npm ci demands', () => {
    const { packages } = json('package-lock.json') as {
      packages: Record<string, { optionalDependencies?: Record<string, string> }>
    }
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter(
        (name) =>
          packages[`node_modules/${name}`] === undefined && packages[`${path}/node_modules/${name}`] === undefined,
      ),
    )

    expect(missing).toEqual([])
  })
})

/** A folder where the package lies in `node_modules` as npm puts it there. */
function consumer(files: Record<string, string>): string {
  const cwd = project({ 'package.json': '{"type":"module"}', ...files })
  for (const name of ['@types/node', 'zod', 'undici-types']) {
    mkdirSync(dirname(join(cwd, 'node_modules', name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(cwd, 'node_modules', name))
  }
  return cwd
}

describe('importing millrace', () => {
  /** Runs an import in a process of its own, which writes down every module that is loaded. */
  function imported(specifier: string) {
    const cwd = consumer({
      'import.mjs': `await import('${specifier}'); console.log(JSON.stringify(process.getActiveResourcesInfo()))`,
      'watch.mjs': `import { register } from 'node:module'; register('./hooks.mjs', import.meta.url)`,
      'hooks.mjs': `import { appendFileSync } from 'node:fs'
export async function load(url, context, next) {
  appendFileSync(new URL('./loaded.txt', import.meta.url), url + '\\n')
  return next(url, context)
}`,
    })
    const before = readdirSync(cwd, { recursive: true, encoding: 'utf8' })
    const ran = spawnSync(process.execPath, ['--import', './watch.mjs', 'import.mjs'], {
      cwd,
      encoding: 'utf8',
      timeout: 20_000,
    })
    const loaded = readFileSync(join(cwd, 'loaded.txt'), 'utf8').trim().split('\n')
    const made = readdirSync(cwd, { recursive: true, encoding: 'utf8' }).filter((file) => !before.includes(file))
    return { ...ran, loaded, made }
  }

  const heavy = /node:sqlite|photostructure|commander|jiti|picocolors/

  it('opens nothing: no file is made, nothing holds the process', () => {
    const { status, stdout, stderr, made } = imported('millrace')

    expect({ status, stderr, made }).toEqual({ status: 0, stderr: '', made: ['loaded.txt'] })
    // Only the pipe it prints to may be open.
    expect((JSON.parse(stdout) as string[]).filter((resource) => !/Pipe|TTY|FS/.test(resource))).toEqual([])
  })

  it('loads no database driver, no command line and no transpiler', () => {
    const { loaded } = imported('millrace')

    expect(loaded.some((url) => url.endsWith('/dist/config/mill.js'))).toBe(true)
    expect(loaded.filter((url) => heavy.test(url))).toEqual([])
    expect(loaded.filter((url) => /\/dist\/(?:cli|testing)\//.test(url))).toEqual([])
  })

  it('is seen to load them where they are used: the watch is not blind', () => {
    const { loaded } = imported(join(root, 'dist/cli/program.js'))

    expect(loaded.some((url) => url.includes('/commander/') && heavy.test(url))).toBe(true)
  })

  it('gives the same names as its types promise', async () => {
    const names = Object.keys(await import('millrace'))

    expect(names).toEqual(expect.arrayContaining(['millrace', 'defineTask', 'exponential', 'snooze', 'MillraceError']))
    expect(names.filter((name) => /^[A-Z]/.test(name) && !name.endsWith('Error'))).toEqual([])
  })
})

describe('the types', () => {
  const program = `
import { defineTask, type JobHandle, type Mill, millrace, type Store } from 'millrace'
import { compareStores, memoryHarness, storeContract } from 'millrace/testing'
import { z } from 'zod'

const mail = defineTask({
  name: 'mail',
  input: z.object({ to: z.email() }),
  run: async ({ to }, ctx) => ({ sent: to, attempt: ctx.job.attempt }),
})
const mill: Mill = millrace({ store: 'memory:', tasks: [mail] })
const job: JobHandle<{ sent: string; attempt: number }> = await mill.enqueue(mail, { to: 'ada@example.com' })
const { sent, attempt }: { sent: string; attempt: number } = await job.result()
// @ts-expect-error: the input is not what the schema accepts
await mill.enqueue(mail, { to: 1 })
await compareStores(await memoryHarness(), await memoryHarness(), { seed: attempt, steps: storeContract.length })
export const store: Store | string = sent
`

  it.each([
    {
      resolution: 'nodenext',
      module: 'nodenext',
      how: 'and hold where libraries are checked too',
      skipLibCheck: false,
    },
    { resolution: 'bundler', module: 'esnext', how: 'and are what they promise', skipLibCheck: true },
    { resolution: 'node10', module: 'esnext', how: 'which knows no exports', skipLibCheck: true },
  ])(
    'resolve for a consumer with moduleResolution $resolution, $how',
    ({ resolution, module, skipLibCheck }) => {
      const options = {
        strict: true,
        noEmit: true,
        skipLibCheck,
        target: 'es2023',
        module,
        moduleResolution: resolution,
        types: ['node'],
        // TypeScript 6 asks whether one means it.
        ...(resolution === 'node10' && { ignoreDeprecations: '6.0' }),
      }
      const cwd = consumer({
        'use.ts': program,
        'tsconfig.json': JSON.stringify({ compilerOptions: options, files: ['use.ts'] }),
      })
      const { status, stdout } = spawnSync(
        process.execPath,
        [join(root, 'node_modules/typescript/bin/tsc'), '-p', cwd],
        {
          encoding: 'utf8',
        },
      )

      expect({ status, stdout }).toEqual({ status: 0, stdout: '' })
    },
    60_000,
  )
})

describe('what an editor shows of the types', () => {
  it('is text, not a reference to other text: TypeScript follows no `@inheritDoc`', () => {
    const declarations = filesBelow('dist').filter((file) => file.endsWith('.d.ts'))
    expect(declarations.length).toBeGreaterThan(100)
    expect(declarations.filter((file) => readFileSync(join(root, file), 'utf8').includes('{@inheritDoc'))).toEqual([])
  })
})

describe('the dependencies', () => {
  it('are those that shipped code imports, and no others', () => {
    const imports = filesBelow('dist')
      .filter(
        (file) => file.endsWith('.js') && existsSync(join(root, file.replace(/^dist/, 'src').replace(/js$/, 'ts'))),
      )
      .flatMap((file) => [
        ...readFileSync(join(root, file), 'utf8').matchAll(
          /(?:^(?:import|export|\})[^'\n]*from|import\(|importModule\()\s*'([^.#'][^']*)'/gm,
        ),
      ])
      .map(([, specifier]) => specifier!)
      .filter((specifier) => !specifier.startsWith('node:') && specifier !== 'millrace')
    const { dependencies, optionalDependencies, peerDependencies } = manifest
    const declared = [dependencies, optionalDependencies, peerDependencies].flatMap((list) => Object.keys(list))

    expect([...new Set(imports)].sort()).toEqual(declared.sort())
  })
})
