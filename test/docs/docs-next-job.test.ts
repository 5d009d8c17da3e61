/** The next job, as its page shows it: a handler that enqueues by its context. */

import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { CommandProcess, runProcess } from '../cli/command-process.js'
import { project, root } from '../cli/project.js'
import { Document } from './document.js'

it('a job is enqueued and run by the files of the Next.js page, unchanged', { timeout: 60_000 }, async () => {
  const { blocks } = new Document('docs/job-lifecycle.md')
  const cwd = project(Object.fromEntries(blocks.flatMap(({ file, text }) => (file ? [[file, text]] : []))))
  symlinkSync(join(root, 'node_modules', 'zod'), join(cwd, 'node_modules', 'zod'))
  const { code } = await runProcess(['enqueue', 'receive', '{"orderId":"A-1"}'], { cwd })
  const worker = new CommandProcess(['work'], { cwd })
  await worker.stdoutMatches(/2 parcels of A-1 go out, as receive said/)
  worker.kill('SIGTERM')

  expect([code, (await worker.end()).code]).toEqual([0, 0])
})
