/** A site of the demo's crawl: a web server on the loopback with real pages, the documentation, that logs who asks when. */

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

/** One request, as the site itself saw it. */
export interface Visit {
  readonly path: string
  /** On the clock of the site's process. */
  readonly at: number
}

export class Site {
  readonly visits: Visit[] = []
  readonly #server: Server
  readonly #root: string

  private constructor(root: string) {
    this.#root = root
    this.#server = createServer((request, response) => {
      const path = new URL(request.url!, 'http://site').pathname
      this.visits.push({ path, at: performance.now() })
      const page = pageAt(this.#root, path)
      response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'text/markdown; charset=utf-8' })
      response.end(page ?? 'There is no such page.\n')
    })
  }

  /** Serves the Markdown files below the folder, on a port of its own. */
  static async open(root: string): Promise<Site> {
    const site = new Site(root)
    site.#server.listen(0, '127.0.0.1')
    await once(site.#server, 'listening')
    return site
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/** The page; undefined where there is none. */
export function pageAt(root: string, path: string): string | undefined {
  if (!path.endsWith('.md')) return undefined
  try {
    return readFileSync(join(root, path), 'utf8')
  } catch {
    return undefined
  }
}

/** The pages of the same site that this one links to, as paths. */
export function linksIn(page: string, path: string): string[] {
  const here = new URL(path, 'http://site')
  const links = [...page.matchAll(/\]\(([^)\s#]+)[^)]*\)/g)].map(([, target]) => new URL(target!, here))
  const paths = links.filter(({ host }) => host === here.host).map(({ pathname }) => pathname)
  return [...new Set(paths)].filter((target) => target.endsWith('.md'))
}
