/** Who is let in, and who is not: every refusal of the window, over real HTTP. */

import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { webHandler } from 'millrace/web'
import { describe, expect, it } from 'vitest'
import { FailureLimit, Secret, Sessions } from '#src/web/access.js'
import { isAllowedHost, isOwnOrigin } from '#src/web/host-list.js'
import { testMill } from '../test-mill.js'
import { type Answered, type Asking, ask, bearer, change, sceneMill, served, token, WebScene } from './web-scene.js'

const codeOf = ({ json }: Answered) => (json as { error: { code: string } }).error.code

/** Logs in by the token, as the page does. */
async function loggedIn(scene: WebScene): Promise<{ cookie: string; csrf: string }> {
  const answer = await ask(`${scene.url}/api/v1/session`, { method: 'POST', headers: change, body: { token } })
  expect(answer.status).toBe(200)
  const cookie = answer.headers['set-cookie']![0]!.split(';')[0]!
  const { json } = await ask(`${scene.url}/api/v1/session`, { headers: { cookie } })
  return { cookie, csrf: (json as { csrf: string }).csrf }
}

describe('a web handler with a token', () => {
  const pause: Asking = { method: 'POST', body: {}, headers: change }

  it.each([
    ['no token', {}],
    ['a wrong token', { authorization: 'Bearer not-the-token-of-it' }],
    ['a token of another kind', { authorization: `Basic ${token}` }],
    [
      'a cookie that nobody signed',
      {
        cookie: `${new Sessions(new Secret(token), () => 0).begin({ name: 'x', role: 'operator' }, '/', false).split('=')[0]}=e30.e30`,
      },
    ],
  ])('refuses reads and changes with %s', async (_, headers) => {
    const scene = await WebScene.on('sqlite')
    const read = await ask(`${scene.url}/api/v1/overview`, { headers })
    const changed = await ask(`${scene.url}/api/v1/queues/mail/pause`, { ...pause, headers: { ...change, ...headers } })

    expect([read.status, changed.status]).toEqual([401, 401])
    expect([codeOf(read), codeOf(changed)]).toEqual(['unauthorized', 'unauthorized'])
    expect((await scene.mill.queue('mail').depth()).paused).toBe(false)
    expect(scene.audits).toEqual([])
  })

  it('refuses other hosts: a page whose name was pointed here sends its own', async () => {
    const scene = await WebScene.on('sqlite', { token, hosts: ['jobs.example.org'] })
    const answers = await Promise.all(
      ['evil.example', 'evil.example:80', '127.0.0.1.evil.example', 'localhost@evil.example'].map((host) =>
        ask(`${scene.url}/api/v1/overview`, { headers: { ...bearer, host } }),
      ),
    )
    const pages = await ask(scene.url, { headers: { host: 'evil.example' } })

    expect(answers.map(({ status }) => status)).toEqual([421, 421, 421, 421])
    expect([pages.status, codeOf(pages)]).toEqual([421, 'host'])
    for (const host of ['localhost:99', '[::1]:1', 'JOBS.example.org', 'jobs.example.org:8443'])
      expect((await ask(`${scene.url}/api/v1/overview`, { headers: { ...bearer, host } })).status).toBe(200)
  })

  it.each([
    ['of another origin', { origin: 'https://evil.example' }],
    ['of another port of this machine', { origin: 'http://127.0.0.1:1' }],
    ['of no origin', { origin: 'null' }],
    ['of another site', { 'sec-fetch-site': 'cross-site' }],
    ['of a sister site', { 'sec-fetch-site': 'same-site' }],
  ])('refuses reads and changes from a page %s', async (_, headers) => {
    const scene = await WebScene.on('sqlite')
    const read = await scene.get('overview', { headers })
    const changed = await scene.post('queues/mail/pause', {}, { headers })

    expect([read.status, changed.status]).toEqual([403, 403])
    expect((await scene.mill.queue('mail').depth()).paused).toBe(false)
  })

  it('lets its own page change something through a session with its token', async () => {
    const scene = await WebScene.on('sqlite')
    const { cookie, csrf } = await loggedIn(scene)
    const origin = new URL(scene.url).origin
    const changed = await ask(`${scene.url}/api/v1/queues/mail/pause`, {
      ...pause,
      headers: { ...change, cookie, 'x-csrf-token': csrf, origin, 'sec-fetch-site': 'same-origin' },
    })

    expect([changed.status, changed.json]).toEqual([200, { changed: 1, more: false }])
    expect(scene.audits).toMatchObject([
      {
        who: 'token',
        action: 'queue.pause',
        on: { queue: 'mail' },
        changed: 1,
        address: expect.stringContaining('127.0.0.1'),
      },
    ])
  })

  it('refuses a change by a session without the header, or with a missing or foreign CSRF token', async () => {
    const scene = await WebScene.on('sqlite')
    const [mine, other] = [await loggedIn(scene), await loggedIn(scene)]
    const tries = [
      { cookie: mine.cookie, 'x-csrf-token': mine.csrf },
      { cookie: mine.cookie, 'x-millrace': '1' },
      { cookie: mine.cookie, 'x-millrace': '1', 'x-csrf-token': '' },
      { cookie: mine.cookie, 'x-millrace': '1', 'x-csrf-token': other.csrf },
    ]
    for (const headers of tries) {
      const answer = await ask(`${scene.url}/api/v1/queues/mail/pause`, { ...pause, headers })
      expect([answer.status, codeOf(answer)]).toEqual([403, 'csrf'])
    }
    expect((await scene.mill.queue('mail').depth()).paused).toBe(false)
  })

  it('sets a cookie that scripts cannot see and other sites do not send, and removes it', async () => {
    const scene = await WebScene.on('sqlite', { token, basePath: '/jobs' })
    const base = `${scene.url}/jobs/api/v1/session`
    const [begun] = (await ask(base, { method: 'POST', headers: change, body: { token } })).headers['set-cookie']!
    const [ended] = (await ask(base, { method: 'DELETE', headers: change })).headers['set-cookie']!

    expect(begun).toMatch(/^millrace-[\w-]{8}=[\w-]+\.[\w-]+; Path=\/jobs\/; Max-Age=43200; HttpOnly; SameSite=Strict$/)
    expect(ended).toMatch(/^millrace-[\w-]{8}=; Path=\/jobs\/; Max-Age=0; HttpOnly; SameSite=Strict$/)
  })

  it('allows one log-in by a login path', async () => {
    const scene = await WebScene.on('sqlite')
    const path = (scene.window as unknown as { loginPath(): string }).loginPath()
    const first = await ask(`${scene.url}/${path}`)
    const cookie = first.headers['set-cookie']![0]!.split(';')[0]!

    expect([first.status, first.headers.location]).toEqual([303, '../'])
    expect((await ask(`${scene.url}/api/v1/session`, { headers: { cookie } })).json).toMatchObject({ role: 'operator' })
    expect((await ask(`${scene.url}/${path}`)).status).toBe(401)
  })

  it('allows an address ten wrong tokens a minute, then asks it to wait, and always accepts the right one', async () => {
    const scene = await WebScene.on('sqlite')
    const wrong = () =>
      ask(`${scene.url}/api/v1/overview`, { headers: { authorization: 'Bearer wrong-and-wrong-again' } })
    const statuses = []
    for (let i = 0; i < 11; i += 1) statuses.push((await wrong()).status)
    const last = await wrong()

    expect(statuses).toEqual([...new Array(10).fill(401), 429])
    expect([last.status, codeOf(last)]).toEqual([429, 'too-many-attempts'])
    expect(Number(last.headers['retry-after'])).toBeGreaterThan(0)
    expect((await scene.get('overview')).status).toBe(200)
    expect((await loggedIn(scene)).csrf).not.toBe('')
  })

  it('asks `authorize` about a bearer that is not the token, and does not count it as a wrong token', async () => {
    const signed = 'Bearer signed-by-the-application'
    const authorize = (request: Request) =>
      request.headers.get('authorization') === signed && ({ name: 'ada', role: 'viewer' } as const)
    const scene = await WebScene.on('sqlite', { token, authorize })
    const statusWith = async (authorization: string) =>
      (await ask(`${scene.url}/api/v1/session`, { headers: { authorization } })).status

    for (let i = 0; i < 12; i += 1) expect(await statusWith(signed)).toBe(200)
    for (let i = 0; i < 12; i += 1) expect(await statusWith('Bearer of-nobody')).toBe(401)
    expect(await statusWith(bearer.authorization)).toBe(200)
  })
})

describe('a request', () => {
  it.each([
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }, 'a=1', 415, 'content-type'],
    ['text that a page may send unasked', { 'content-type': 'text/plain' }, '{}', 415, 'content-type'],
    ['no JSON', {}, '{"a":', 400, 'argument-invalid'],
    ['no text', {}, Buffer.from([0x22, 0xff, 0x22]), 400, 'argument-invalid'],
    ['unknown fields', {}, '{"force":true}', 400, 'argument-invalid'],
    ['a list', {}, '[]', 400, 'argument-invalid'],
    ['more than 1 MiB', {}, `{"a":"${'x'.repeat(1_048_576)}"}`, 413, 'payload-too-large'],
  ])('is refused with %s', async (_, headers, raw, status, code) => {
    const scene = await WebScene.on('sqlite')
    const answer = await scene.get('queues/mail/pause', { method: 'POST', raw, headers: { ...change, ...headers } })

    expect([answer.status, codeOf(answer)]).toEqual([status, code])
    expect((await scene.mill.queue('mail').depth()).paused).toBe(false)
  })

  it('with a large body is refused with its first mistake only, and as too large without a log-in', async () => {
    const scene = await WebScene.on('sqlite')
    const body = (count: number) => `{${Array.from({ length: count }, (_, i) => `"unknown${i}":1`).join()}}`
    const fieldsOf = ({ json }: Answered) => (json as { error: { fields?: unknown[] } }).error.fields
    const small = await scene.get('queues/mail/pause', { method: 'POST', raw: body(20), headers: change })
    const large = await scene.get('queues/mail/pause', { method: 'POST', raw: body(60_000), headers: change })
    const open = await ask(`${scene.url}/api/v1/session`, { method: 'POST', raw: body(60_000), headers: change })

    expect([small.status, fieldsOf(small)?.length]).toEqual([400, 20])
    expect([large.status, fieldsOf(large)?.length]).toEqual([400, 1])
    expect([open.status, codeOf(open)]).toEqual([413, 'payload-too-large'])
    expect(open.text.length).toBeLessThan(500)
  })

  it('of more than 1 MiB is refused even if its length is not announced', async () => {
    const scene = await WebScene.on('sqlite')
    const { hostname, port } = new URL(scene.url)
    const socket = connect(Number(port), hostname)
    const chunk = 'x'.repeat(65_536)
    const head = [
      'POST /api/v1/queues/mail/pause HTTP/1.1',
      `host: ${hostname}:${port}`,
      `authorization: ${bearer.authorization}`,
    ]
    socket.write(
      `${[...head, 'x-millrace: 1', 'content-type: application/json', 'transfer-encoding: chunked', 'connection: close'].join('\r\n')}\r\n\r\n`,
    )
    for (let i = 0; i < 17; i += 1) socket.write(`${chunk.length.toString(16)}\r\n${chunk}\r\n`)
    socket.write('0\r\n\r\n')

    expect(await text(socket)).toMatch(/^HTTP\/1\.1 413 [\s\S]*payload-too-large/)
  })

  it.each([
    ['unknown', 'overview?days=7', 'days'],
    ['given twice', 'search?id=a&id=b', 'twice'],
    ['out of range', 'queues/mail/jobs?limit=201', 'limit'],
    ['no number', 'queues/mail/jobs?limit=1e3', 'limit'],
    ['a cursor of nobody', 'queues/mail/jobs?cursor=abc', 'cursor'],
  ])('is refused with a parameter that is %s', async (_, path, named) => {
    const scene = await WebScene.on('sqlite')
    await scene.mill.ready()
    const answer = await scene.get(path)

    expect([answer.status, codeOf(answer)]).toEqual([400, 'argument-invalid'])
    expect(answer.text).toContain(named)
  })

  it('cannot reach other files: every path is looked up in a list', async () => {
    const scene = await WebScene.on('sqlite')
    const statuses = await Promise.all(
      [
        '/../../package.json',
        '/%2e%2e/%2e%2e/package.json',
        '/..%2f..%2fpackage.json',
        '/assets/..%5c..%5cx.js',
        '/%00.js',
      ].map(async (path) => (await ask(`${scene.url}${path}`)).status),
    )

    expect(statuses).toEqual([404, 404, 404, 404, 404])
  })

  it('may use only the methods in the API', async () => {
    const scene = await WebScene.on('sqlite')
    const answers = await Promise.all(
      ['PUT', 'DELETE', 'PATCH', 'OPTIONS'].map((method) => scene.get('overview', { method, headers: change })),
    )

    expect(answers.map(({ status, headers }) => [status, headers.allow])).toEqual(new Array(4).fill([405, 'GET']))
    expect((await scene.get('nothing')).status).toBe(404)
  })
})

describe('a web handler without a token', () => {
  it('answers this machine, and nobody behind a proxy', async () => {
    const scene = await WebScene.on('sqlite', {})

    expect((await ask(`${scene.url}/api/v1/session`)).json).toMatchObject({ user: 'loopback', role: 'operator' })
    for (const name of ['x-forwarded-for', 'forwarded', 'via', 'x-real-ip'])
      expect((await ask(`${scene.url}/api/v1/session`, { headers: { [name]: '10.0.0.1' } })).status).toBe(401)
  })

  it('asks `authorize` for the name and the role of a user', async () => {
    const scene = await WebScene.on('sqlite', {
      authorize: (request) => {
        const user = request.headers.get('x-user')
        if (user === 'ada') return true
        return user === null ? false : { name: user, role: 'viewer' }
      },
    })
    const asked = (user: Record<string, string>) => ask(`${scene.url}/api/v1/session`, { headers: user })
    const pause = (user: string) =>
      ask(`${scene.url}/api/v1/queues/mail/pause`, { method: 'POST', body: {}, headers: { ...change, 'x-user': user } })

    expect((await asked({})).status).toBe(401)
    expect((await asked({ 'x-user': 'bob' })).json).toMatchObject({ user: 'bob', role: 'viewer' })
    expect([(await pause('bob')).status, (await pause('ada')).status]).toEqual([403, 200])
    expect(scene.audits.map(({ who }) => who)).toEqual(['authorized'])
  })

  it('passes the request of Node to `authorize`, with what a framework has added', async () => {
    const seen: unknown[] = []
    const mill = await sceneMill('sqlite')
    const window = webHandler(mill, {
      authorize: (_request, incoming) => {
        seen.push((incoming as { user?: string } | undefined)?.user)
        return true
      },
    })
    const url = await served((request, response) =>
      window.node(Object.assign(request, { user: 'ada of the session' }), response),
    )
    await ask(`${url}/api/v1/session`)
    await window.fetch(new Request('http://localhost/api/v1/session'))

    expect(seen).toEqual(['ada of the session', undefined])
  })

  it('accepts a web request only if the server says that its peer is this machine', async () => {
    const window = webHandler(await sceneMill('sqlite'))
    const statusFrom = async (peer?: object) =>
      (await window.fetch(new Request('http://localhost/api/v1/session'), peer)).status

    expect(await statusFrom({ address: '127.0.0.1' })).toBe(200)
    expect(await statusFrom({ address: '::1' })).toBe(200)
    expect(await statusFrom({ address: '10.0.0.7' })).toBe(401)
    // As routes of Next are called.
    expect(await statusFrom({ params: Promise.resolve({}) })).toBe(401)
    const refused = await window.fetch(new Request('http://localhost/api/v1/session'))
    expect([refused.status, await refused.text()]).toEqual([401, expect.stringContaining('{ address }')])
  })

  it('changes nothing if it is read-only', async () => {
    const scene = await WebScene.on('sqlite', { readOnly: true })
    const answer = await ask(`${scene.url}/api/v1/queues/mail/pause`, { method: 'POST', body: {}, headers: change })

    expect([answer.status, codeOf(answer)]).toEqual([403, 'forbidden'])
    expect((await ask(`${scene.url}/api/v1/session`)).json).toMatchObject({ readOnly: true })
  })
})

describe('every answer', () => {
  it('has the security headers, including errors and pages', async () => {
    const scene = await WebScene.on('sqlite')
    for (const path of ['/', '/queues/mail', '/api/v1/stats', '/api/v1/nothing', '/nothing.js', '/health']) {
      const { headers } = await ask(`${scene.url}${path}`)
      expect(headers['content-security-policy']).toMatch(
        /^default-src 'none'; script-src 'self'; .*trusted-types 'none'$/,
      )
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-resource-policy': 'same-origin',
        'cache-control': 'no-store',
      })
      expect(headers['access-control-allow-origin']).toBeUndefined()
    }
  })
})

describe('the rules of access', () => {
  it('distinguish hosts and origins as a browser writes them', () => {
    expect(
      ['a.example', 'A.EXAMPLE:80', 'b.example:1', 'b.example:2', 'localhost.'].map((host) =>
        isAllowedHost(host, ['a.example', 'b.example:1']),
      ),
    ).toEqual([true, true, true, false, true])
    const own = (origin: string, hosts: string[] = []) =>
      isOwnOrigin({ origin, site: undefined }, 'x.example:8080', hosts)
    expect([own('http://x.example:8080'), own('https://X.example:8080'), own('http://x.example'), own('null')]).toEqual(
      [true, true, false, false],
    )
    expect(own('https://public.example', ['public.example'])).toBe(true)
  })

  it('forget a session after 12 hours, and at once if the token has changed', () => {
    let now = 0
    const sessions = new Sessions(new Secret('one'), () => now)
    const cookie = sessions.begin({ name: 'token', role: 'operator' }, '/', true).split(';')[0]!

    expect(sessions.find(`other=1; ${cookie}`)).toMatchObject({ name: 'token', role: 'operator' })
    expect(new Sessions(new Secret('two'), () => now).find(cookie)).toBeUndefined()
    now = 12 * 3_600_000
    expect(sessions.find(cookie)).toBeUndefined()
  })

  it('forget the failures of an address after a minute', () => {
    let now = 0
    const limit = new FailureLimit(() => now)
    for (let i = 0; i < 10; i += 1) limit.count('a')
    now = 59_000
    expect([limit.waitMs('a'), limit.waitMs('b')]).toEqual([1_000, 0])
    now = 60_000
    expect(limit.waitMs('a')).toBe(0)
  })
})

it('a web handler refuses senseless options, and does not repeat a token', () => {
  const mill = testMill()
  expect(() => webHandler(mill, { basePath: 'jobs', hosts: ['http://a'], tokn: 'x' } as never)).toThrow(
    /basePath: must begin with a slash[\s\S]*hosts\.0: must be a host[\s\S]*tokn: is not an option/,
  )
  expect(() => webHandler(mill, { token: 'short-secret' })).toThrow(/token: must be 16 to 1,024 characters/)
  expect(() => webHandler(mill, { token: 'short-secret' })).not.toThrow(/short-secret/)
})
