/**
 * Makes of `dist` what the package ships: `node scripts/slim-dist.mjs [root]`. Of the declarations it keeps those that the
 * public entries reach, with their comments, indented by tabs. Of the JavaScript, which rolldown makes of the sources anew, it
 * keeps one file for each entry: the public ones, the command, and those that threads and processes start with. What
 * several of them need is in `dist/parts`, once. `npm pack` runs it.
 */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { rolldown } from 'rolldown'
import { slimDeclarations } from './slim-declarations.mjs'

const root = resolve(process.argv[2] ?? '.')
const dist = join(root, 'dist')
const sources = join(import.meta.dirname, '../src')
const { exports, bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const published = Object.values(exports).filter((target) => target.types !== undefined)

const declarations = slimDeclarations(published.map((target) => join(root, target.types)))
for (const file of readdirSync(dist, { recursive: true }).map((name) => join(dist, name)))
  if (file.startsWith(join(dist, 'web/page/'))) continue
  else if (file.endsWith('.d.ts')) {
    const text = declarations.get(file)
    if (text === undefined) rmSync(file)
    else
      writeFileSync(
        file,
        text.replace(/^(?: {4})+/gm, (spaces) => '\t'.repeat(spaces.length / 4)),
      )
  } else if (/\.js$|\.tsbuildinfo$/.test(file)) rmSync(file)

/** What threads and processes start with, as the package names it while it runs: `mill/lease-thread-entry`. */
const started = [
  ...readFileSync(join(sources, 'core/package-files.ts'), 'utf8').matchAll(/new URL\('\.\.\/(\w[^']*)\.js'/g),
].map(([, name]) => name)
const entries = [...published.map((target) => target.default), ...Object.values(bin)]
  .map((path) => relative('dist', path).replace(/\.js$/, ''))
  .concat(started)

/**
 * What is loaded together is one file; rolldown groups the rest by who loads it. Earlier groups take first, with all that their
 * files import: so the thread that keeps leases loads only basics, and an import of the package six files.
 */
const groups = [
  [
    'basics',
    /\/core\/(?:package-files|platform\/[\w-]+|messages\/[\w-]+)\.ts$|\/runtime\/(?:leases\/lease-thread-loop|line-channel|with-timeout)\.ts$/,
  ],
  ['stores', /\/stores\/(?:contract|rules|rows|sql)\/|\/core\/job\/job-log\.ts$/],
  ['store-source', /\/mill\/store-source\.ts$|\/exit-gate\.ts$/],
  ['values', /\/core\/(?:values|queue)\/|\/selectors\/|\/runtime\/process\//],
  ['guard', /\/child-guard\.ts$/],
  ['mill', /\/src\/(?:index|mill\/load-mill)\.ts$/],
  ['worker', /\/workers\/assemble-worker\.ts$/],
  ['redis', /\/stores\/redis\/(?:redis-store|client\/redis-connection)\.ts$/],
].map(([name, test], i, all) => ({ name, test, priority: all.length - i }))

const bundle = await rolldown({
  // The names of the sources are the same wherever it is packed.
  cwd: join(sources, '..'),
  input: Object.fromEntries(entries.map((name) => [name, join(sources, `${name}.ts`)])),
  platform: 'node',
  // Every package but this one.
  external: /^[^./]/,
  resolve: { extensionAlias: { '.js': ['.ts'] } },
  transform: { target: 'es2022' },
  onLog: (level, log) => {
    throw new Error(`${level}: ${log.message}`)
  },
})
await bundle.write({
  dir: dist,
  entryFileNames: '[name].js',
  chunkFileNames: 'parts/[name].js',
  minifyInternalExports: false,
  // Errors are called as their classes.
  keepNames: true,
  // Only the name of each source stays, before its code.
  minify: false,
  comments: false,
  codeSplitting: { groups },
})
await bundle.close()
