/** The output of a command whose reader is slower than the command. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { run } from '../command-in-process.js'
import { project, root } from '../project.js'
import { readSlowly } from './slow-reader.js'

it('a slow reader gets the whole of a long list', async () => {
  const cwd = project()
  const lines = Array.from({ length: 150 }, (_, n) => JSON.stringify({ n, text: 'x'.repeat(1_000) })).join('\n')
  await run('enqueue echo -', { cwd, input: lines })

  const { code, stdout } = await readSlowly(['jobs', 'list', '--limit', '150', '--json'], cwd)

  expect(code).toBe(0)
  const { queues } = JSON.parse(stdout) as { queues: { queue: string; jobs: unknown[] }[] }
  expect(queues.find(({ queue }) => queue === 'default')!.jobs).toHaveLength(150)
})

it('a slow reader of stderr gets the reason of a failure', async () => {
  const { code, stderr } = await readSlowly(['jobs', 'show', 'nobody'], project())

  expect(code).toBe(1)
  expect(stderr).toMatch(/^millrace: .*nobody.*\n$/s)
})

it('a worker that is stopped while nobody reads its log exits with 0, and drops the unread log', async () => {
  const { code, stderr } = await readSlowly(['work'], project(), async (child) => {
    child.kill('SIGTERM')
    await once(child, 'exit')
  })

  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})

it.each([
  ['a command', ['stats', '--json']],
  ['the help', ['--help']],
  ['a completion script', ['completion', 'bash']],
])('%s exits quietly if its reader has gone', async (_, args) => {
  const child = spawn(process.execPath, [join(root, 'dist/cli/main.js'), ...args], { cwd: project(), stdio: 'pipe' })
  child.stdout.destroy()
  const said: Buffer[] = []
  child.stderr.on('data', (bytes: Buffer) => said.push(bytes))

  const [code] = await once(child, 'close')

  expect({ code, said: Buffer.concat(said).toString() }).toEqual({ code: 0, said: '' })
})

it.runIf(process.platform === 'linux')('output that cannot be written is a failure with its reason', async () => {
  const args = ['-c', `'${process.execPath}' '${join(root, 'dist/cli/main.js')}' stats --json > /dev/full`]
  const child = spawn('sh', args, { cwd: project(), stdio: 'pipe' })
  const said: Buffer[] = []
  child.stderr.on('data', (bytes: Buffer) => said.push(bytes))

  const [code] = await once(child, 'close')

  expect(code).toBe(1)
  expect(Buffer.concat(said).toString()).toMatch(/^millrace: .*ENOSPC.*\n$/)
})
