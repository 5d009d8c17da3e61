import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { runJson } from './command-in-process.js'
import { CommandProcess } from './command-process.js'
import { configFile, project, projectFiles } from './project.js'

/** Enqueues in the first folder and looks from the second, by the configuration as each of them names it. */
async function enqueueAndLook([cwd, ...config]: string[], [other, ...named]: string[]) {
  const { id } = await runJson<{ id: string }>(['enqueue', 'echo', '1', ...config], { cwd: cwd! })
  const shown = await runJson<{ id: string; state: string }>(['jobs', 'show', id, ...named], { cwd: other! })
  expect(shown).toMatchObject({ id, state: 'ready' })
}

const hasFile = (...folders: string[]) => folders.map((folder) => existsSync(join(folder, 'jobs.db')))

describe('a configuration in another folder', () => {
  it('has its store in its own folder, and creates no second one', async () => {
    const cwd = project()
    const below = join(cwd, 'apps', 'web')
    mkdirSync(below, { recursive: true })
    await enqueueAndLook([cwd], [below, '--config', '../../millrace.config.js'])

    expect(hasFile(cwd, below)).toEqual([true, false])
  })

  it('has its store in its project, and so has a program that is started there', async () => {
    const { 'millrace.config.js': _, ...files } = projectFiles
    const config = configFile.replace("'./tasks.js'", "'../tasks.js'")
    const root = project({ 'package.json': '{ "type": "module" }', 'src/millrace.config.js': config, ...files })
    const [source, beside] = [join(root, 'src'), join(root, 'scripts')]
    mkdirSync(beside)
    await enqueueAndLook(
      [root, '--config', 'src/millrace.config.js'],
      [beside, '--config', '../src/millrace.config.js'],
    )

    expect(hasFile(root, source, beside)).toEqual([true, false, false])
  })
})

describe('the flags of millrace work', () => {
  it('override what the configuration sets for its workers, and leave the rest unchanged', async () => {
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
