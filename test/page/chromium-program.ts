/** The Chromium of this machine: the one that CHROMIUM names, that of the PATH, or Debian's, unpacked once with its fonts. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type MachineProgram, onPath, unpackedProgram } from '#src/store-testing/servers/machine-program.js'
import { root } from '../cli/project.js'

/** How long the first look may take, on a machine that has to load 120 MB. */
export const firstLookMs = 240_000

const folder = 'millrace-chromium'
const fontFile = 'fonts.conf'

/** The fonts of the tree alone: a page measures the same on every machine that unpacks it. */
const fonts = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <dir prefix="relative">usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
  <alias><family>system-ui</family><prefer><family>Inter</family></prefer></alias>
  <alias><family>ui-sans-serif</family><prefer><family>Inter</family></prefer></alias>
  <alias><family>sans-serif</family><prefer><family>Inter</family><family>DejaVu Sans</family></prefer></alias>
  <alias><family>ui-monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
`

const debian = {
  packages: ['chromium', 'fonts-inter', 'fonts-dejavu-core'],
  // The program in /usr/bin is a script that looks for the browser where the package would be installed.
  program: 'usr/lib/chromium/chromium',
  folder,
  prepare: (tree: string) => writeFile(join(tree, fontFile), fonts),
}

/** Throws an error that says what to install. `directory`: in a package whose `node_modules` would keep it. */
export async function chromiumProgram(env = process.env, directory = root): Promise<MachineProgram> {
  const named = env['CHROMIUM'] ?? ''
  const path = await onPath(named === '' ? 'chromium' : named, env)
  if (path !== undefined) return { path, env: {} }
  if (named !== '') throw new Error(`CHROMIUM is '${named}', where no program is: set it to the path of a Chromium`)
  const { path: unpacked, env: libraries } = await unpackedProgram(debian, env, directory).catch((error: Error) => {
    throw new Error(`no browser to test the page with: ${error.message}; install chromium, or set CHROMIUM to its path`)
  })
  return { path: unpacked, env: { ...libraries, FONTCONFIG_FILE: join(unpacked, '../../../..', fontFile) } }
}
