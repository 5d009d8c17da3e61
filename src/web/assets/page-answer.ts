/** The page's answers: its files, and for every other address the page itself, which knows its own links. */

import { apiPath } from '../api/router.js'
import type { Asked } from '../asked.js'
import { WebRefusal } from '../refusal.js'
import type { PageFile } from './page-files.js'

/** Files whose names contain a hash never change. */
const hashed = /[.-][\w-]{8,}\.(?:js|css|woff2|svg|png)$/

/**
 * Paths of files. Deeper paths belong to the page, whatever they end with: ids of jobs and names of queues contain dots
 * too.
 */
const fileName = /^(?:assets\/.*|[^/]*\.\w{1,11})$/

/** Throws a refusal for a method other than GET and HEAD, and for a missing file. */
export function pageAnswer({ request, path }: Asked, files: ReadonlyMap<string, PageFile> | undefined): Response {
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
  const html = index === undefined ? unbuilt : withBase(new TextDecoder().decode(index.body), path)
  return new Response(html, { headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' } })
}

function fileAnswer(request: Request, name: string, { body, type, etag }: PageFile): Response {
  const headers = {
    etag,
    'cache-control': hashed.test(name) ? 'public, max-age=31536000, immutable' : 'no-cache',
  }
  if (request.headers.get('if-none-match') === etag) return new Response(null, { status: 304, headers })
  return new Response(body, { headers: { ...headers, 'content-type': type } })
}

/** Makes links relative to the window, however deep the address is, and whatever a proxy puts before it. */
function withBase(html: string, path: string): string {
  const steps = path.split('/').length - 2
  const base = `<base href="${steps === 0 ? './' : '../'.repeat(steps)}">`
  return html.replace(/<base\b[^>]*>/i, '').replace(/<head\b[^>]*>/i, (head) => head + base)
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
