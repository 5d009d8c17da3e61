import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CommandProcess, runJson } from './command-process.js'
import { configFile, project, projectFiles } from './project.js'

describe('a configuration that is named from another folder', () => {
  it('has its store where its own folder says, and makes no second one', async () => {
    const cwd = project()
    const below = join(cwd, 'apps', 'web')
    mkdirSync(below, { recursive: true })
    const config = ['--config', '../../millrace.config.js']
    const { id } = await runJson<{ id: string }>(['enqueue', 'echo', '1'], { cwd })
    const shown = await runJson<{ id: string; state: string }>(['jobs', 'show', id, ...config], { cwd: below })

    expect(shown).toMatchObject({ id, state: 'ready' })
    expect([existsSync(join(cwd, 'jobs.db')), existsSync(join(below, 'jobs.db'))]).toEqual([true, false])
  })
})

describe('the flags of millrace work', () => {
  it('win over what the configuration sets for its workers, and leave the rest to it', async () => {
    const worker = "worker: { concurrency: 3, queues: ['slow'], selector: 'sequential', maxRss: '4GB' },"
    const cwd = project({
      ...projectFiles,
      'millrace.config.js': configFile.replace('  tasks: [', `  ${worker}\n  tasks: [`),
    })
    const started = async (...flags: string[]) => {
      const command = new CommandProcess(['work', '--json', ...flags], { cwd })
      const [line] = await command.events('worker.started')
      command.kill('SIGTERM')
      await command.end()
      const { queues, concurrency } = line as { queues?: object; concurrency?: number }
      return { queues: Object.keys(queues!), concurrency }
    }

    expect(await started()).toEqual({ queues: ['slow'], concurrency: 3 })
    expect(await started('--concurrency', '7')).toEqual({ queues: ['slow'], concurrency: 7 })
    expect(await started('--queues', 'default', '--concurrency', '1')).toEqual({ queues: ['default'], concurrency: 1 })
  }, 60_000)
})
