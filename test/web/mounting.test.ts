/** Mounting: the window in each framework that the documentation names does an action there, over real HTTP. */

import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { serve } from '@hono/node-server'
import express from 'express'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import type { Mill } from 'millrace'
import { type WebHandler, webHandler } from 'millrace/web'
import { describe, expect, it, onTestFinished } from 'vitest'
import { pageAnswer, pageFiles } from '#src/web/page-answer.js'
import { project } from '../cli/project.js'
import { ask, bearer, change, sceneMill, served, token } from './web-scene.js'

type Mounted = (window: WebHandler) => Promise<string> | string

async function listening(server: Server): Promise<string> {
  if (!server.listening) await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Each gives the URL of the server; the window lies below `/jobs`, or at the root. */
const mountings: Readonly<
  Record<string, { readonly below: string; readonly basePath?: string; readonly mount: Mounted }>
> = {
  'node:http': { below: '', mount: (window) => served(window.node) },
  'Express 5 below a path': {
    below: '/jobs',
    mount: (window) => listening(express().use('/jobs', window.node).listen(0, '127.0.0.1')),
  },
  'Express 5 behind express.json()': {
    below: '/admin/jobs',
    mount: (window) => {
      const app = express().use(express.json())
      const router = express.Router()
      router.use('/jobs', window.node)
      return listening(app.use('/admin', router).listen(0, '127.0.0.1'))
    },
  },
  'Fastify 5': {
    below: '/jobs',
    basePath: '/jobs',
    mount: async (window) => {
      const app = fastify()
      await app.register(async (scope) => {
        scope.removeAllContentTypeParsers()
        scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
        scope.all('/jobs*', (request, reply) => {
          reply.hijack()
          window.node(request.raw, reply.raw)
        })
      })
      onTestFinished(() => app.close())
      return app.listen({ host: '127.0.0.1', port: 0 })
    },
  },
  'Koa 3': {
    below: '/jobs',
    basePath: '/jobs',
    mount: (window) => {
      const app = new Koa()
      app.use((context, next) => {
        if (!context.path.startsWith('/jobs')) return next()
        context.respond = false
        window.node(context.req, context.res)
        return undefined
      })
      return listening(app.listen(0, '127.0.0.1'))
    },
  },
  Hono: {
    below: '/jobs',
    basePath: '/jobs',
    mount: (window) => {
      const app = new Hono()
      app.all('/jobs/*', (context) => window.fetch(context.req.raw))
      return listening(serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }) as Server)
    },
  },
  'a route of Next, which gets a web request': {
    below: '/jobs',
    basePath: '/jobs',
    mount: (window) => {
      // As `app/jobs/[[...path]]/route.ts` exports it, behind the redirect by which Next takes the slash from every address.
      const route = { GET: window.fetch, POST: window.fetch }
      const withoutSlash = ({ url }: Request) =>
        /\/$/.test(new URL(url).pathname) && Response.redirect(url.replace(/\/$/, ''), 308)
      return listening(
        serve({
          fetch: (request) => withoutSlash(request) || route[request.method as 'GET']!(request),
          port: 0,
          hostname: '127.0.0.1',
        }) as Server,
      )
    },
  },
}

describe.each(Object.entries(mountings))('in %s', (_, { below, basePath, mount }) => {
  async function mounted(): Promise<{ mill: Mill; url: string; audits: string[] }> {
    const mill = await sceneMill('sqlite')
    const audits: string[] = []
    const window = webHandler(mill, {
      token,
      onAction: ({ action }) => void audits.push(action),
      ...(basePath && { basePath }),
    })
    onTestFinished(() => window.close())
    return { mill, url: `${await mount(window)}${below}`, audits }
  }

  it('an action is done, a wrong one refused, and a page served', async () => {
    const { mill, url, audits } = await mounted()
    const headers = { ...bearer, ...change }
    const done = await ask(`${url}/api/v1/queues/mail/jobs`, {
      method: 'POST',
      headers,
      body: { task: 'send-mail', id: 'a/b c', input: { to: 'ada' } },
    })
    const cancelled = await ask(`${url}/api/v1/queues/mail/jobs/${encodeURIComponent('a/b c')}/cancel`, {
      method: 'POST',
      headers,
      body: {},
    })
    const refused = await ask(`${url}/api/v1/queues/mail/pause`, { method: 'POST', headers, body: { force: true } })
    const page = await ask(`${url}/queues/mail`)

    expect([done.status, cancelled.json, refused.status]).toEqual([201, { changed: 1, more: false }, 400])
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
    expect(audits).toEqual(['job.enqueue', 'job.cancel'])
    expect((await mill.queue('mail').depth()).ready).toBe(0)
  })

  it('the page is there with and without a slash, and its links begin below the window', async () => {
    const { url } = await mounted()
    for (const address of [url, `${url}/`]) {
      const page = await fetch(address)
      const html = await page.text()
      const base = new URL(/<base href="([^"]*)">/.exec(html)![1]!, page.url).href

      expect([page.status, base], address).toEqual([200, `${url}/`])
    }
  })

  it('a stream arrives as it is written', async () => {
    const { url } = await mounted()
    const over = new AbortController()
    const { body, headers } = await fetch(`${url}/api/v1/events`, { headers: bearer, signal: over.signal })
    const { value } = await body!.getReader().read()

    expect(headers.get('content-type')).toMatch(/^text\/event-stream/)
    expect(new TextDecoder().decode(value)).toMatch(/^event: overview\ndata: \{/)
    over.abort()
  })
})

it('a path outside the web handler goes on in Express, and is not found elsewhere', async () => {
  const mill = await sceneMill('sqlite')
  const window = webHandler(mill, { token, basePath: '/jobs' })
  const app = express()
    .use(window.node)
    .get('/other', (_request, response) => void response.send('mine'))
  const url = await listening(app.listen(0, '127.0.0.1'))

  expect((await ask(`${url}/other`)).text).toBe('mine')
  expect((await ask(`${url}/jobs`)).status).toBe(200)
  expect((await window.fetch(new Request('http://localhost/other'))).status).toBe(404)
})

it('a body that was consumed before is refused, with a remedy', async () => {
  const mill = await sceneMill('sqlite')
  const window = webHandler(mill, { token })
  const url = await served(async (request, response) => {
    for await (const _ of request);
    window.node(request, response)
  })
  const answer = await ask(`${url}/api/v1/queues/mail/pause`, {
    method: 'POST',
    headers: { ...bearer, ...change },
    body: {},
  })

  expect([answer.status, answer.text]).toMatchObject([
    400,
    expect.stringContaining('mount the dashboard before that parser'),
  ])
})

/** Gets addresses of the page in this folder. */
function pageIn(folder: string) {
  const files = pageFiles(folder)
  return (path: string, headers: Record<string, string> = {}) =>
    pageAnswer(
      {
        request: new Request(`http://localhost${path}`, { headers }),
        path,
        incoming: undefined,
        host: 'localhost',
        address: '',
        query: new URLSearchParams(),
        cookiePath: '/',
      },
      files,
    )
}

it('the page is served with its files, and its links start at the mount path from any depth', async () => {
  const folder = project({
    'index.html':
      '<!doctype html><html><head><base href="./"><script src="assets/index-abcd1234.js"></script></head></html>',
    'assets/index-abcd1234.js': 'let a',
    'icon.svg': '<svg/>',
  })
  const get = pageIn(folder)
  const script = get('/assets/index-abcd1234.js')

  for (const [path, base] of [
    ['/', './'],
    ['/queues', './'],
    ['/queues/mail', '../'],
    ['/queues/mail/jobs/1', '../../../'],
    ['/queues/mail.v2', '../'],
    ['/queues/mail/jobs/report.pdf', '../../../'],
  ] as const)
    expect(await get(path).text()).toContain(`<head><base href="${base}"><script`)
  expect([await script.text(), script.headers.get('content-type'), script.headers.get('cache-control')]).toEqual([
    'let a',
    'text/javascript; charset=utf-8',
    'public, max-age=31536000, immutable',
  ])
  expect(get('/assets/index-abcd1234.js', { 'if-none-match': script.headers.get('etag')! }).status).toBe(304)
  expect(get('/icon.svg').headers.get('cache-control')).toBe('no-cache')
  expect(() => get('/assets/other.js')).toThrow('no such file')
  expect(pageFiles(`${folder}/nowhere`)).toBeUndefined()
})

it('a file that was built compressed is sent compressed if the browser takes gzip, otherwise as it is', async () => {
  const folder = project({ 'index.html': '<!doctype html>' })
  writeFileSync(join(folder, 'style.css.gz'), gzipSync('a{}'))
  const page = pageIn(folder)
  const get = (encodings: string | undefined) =>
    page('/style.css', encodings === undefined ? {} : { 'accept-encoding': encodings })

  for (const encodings of ['gzip', 'br, gzip;q=0.8']) {
    const answer = get(encodings)
    const { headers } = answer
    const body = Buffer.from(await answer.arrayBuffer())
    expect([headers.get('content-encoding'), headers.get('content-type'), headers.get('vary')], encodings).toEqual([
      'gzip',
      'text/css; charset=utf-8',
      'accept-encoding',
    ])
    expect(gunzipSync(body).toString()).toBe('a{}')
  }
  for (const encodings of [undefined, 'br', 'gzip;q=0, br', 'gzip; q=0.0']) {
    const answer = get(encodings)
    expect([answer.headers.get('content-encoding'), await answer.text()], encodings).toEqual([null, 'a{}'])
  }
})
