/** The build of the page: scripts and a style sheet, named by their content and compressed, into `dist/web/page`. */

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import tailwindcss from '@tailwindcss/vite'
import { defineConfig, type Plugin } from 'vite'

/** They ship compressed: the package is smaller, and so is what a browser loads. */
const compressed: Plugin = {
  name: 'compressed',
  writeBundle({ dir }) {
    const assets = join(dir!, 'assets')
    for (const name of readdirSync(assets).filter((name) => /\.(?:js|css)$/.test(name))) {
      writeFileSync(join(assets, `${name}.gz`), gzipSync(readFileSync(join(assets, name)), { level: 9 }))
      rmSync(join(assets, name))
    }
  },
}

export default defineConfig({
  // Every link is relative: the server says by `<base>` where the window begins.
  base: './',
  plugins: [tailwindcss(), compressed],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../dist/web/page',
    emptyOutDir: true,
    target: ['chrome123', 'edge123', 'firefox128', 'safari17.5'],
    modulePreload: { polyfill: false },
    // Nothing is put inline: the page may use no other sources than files of its own.
    assetsInlineLimit: 0,
    // The licences of what is bundled want to be told.
    license: { fileName: 'licenses.txt' },
  },
})
