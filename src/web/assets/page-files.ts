/** The files of the page, read once into memory: a request never becomes a file path. */

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface PageFile {
  readonly body: Uint8Array<ArrayBuffer>
  readonly type: string
  readonly etag: string
}

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
}

/** The folder of the page that was built with the package. */
export const pageFolder = fileURLToPath(new URL('../page', import.meta.url))

/** By their paths below the folder, such as `assets/index.js`; undefined if there is no page. */
export function pageFiles(folder: string): ReadonlyMap<string, PageFile> | undefined {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
    const page = new Map(files.map((file) => [relative(folder, file).split(sep).join('/'), pageFile(file)]))
    return page.has('index.html') ? page : undefined
  } catch {
    return undefined
  }
}

function pageFile(file: string): PageFile {
  const body = new Uint8Array(readFileSync(file))
  const digest = createHash('sha256').update(body).digest('base64url')
  return { body, type: types[extname(file)] ?? 'application/octet-stream', etag: `"${digest.slice(0, 27)}"` }
}
