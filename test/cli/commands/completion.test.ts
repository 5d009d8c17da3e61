import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { commandsMeant, commandTree } from '#src/cli/command-words.js'
import { completionScript, type Shell, shells } from '#src/cli/commands/completion-command.js'
import { createProgram } from '#src/cli/program.js'
import { run } from '../command-in-process.js'

const tree = commandTree(await createProgram())

/** What bash offers for the last of these words. */
function offered(...words: string[]): string[] {
  const line = words.map((word) => `'${word}'`).join(' ')
  const program = `${completionScript('bash', tree)}
COMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; _millrace; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { status, stdout, stderr } = spawnSync('bash', ['--norc', '-c', program], { encoding: 'utf8' })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return stdout.split('\n').filter((word) => word !== '')
}

describe('completion in bash', () => {
  it.each<[string[], string[]]>([
    [
      ['millrace', 'wor'],
      ['work', 'workers'],
    ],
    [['millrace', 'jobs', 'li'], ['list']],
    [['millrace', 'jobs', 'list', '--sta'], ['--state']],
    [['millrace', 'jobs', 'list', 'default', '--state', 'sch'], ['scheduled']],
    [
      ['millrace', 'work', 'handlers.ts', '--con'],
      ['--config', '--concurrency'],
    ],
    [['millrace', 'completion', '--j'], ['--json']],
    [['millrace', 'work', '--concurrency', '5', '--health-p'], ['--health-port']],
  ])('offers the right words for %j', (words, expected) => {
    expect(offered(...words)).toEqual(expected)
  })
})

describe('the script of every shell', () => {
  it.each(shells)('names all commands and options that help shows, and no hidden ones: %s', (shell) => {
    const script = completionScript(shell, tree)
    expect(script).not.toContain('work-process')
    for (const { path, commands, options } of tree) {
      expect(script).toContain(path)
      for (const { word } of [...commands, ...options])
        expect(script).toContain(shell === 'fish' ? word.replace('--', '') : word)
    }
    expect(tree.length).toBeGreaterThan(25)
  })

  it.each<Shell>(['zsh', 'fish'])('is accepted by that shell, if it is installed: %s', (shell) => {
    const { error, status, stderr } = spawnSync(shell, ['-n'], {
      input: completionScript(shell, tree),
      encoding: 'utf8',
    })
    if (error === undefined) expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  })

  it('is printed by the command, which refuses an unknown shell', async () => {
    const { stdout } = await run('completion bash', { cwd: '.' })
    expect(stdout).toBe(completionScript('bash', tree))
    expect(await run('completion tcsh', { cwd: '.' })).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/Allowed choices are bash, zsh, fish/),
    })
  })
})

const paths = [
  'work',
  'stats',
  'dash',
  'jobs',
  'jobs list',
  'jobs run-now',
  'morgue',
  'morgue list',
  'morgue revive',
  'workers',
]

it.each([
  ['list', '', ['jobs list', 'morgue list']],
  ['ls', 'morgue', ['morgue list']],
  ['retry', '', ['morgue revive']],
  ['retry', 'jobs', ['morgue revive']],
  ['revive', 'jobs', ['morgue revive']],
  ['run', '', ['work', 'jobs run-now']],
  ['run', 'jobs', ['jobs run-now']],
  ['top', '', ['stats']],
  ['web', '', ['dash']],
  ['ps', '', ['workers']],
  ['job', '', ['jobs']],
  ['lits', 'jobs', ['jobs list']],
  ['lits', '', []],
  ['constructor', '', []],
])("'%s' after '%s' suggests %j", (word, group, meant) => {
  expect(commandsMeant(word, group, paths)).toEqual(meant)
})
