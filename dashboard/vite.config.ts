/** The build of the page: one script and one style sheet, named by their content, into `dist/web/page`. */

import tailwindcss from '@tailwindcss/vite'
import { defineConfig } from 'vite'

export default defineConfig({
  // Every link is relative: the server says by `<base>` where the window begins.
  base: './',
  plugins: [tailwindcss()],
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
