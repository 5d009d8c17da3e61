/** The figure: a picture of the documents in SVG, legible on white and on black. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const [grey, blue, orange] = ['#7d8590', '#3b82f6', '#d97706']

const images = fileURLToPath(new URL('../docs/images', import.meta.url))

export const round = (n) => String(Math.round(n * 10) / 10)

/** Grey, from its start and not bold, unless something else is given. */
export function text(x, y, words, { color, anchor, bold = false, size } = {}) {
  const attributes = [
    ...(color === undefined ? [] : [` fill="${color}"`]),
    ...(anchor === undefined ? [] : [` text-anchor="${anchor}"`]),
    ...(size === undefined ? [] : [` font-size="${size}"`]),
    ...(bold ? [' font-weight="bold"'] : []),
  ]
  return `<text x="${round(x)}" y="${round(y)}"${attributes.join('')}>${words}</text>`
}

/** Writes the figure as `name` into docs/images, or into the folder that the command line names. */
export function writeFigure(name, title, { width, height }, parts) {
  const lines = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="12" fill="${grey}" role="img">`,
    `<title>${title}</title>`,
    ...parts,
    '</svg>',
  ]
  writeFileSync(join(process.argv[2] ?? images, name), `${lines.join('\n')}\n`)
}
