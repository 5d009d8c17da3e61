/** The sidebar of the site: it leads to every page of the documentation, and to nothing else. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isOutside } from '../../site/outside-link.js'
import { alsoFoundBy, search } from '../../site/search.js'
import { apiPages, type SidebarEntry, sidebar } from '../../site/sidebar.js'
import { root } from '../cli/project.js'
import { documents } from './document.js'

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
