import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ask, change } from '../../web/web-scene.js'
import { CommandProcess, runProcess } from '../command-process.js'
import { project } from '../project.js'

const token = 'a-token-of-the-tests-42'

async function dashing(args: readonly string[] = [], env: Record<string, string> = {}) {
  const cwd = project()
  const dash = new CommandProcess(['dash', '--port', '0', '--json', ...args], { cwd, env })
  const [started] = (await dash.events('dash.started')) as { url: string; login: string; token?: string }[]
  return { dash, ...started! }
}

describe('millrace dash', () => {
  it('serves on loopback, with a new token and a link that logs in once', async () => {
    const { url, login, token: made } = await dashing()
    const { headers } = await ask(login)
    const cookie = headers['set-cookie']![0]!.split(';')[0]!
    const overview = await ask(`${url}/api/v1/overview`, { headers: { authorization: `Bearer ${made}` } })

    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect((await ask(`${url}/api/v1/session`, { headers: { cookie } })).json).toMatchObject({ user: 'token' })
    expect(overview.json).toMatchObject({ queues: [{ name: 'default' }, { name: 'slow' }] })
    expect((await ask(`${url}/api/v1/overview`)).status).toBe(401)
    expect((await ask(`${url}/metrics`, { headers: { authorization: `Bearer ${made}` } })).text).toContain(
      'millrace_up 1\n',
    )
    expect((await ask(login)).status).toBe(401)
  })

  it('reads its token from the environment, never prints it, and changes nothing if it is read-only', async () => {
    const { dash, url, ...printed } = await dashing(['--read-only'], { MILLRACE_DASH_TOKEN: token })
    const headers = { ...change, authorization: `Bearer ${token}` }
    const paused = await ask(`${url}/api/v1/queues/default/pause`, { method: 'POST', headers, body: {} })
    dash.kill('SIGTERM')

    expect(paused.status).toBe(403)
    expect(printed).not.toHaveProperty('token')
    expect(JSON.stringify(await dash.end())).not.toContain(token)
  })

  it('exits within a second of SIGTERM, even with an open event stream and a slow client', async () => {
    const { dash, url } = await dashing([], { MILLRACE_DASH_TOKEN: token })
    const over = new AbortController()
    onTestFinished(() => over.abort())
    const { body } = await fetch(`${url}/api/v1/events`, {
      headers: { authorization: `Bearer ${token}` },
      signal: over.signal,
    })
    const reader = body!.getReader()
    await reader.read()
    const { hostname, port } = new URL(url)
    const slow = connect(Number(port), hostname).on('error', () => {})
    slow.write('POST /api/v1/session HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{')
    await once(slow, 'connect')
    const from = performance.now()
    dash.kill('SIGTERM')

    expect(await dash.end()).toMatchObject({ code: 0, signal: null, stderr: '' })
    expect(performance.now() - from).toBeLessThan(2_000)
  })

  it('drops a connection that sends no headers, and keeps serving', async () => {
    const { url } = await dashing([], { MILLRACE_DASH_TOKEN: token })
    const { hostname, port } = new URL(url)
    const sockets = Array.from({ length: 50 }, (_, i) => {
      const socket = connect(Number(port), hostname).on('error', () => {})
      if (i % 2 === 0) socket.write('GET / HTTP/1.1\r\nx-slow: ')
      return socket
    })
    const ended = sockets.map((socket) => once(socket.resume(), 'close'))
    expect((await ask(`${url}/health`)).status).toBe(200)
    await Promise.all(ended)

    expect((await ask(`${url}/health`)).status).toBe(200)
  })

  it.each([
    ['without a token', ['--host', '0.0.0.0', '--allow-remote'], {}, /MILLRACE_DASH_TOKEN/],
    ['unless that is meant', ['--host', '0.0.0.0'], { MILLRACE_DASH_TOKEN: token }, /--allow-remote/],
    [
      'with a token that is guessed soon',
      ['--token', 'secret'],
      {},
      /--token \(or MILLRACE_DASH_TOKEN\) must be 16 to 1,024 characters/,
    ],
    ['on no port', ['--port', '65536'], {}, /from 0 to 65,535/],
  ])('does not listen %s', async (_, args, env, words) => {
    const { code, stderr, stdout } = await runProcess(['dash', ...args], { cwd: project(), env })

    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(words)
    expect(stderr).not.toContain("'secret'")
  })

  it('accepts other machines if --allow-remote is given, under the host names of this machine and those that are configured', async () => {
    const { url } = await dashing(['--host', '0.0.0.0', '--allow-remote', '--hosts', 'jobs.example.org'], {
      MILLRACE_DASH_TOKEN: token,
    })
    const by = async (host: string) => (await ask(`${url}/health`, { headers: { host } })).status

    expect(url).toMatch(/^http:\/\/localhost:/)
    expect([await by('jobs.example.org'), await by('localhost'), await by('evil.example')]).toEqual([200, 200, 421])
  })

  it('says that another process listens on the port, and exits with 1', async () => {
    const { url } = await dashing()
    const { code, stderr } = await runProcess(['dash', '--port', new URL(url).port], { cwd: project() })

    expect([code, stderr]).toMatchObject([1, expect.stringMatching(/another process listens there/)])
  })
})
