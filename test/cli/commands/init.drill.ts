import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { installed, packed } from '../../package/tarball.js'
import { printed, run, runJson } from '../command-in-process.js'
import { CommandProcess } from '../command-process.js'
import { project, root } from '../project.js'

interface Init {
  readonly files: readonly { readonly file: string; readonly done: string }[]
}

const textOf = (...path: string[]) => readFileSync(join(...path), 'utf8')

describe('millrace init', () => {
  it('in an empty folder works at once with the packed package: test, types and worker', {
    timeout: 120_000,
  }, async () => {
    const tarball = packed()
    onTestFinished(tarball.remove)
    const cwd = installed(tarball, {}, ['typescript', '@types/node', 'undici-types', '@photostructure/sqlite'])
    const script = join(cwd, 'node_modules/millrace/dist/cli/main.js')
    const ended = await new CommandProcess('init', { cwd, script }).end()
    expect(ended).toMatchObject({ code: 0, stderr: '' })

    const node = (...args: string[]) => spawnSync(process.execPath, args, { cwd, encoding: 'utf8' })
    const { scripts } = JSON.parse(textOf(cwd, 'package.json')) as { scripts: Record<string, string> }
    const [command, ...words] = scripts['test']!.split(' ')
    expect(command).toBe('node')
    expect(node(...words)).toMatchObject({ status: 0, stdout: expect.stringMatching(/pass 1/) })
    expect(node('node_modules/typescript/bin/tsc')).toMatchObject({ status: 0, stdout: '' })
    expect(node('node_modules/jiti/lib/jiti-cli.mjs', 'enqueue.ts').stdout).toMatch(/^job \w+ is in queue default/)
    const worker = new CommandProcess('work', { cwd, script })
    await worker.stdoutMatches(/"Hello" goes to ada@example.com, attempt 1/)
    const ran = await new CommandProcess('schedules run digest', { cwd, script }).end()
    expect(ran).toMatchObject({ code: 0, stderr: '' })
    await worker.stdoutMatches(/"The week" goes to team@example.com, attempt 1/)
    worker.kill('SIGTERM')
    expect((await worker.end()).code).toBe(0)
  })

  it('overwrites nothing, and lists what it kept', async () => {
    const cwd = project({ 'millrace.config.ts': 'mine', 'README.md': 'mine' })
    const { files } = await runJson<Init>('init', { cwd })
    const kept = files.filter(({ done }) => done === 'kept').map(({ file }) => file)
    expect(kept.sort()).toEqual(['README.md', 'millrace.config.ts'])
    expect([textOf(cwd, 'millrace.config.ts'), textOf(cwd, 'README.md')]).toEqual(['mine', 'mine'])
    const again = await runJson<Init>('init', { cwd })
    expect(new Set(again.files.map(({ done }) => done))).toEqual(new Set(['kept']))
  })

  it('adds what a package.json lacks, and keeps what it has', async () => {
    const present = {
      name: 'shop',
      type: 'commonjs',
      scripts: { work: 'mine', test: 'echo "Error: no test specified" && exit 1' },
      dependencies: { millrace: 'file:millrace.tgz', typescript: '5.9.3' },
    }
    const cwd = project({ 'package.json': JSON.stringify(present) })
    await runJson('init', { cwd })
    expect(JSON.parse(textOf(cwd, 'package.json'))).toMatchObject({
      ...{ name: 'shop', type: 'commonjs', dependencies: present.dependencies },
      scripts: { work: 'mine', test: expect.stringMatching(/^node /), types: 'tsc' },
      devDependencies: { jiti: expect.anything() },
    })
    expect(textOf(cwd, 'package.json')).not.toContain('"typescript": "^')
    const broken = project({ 'package.json': '{' })
    expect(await run('init', { cwd: broken })).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/Nothing was written/),
    })
    expect(readdirSync(broken).sort()).toEqual(['node_modules', 'package.json'])
  })

  it('names the project after its folder, and adds the chosen store with its dependencies', async () => {
    const cwd = project({})
    await runJson(['init', 'My Shop!', '--store', 'redis://localhost:6379'], { cwd })
    const folder = join(cwd, 'My Shop!')
    const { name, dependencies } = JSON.parse(textOf(folder, 'package.json')) as Record<string, Record<string, string>>
    const own = JSON.parse(textOf(root, 'package.json')) as { peerDependencies: Record<string, string> }
    expect(name).toBe('my-shop')
    expect(dependencies).toMatchObject({ ioredis: own.peerDependencies['ioredis'] })
    expect(textOf(folder, 'millrace.config.ts')).toContain("?? 'redis://localhost:6379'")
    expect(textOf(folder, 'deploy/my-shop.service')).toContain('ExecStart=/srv/my-shop/')
  })

  it('under pnpm answers what pnpm asks, unless a workspace above decides', async () => {
    const cwd = project({})
    const options = { cwd, env: { npm_config_user_agent: 'pnpm/12.21.0 npm/? node/? linux x64' } }
    const said = await printed('init alone', options)
    expect(textOf(cwd, 'alone/pnpm-workspace.yaml')).toMatch(/^allowBuilds:\n {2}'@photostructure\/sqlite': false$/m)
    expect(said.at(-1)).toBe('Next: cd alone && pnpm install && pnpm test && pnpm run work')

    writeFileSync(join(cwd, 'pnpm-workspace.yaml'), 'packages: [apps/*]')
    await printed('init apps/one', options)
    expect(readdirSync(join(cwd, 'apps/one'))).not.toContain('pnpm-workspace.yaml')
  })

  it.each([
    [['init', '--store', 'jobs.db'], 2, /--store: expected 'memory:', 'sqlite:path/],
    [['init', 'file/below'], 1, /'.*file\/below.*' could not be written/],
  ])('%j is refused', async (args, code, message) => {
    const cwd = project({ file: '' })
    mkdirSync(join(cwd, 'folder'))
    writeFileSync(join(cwd, 'folder/x'), '')
    expect(await run(args, { cwd })).toMatchObject({ code, stderr: expect.stringMatching(message) })
  })
})
