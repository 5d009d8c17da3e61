/** The built site: every link of it is alive, and it asks no other host for anything. */

import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { sidebar } from '../../../site/sidebar.js'
import { root } from '../../cli/project.js'

const dist = join(root, 'site/dist')
const read = (file: string) => readFileSync(join(dist, file), 'utf8')

describe('the built site', () => {
  let files: string[] = []
  beforeAll(() => {
    const { status, stderr } = spawnSync('npm', ['run', '--silent', 'site'], { cwd: root, encoding: 'utf8' })
    expect({ status, stderr }).toMatchObject({ status: 0 })
    files = readdirSync(dist, { recursive: true, encoding: 'utf8' })
  }, 300_000)

  it('has a page for each entry of the sidebar, and the files that pages offer', () => {
    const missing = sidebar
      .flatMap(({ items = [] }) => items.flatMap((entry) => [entry, ...(entry.items ?? [])]))
      .map(({ link = '/' }) => (link.endsWith('/') ? `${link}index.html` : `${link}.html`))
      .filter((page) => !existsSync(join(dist, page)))

    expect(missing).toEqual([])
    expect(files).toEqual(expect.arrayContaining(['monitoring/alerts.yml', 'stores/sqs-envelope.schema.json']))
  })

  it('loads scripts, styles, fonts and pictures only from its own host', () => {
    const loads = /(?:<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=|url\()["']?(?:https?:)?\/\/[^"')\s>]+/g
    const foreign = files
      .filter((file) => /\.(?:html|css)$/.test(file))
      .flatMap((file) => [...read(file).matchAll(loads)].map(([load]) => `${file}: ${load}`))

    expect(foreign).toEqual([])
  })

  it('resolves every internal link to an element of a page', () => {
    const dead = files
      .filter((file) => file.endsWith('.html') && !file.startsWith('api/'))
      .flatMap((file) => {
        const text = read(file)
        const ids = new Set([...text.matchAll(/\bid="([^"]+)"/g)].map(([, id]) => id))
        return [...text.matchAll(/href="#([^"]+)"/g)]
          .map(([, anchor]) => decodeURIComponent(anchor!))
          .filter((anchor) => !ids.has(anchor))
          .map((anchor) => `${file}#${anchor}`)
      })

    expect(dead).toEqual([])
  })
})
