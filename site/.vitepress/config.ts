/** The configuration of the site: the pages of `docs/`, the sidebar and the search, built without a network. */

import { cpSync } from 'node:fs'
import { defineConfig } from 'vitepress'
import { anchorOf } from '../anchor.js'
import { isOutside } from '../outside-link.js'
import { search } from '../search.js'
import { pagesFolder, sidebar } from '../sidebar.js'

export default defineConfig({
  title: 'Millrace',
  description: 'A job queue for work that must be prioritised, ordered, throttled or very long.',
  lang: 'en',
  srcDir: '../docs',
  outDir: 'dist',
  cacheDir: '../node_modules/.cache/vitepress',
  // No picture of its own: without this a browser asks for one that is not there.
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  // Addresses that every static server answers, and a browser that opens the files.
  cleanUrls: false,
  appearance: true,
  markdown: {
    // `<queue>` in a heading is an argument of a command, no element.
    html: false,
    anchor: { slugify: anchorOf },
    config: (markdown) => {
      const open = markdown.renderer.rules['link_open']
      markdown.renderer.rules['link_open'] = (tokens, index, options, env, self) => {
        const token = tokens[index]
        if (token !== undefined && isOutside(String(token.attrGet('href')), env.relativePath)) token.attrs = null
        return open?.(tokens, index, options, env, self) ?? self.renderToken(tokens, index, options)
      }
    },
  },
  // Files that pages offer for download. VitePress takes along pages and pictures only.
  buildEnd: ({ outDir }) =>
    cpSync(pagesFolder, outDir, { recursive: true, filter: (path) => !/\.md$|docs\/(?:api|images)$/.test(path) }),
  themeConfig: {
    siteTitle: 'Millrace',
    nav: [
      { text: 'Start', link: '/start/web-app', activeMatch: '^/start/' },
      { text: 'Guides', link: '/guides/welcome-mail', activeMatch: '^/guides/' },
      { text: 'API', link: '/api/', activeMatch: '^/api/' },
      { text: 'Command line', link: '/cli', activeMatch: '^/cli' },
      { text: 'Compare', link: '/compare' },
    ],
    sidebar,
    outline: { level: [2, 3] },
    search,
  },
})
