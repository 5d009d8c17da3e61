/** The sidebar of the site: it leads to every page of the documentation, and to nothing else. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isOutside } from '../site/outside-link.js'
import { apiPages, type SidebarEntry, sidebar } from '../site/sidebar.js'
import { root } from './cli/project.js'
import { documents } from './document.js'

const linksOf = (entries: readonly SidebarEntry[]): string[] =>
  entries.flatMap(({ link, items = [] }) => [...(link === undefined ? [] : [link]), ...linksOf(items)])

describe('the sidebar', () => {
  const links = linksOf(sidebar)
  const isOfApi = (link: string) => link.startsWith('/api/')

  it('has every page of docs/ once, but for the index, which is the home page', () => {
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
  ])('is one that leaves docs/: %s on %s', (link, page, outside) => {
    expect(isOutside(link, page)).toBe(outside)
  })
})
