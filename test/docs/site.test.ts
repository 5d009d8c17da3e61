/** The sidebar of the site: it leads to every page of the documentation, and to nothing else. */

import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { jobStates } from '#src/core/job/job.js'
import { isOutside } from '../../site/outside-link.js'
import { alsoFoundBy, search } from '../../site/search.js'
import { apiPages, type SidebarEntry, sidebar } from '../../site/sidebar.js'
import { run } from '../cli/command-in-process.js'
import { root } from '../cli/project.js'
import { Document, documents } from './document.js'

const linksOf = (entries: readonly SidebarEntry[]): string[] =>
  entries.flatMap(({ link, items = [] }) => [...(link === undefined ? [] : [link]), ...linksOf(items)])

describe('the sidebar', () => {
  const links = linksOf(sidebar)
  const isOfApi = (link: string) => link.startsWith('/api/')

  it('has every page of docs/ once, except the index, which is the home page', () => {
    const pages = documents().flatMap(({ path }) => /^docs(\/.+)\.md$/.exec(path)?.[1] ?? [])

    expect(links.filter((link) => !isOfApi(link)).sort()).toEqual(pages.filter((page) => page !== '/index').sort())
  })

  it('has the modules of the package as pages of the API', () => {
    const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { exports: object }
    const modules = Object.keys(exports).filter((name) => name !== './package.json')

    expect(apiPages.map(({ text }) => text.replace('millrace', '.')).sort()).toEqual(modules.sort())
    expect(links.filter(isOfApi)).toEqual(['/api/', ...apiPages.map(({ text }) => `/api/${text}/`)])
  })

  it('groups the pages under headings of at most sixteen entries', () => {
    expect(sidebar.filter(({ items = [] }) => items.length > 16).map(({ text }) => text)).toEqual([])
  })
})

describe('a link that the site cannot follow', () => {
  it.each([
    ['../CHANGELOG.md', 'cli.md', true],
    ['../../CHANGELOG.md', 'stores/redis.md', true],
    ['../dashboard.md', 'coming-from/lowkiq.md', false],
    ['#claim', 'job-lifecycle.md', false],
    ['/api/', 'index.md', false],
    ['https://example.com/', 'index.md', false],
  ])('leaves docs/: %s on %s', (link, page, outside) => {
    expect(isOutside(link, page)).toBe(outside)
  })
})

describe('the search', () => {
  const { _render: render, miniSearch } = search.options
  const markdown = { render: (text: string) => `<h1>${text}</h1>` }
  const read = (relativePath: string) => render!('A page', { relativePath } as never, markdown as never)

  it('finds a page by words it does not contain, and each such page exists', async () => {
    expect(await read('throttling.md')).toMatch(/^<h1>A page<\/h1><p>.*rate limit/)
    expect(Object.keys(alsoFoundBy).filter((page) => !existsSync(join(root, 'docs', page)))).toEqual([])
  })

  it('leaves out pages for authors of stores, and puts members of types last', async () => {
    const boost = miniSearch!.searchOptions!.boostDocument!

    expect(await read('api/millrace/store/interfaces/Store.md')).toBe('')
    expect(await read('api/millrace/interfaces/Mill.md')).toBe('<h1>A page</h1>')
    expect(boost('/api/millrace/interfaces/Mill.html#close', 'close')).toBeLessThan(
      boost('/cli/workers.html#work', 'work'),
    )
  })
})

it.each([
  { figure: 'scale.svg', script: 'scale-plot.mjs', page: 'docs/performance.md' },
  { figure: 'job-lifecycle.svg', script: 'lifecycle-figure.mjs', page: 'docs/job-lifecycle.md' },
])('$figure is what its script draws, and its page shows it', ({ figure, script, page }) => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts', script), folder], {
    encoding: 'utf8',
    timeout: 20_000,
  })

  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(readFileSync(join(folder, figure), 'utf8')).toBe(readFileSync(join(root, 'docs/images', figure), 'utf8'))
  expect(new Document(page).links).toContain(`images/${figure}`)
})

it("the figure of a job's life shows each state, and no other", () => {
  const figure = readFileSync(join(root, 'docs/images/job-lifecycle.svg'), 'utf8')
  const shown = [...figure.matchAll(/font-weight="bold">([^<]+)</g)].map(([, state]) => state!)

  expect(shown.sort()).toEqual([...jobStates].sort())
})

const page = new Document('docs/throttling.md')

function filesIn(folder: string): Map<string, string> {
  const names = readdirSync(folder).filter((name) => name.startsWith('throttle-'))
  return new Map(names.sort().map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

describe('the plots of throttles', () => {
  it('are what their script draws: drawing them again changes nothing', () => {
    const folder = mkdtempSync(join(tmpdir(), 'millrace-test-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts/throttle-plots.mjs'), folder], {
      encoding: 'utf8',
      timeout: 20_000,
    })

    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(filesIn(folder).size).toBe(4)
    expect(filesIn(folder)).toEqual(filesIn(join(root, 'docs/images')))
  })

  it('are all on their page', () => {
    const shown = page.links.filter((link) => link.startsWith('images/')).map((link) => link.slice('images/'.length))

    expect(shown.sort()).toEqual([...filesIn(join(root, 'docs/images')).keys()])
  })

  it('in text form are those that the command draws', async () => {
    const { text } = page.blocks.find((block) => block.text.startsWith('$ millrace simulate'))!
    const [line, ...shown] = text.split('\n')
    const { code, stdout } = await run(line!.replace('$ millrace ', '').split(' '), { cwd: '/' })

    expect({ code, stdout }).toEqual({ code: 0, stdout: `${shown.join('\n')}\n` })
  })
})
