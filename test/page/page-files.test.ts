/** The page's files: as small as promised, and nothing in them that the window's policy would refuse. */

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { root } from '../cli/project.js'

const folder = join(root, 'dist/web/page')
const files = existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }) : []
const read = (file: string) => readFileSync(join(folder, file))

it('are built: run `npm run build:page`', () => {
  expect(files).toContain('index.html')
})

/** The scripts and styles that the browser has loaded once this one runs. */
function loadedWith(file: string, loaded = new Set<string>()): Set<string> {
  if (loaded.has(file)) return loaded
  loaded.add(file)
  const imports = read(file)
    .toString()
    .matchAll(/(?:\bfrom|\bimport)\s*"\.\/([\w-]+\.js)"/g)
  for (const [, imported] of imports) loadedWith(`assets/${imported}`, loaded)
  return loaded
}

it('are at most 36 KiB of script and style for the first view, and 50 KiB for any', () => {
  const [style] = files.filter((file) => file.endsWith('.css'))
  const [, script] = /src="\.\/(assets\/[\w-]+\.js)"/.exec(read('index.html').toString())!
  const sizeOf = (loaded: Iterable<string>) => [...loaded].reduce((sum, file) => sum + gzipSync(read(file)).length, 0)
  const first = new Set([...loadedWith(script!), style!])
  const views = files.filter((file) => /pages-of-\w+-[\w-]{8}\.js$/.test(file))

  expect(sizeOf(first)).toBeLessThan(36 * 1_024)
  expect(views.length).toBe(3)
  for (const view of views) expect(sizeOf(new Set([...first, ...loadedWith(view)])), view).toBeLessThan(50 * 1_024)
})

it('have a page without inline script and style, whose files all exist and are relative', () => {
  const html = read('index.html').toString()
  const named = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, path]) => path!)

  expect(html).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/)
  expect(named.length).toBeGreaterThanOrEqual(3)
  // What the page asks for first is asked for beside its code.
  expect(named.filter((path) => !files.includes(path.replace(/^\.\//, '')))).toEqual(['api/v1/session'])
})

it('have scripts that turn no text into markup, and evaluate none', () => {
  const scripts = files.filter((file) => file.endsWith('.js')).map((file) => read(file).toString())
  // The word stands in Preact itself, which uses it for a prop that the page never gives.
  const own = readdirSync(join(root, 'dashboard/src'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.tsx') || file.endsWith('.ts'))
    .map((file) => readFileSync(join(root, 'dashboard/src', file), 'utf8'))

  for (const text of own) expect(text).not.toMatch(/innerHTML|outerHTML|insertAdjacent|document\.write/i)
  for (const text of scripts) expect(text).not.toMatch(/\beval\(|new Function\(|https?:\/\/(?!www\.w3\.org)/)
})
