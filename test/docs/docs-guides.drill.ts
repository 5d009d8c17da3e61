/** The guides: their programs run and print what the guide shows; what is for a framework is called without it. */

import { spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { deployFiles } from '#src/cli/commands/scaffold.js'
import { project, root } from '../cli/project.js'
import { Document, documents } from './document.js'

/** Those on Postgres are run by docs-postgres.test.ts. */
const guides = documents().filter(({ path }) => /^docs\/guides\/(?!drizzle|prisma)/.test(path))
const guide = (name: string) => guides.find(({ path }) => path === `docs/guides/${name}.md`)!

/** A folder with the files of a guide, in which the modules that it imports are installed. */
function folderOf({ blocks }: Document): string {
  const cwd = project({
    'package.json': '{"type":"module"}',
    ...Object.fromEntries(blocks.flatMap(({ file, text }) => (file === undefined ? [] : [[file, text]]))),
  })
  for (const name of ['zod', 'hono', '@photostructure/sqlite']) {
    mkdirSync(dirname(join(cwd, 'node_modules', name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', name), join(cwd, 'node_modules', name))
  }
  return cwd
}

function execute(cwd: string, ...args: string[]) {
  const { NODE_TEST_CONTEXT: _context, MILLRACE_STORE: _store, ...env } = process.env
  return spawnSync(process.execPath, args, { cwd, encoding: 'utf8', timeout: 45_000, env })
}

const jiti = join(root, 'node_modules/jiti/lib/jiti-cli.mjs')

/** Programs with what the block behind them says that they print. */
const programs = guides.flatMap(({ path, blocks }) =>
  blocks.flatMap(({ language, file }, i) => {
    const shown = blocks[i + 1]
    if (language !== 'js' || file === undefined || shown?.language !== 'text') return []
    return [{ path, file, prints: `${shown.text}\n` }]
  }),
)

describe('the guides', () => {
  it.each(programs)('run: $path, $file', { timeout: 60_000 }, ({ path, file, prints }) => {
    const { status, stdout, stderr } = execute(folderOf(new Document(path)), file)

    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: prints, stderr: '' })
  })

  it('show the output of each program, except files that another one imports', () => {
    const files = guides.flatMap(({ blocks }) =>
      blocks.flatMap(({ language, file }) => (language === 'js' ? [file ?? 'a block without a name'] : [])),
    )
    const imported = ['encode-task.mjs', 'shop.mjs', 'shop.test.mjs']

    expect(files.sort()).toEqual([...imported, ...programs.map(({ file }) => file)].sort())
  })

  it('have tests for tasks, and these pass', { timeout: 60_000 }, () => {
    const { status, stdout } = execute(folderOf(guide('test-tasks')), '--test', 'shop.test.mjs')

    expect(stdout).toMatch(/pass 3\n/)
    expect(status).toBe(0)
  })

  it('enqueue in the action for Next.js, and stream the status in its route', { timeout: 60_000 }, () => {
    const cwd = folderOf(guide('nextjs'))
    const call = `import { startExport } from './app/actions.ts'
import { GET } from './app/exports/[id]/events/route.ts'
import mill from './millrace.config.ts'
const form = new FormData()
form.set('year', '2026')
const id = await startExport(form)
const asked = (id: string) => GET(new Request('http://shop/'), { params: Promise.resolve({ id }) })
const [answer, unknown] = [await asked(id), await asked('another')]
const text = answer.text()
await mill.worker().start()
console.log(answer.status, answer.headers.get('content-type'), unknown.status, await text)
await mill.close()`
    writeFileSync(join(cwd, 'call.ts'), call)
    const { status, stdout, stderr } = execute(cwd, jiti, 'call.ts')

    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toMatch(/^200 text\/event-stream 404 event: status\ndata: {"state":"ready"}\n\n/)
    expect(stdout).toMatch(/"result":{"file":"orders-2026.csv"}}\n\nevent: end\ndata: completed\n\n\n$/)
  })

  it('enqueue in the service for NestJS, run the job with another service, and stop in the hook', {
    timeout: 60_000,
  }, () => {
    const cwd = folderOf(guide('nestjs'))
    const call = `import { MailerService } from './mailer.service.ts'
import { millLifeProvider, millProvider } from './mill.provider.ts'
import { OrdersService } from './orders.service.ts'
import { sendEmail } from './tasks.ts'
const mill = millProvider.useFactory(new MailerService())
const life = millLifeProvider.useFactory(mill)
await life.onApplicationBootstrap()
const id = await new OrdersService(mill).confirm('A-1', 'ada@example.com')
console.log(id, await mill.job(sendEmail, id).result())
await life.onApplicationShutdown()`
    writeFileSync(join(cwd, 'call.ts'), call)
    const stdout = `"Order A-1" goes to ada@example.com\nconfirm-A-1 { messageId: '<ada@example.com>' }\n`

    expect(execute(cwd, jiti, 'call.ts')).toMatchObject({ status: 0, stderr: '', stdout })
  })

  it('stream the status of an export to the user who asked for it, until its end', { timeout: 60_000 }, () => {
    const cwd = folderOf(guide('status-in-the-browser'))
    const call = `import { app } from './server.ts'
import { mill } from './jobs.ts'
const headers = { 'x-user': 'ada' }
const { id } = await (await app.request('/exports', { method: 'POST', headers })).json()
const stranger = await app.request('/exports/' + id + '/events', { headers: { 'x-user': 'eve' } })
const answer = await app.request('/exports/' + id + '/events', { headers })
const text = answer.text()
await mill.worker().start()
console.log(stranger.status, await text)
const asked = await app.request('/exports/' + id, { headers })
console.log(await asked.json())
await mill.close()`
    writeFileSync(join(cwd, 'call.ts'), call)
    const { status, stdout, stderr } = execute(cwd, jiti, 'call.ts')

    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toMatch(/^404 event: status\ndata: {"state":"ready"}\n\n/)
    expect(stdout).toMatch(
      /data: {"state":"completed",.*"result":{"file":"orders-2026.csv"}}\n\nevent: end\ndata: completed\n\n/,
    )
    expect(stdout).toMatch(/state: 'completed'/)
  })

  it('show the deployment files as `millrace init` writes them', () => {
    const { Dockerfile, 'deploy/shop.service': unit } = deployFiles({ name: 'shop', store: 'sqlite:.millrace/jobs.db' })
    const [service, image] = guide('production').blocks
    const lines = (text: string) => text.split('\n').filter((line) => line !== '')

    expect(lines(image!.text)).toEqual(lines(Dockerfile!))
    expect(lines(unit!)).toEqual(expect.arrayContaining(lines(service!.text)))
  })
})
