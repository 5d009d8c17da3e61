/** The page's answers: its files, and for every other address the page itself, which knows its own links. */

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { apiPath } from './api/router.js'
import type { ApiRequest } from './api-request.js'
import { WebRefusal } from './failure.js'

/** Files whose names contain a hash never change. */
const hashed = /[.-][\w-]{8,}\.(?:js|css|woff2|svg|png)$/

/**
 * Paths of files. Deeper paths belong to the page, whatever they end with: ids of jobs and names of queues contain dots
 * too.
 */
const fileName = /^(?:assets\/.*|[^/]*\.\w{1,11})$/

const takesGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0+)?\s*(?:,|$))/i

/** Throws a refusal for a method other than GET and HEAD, and for a missing file. */
export function pageAnswer(asked: ApiRequest, files: ReadonlyMap<string, PageFile> | undefined): Response {
  const { request, path } = asked
  if (request.method !== 'GET' && request.method !== 'HEAD')
    throw new WebRefusal(
      'method-not-allowed',
      `this address takes GET; send changes to addresses under ${apiPath.slice(1)}.`,
      { allow: 'GET, HEAD' },
    )
  const name = path.slice(1)
  const file = files?.get(name)
  if (file !== undefined && name !== 'index.html') return fileAnswer(request, name, file)
  if (fileName.test(name) && name !== 'index.html')
    throw new WebRefusal('not-found', 'the page has no such file. After an update load it anew.')
  const index = files?.get('index.html')
  const html = index === undefined ? unbuilt : withBase(new TextDecoder().decode(index.body), asked)
  return new Response(html, { headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' } })
}

function fileAnswer(request: Request, name: string, { body, gzipped, type, etag }: PageFile): Response {
  const headers = {
    etag,
    'cache-control': hashed.test(name) ? 'public, max-age=31536000, immutable' : 'no-cache',
    ...(gzipped !== undefined && { vary: 'accept-encoding' }),
  }
  if (request.headers.get('if-none-match') === etag) return new Response(null, { status: 304, headers })
  if (gzipped === undefined || !takesGzip.test(request.headers.get('accept-encoding') ?? ''))
    return new Response(body, { headers: { ...headers, 'content-type': type } })
  return new Response(gzipped, { headers: { ...headers, 'content-type': type, 'content-encoding': 'gzip' } })
}

/** Makes links relative to the window, however deep the address is, and whatever a proxy puts before it. */
function withBase(html: string, asked: ApiRequest): string {
  const base = `<base href="${baseOf(asked)}">`
  return html.replace(/<base\b[^>]*>/i, '').replace(/<head\b[^>]*>/i, (head) => head + base)
}

/**
 * The window itself is served without a slash too, and not by a redirect to the address with one: Next redirects the other
 * way.
 */
function baseOf({ path, cookiePath }: ApiRequest): string {
  if (path === '') return `./${cookiePath.split('/').at(-2)}/`
  return '../'.repeat(path.split('/').length - 2) || './'
}

const unbuilt = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Millrace</title></head>
<body>
<h1>Millrace</h1>
<p>The page was not built: this is a checkout of the source, or dist/web/page is missing. The API answers below <code>api/v1/</code>.</p>
</body>
</html>
`

interface PageFile {
  readonly body: Uint8Array<ArrayBuffer>
  /** The same, if it was built compressed. */
  readonly gzipped?: Uint8Array<ArrayBuffer>
  readonly type: string
  /** A weak one: it names the content, compressed or not. */
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
export const pageFolder = fileURLToPath(new URL('./page', import.meta.url))

/**
 * The files of the page by their paths below the folder, such as `assets/index.js`, which may be there as
 * `assets/index.js.gz`; undefined if there is no page. They are read once into memory: a request never becomes a file path.
 */
export function pageFiles(folder: string): ReadonlyMap<string, PageFile> | undefined {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
    const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
    const page = new Map(
      files.map((file) => [relative(folder, file).split(sep).join('/').replace(/\.gz$/, ''), pageFile(file)]),
    )
    return page.has('index.html') ? page : undefined
  } catch {
    return undefined
  }
}

function pageFile(file: string): PageFile {
  const read = new Uint8Array(readFileSync(file))
  const isGzipped = file.endsWith('.gz')
  const body = isGzipped ? new Uint8Array(gunzipSync(read)) : read
  const digest = createHash('sha256').update(body).digest('base64url')
  return {
    body,
    ...(isGzipped && { gzipped: read }),
    type: types[extname(file.replace(/\.gz$/, ''))] ?? 'application/octet-stream',
    etag: `W/"${digest.slice(0, 27)}"`,
  }
}
