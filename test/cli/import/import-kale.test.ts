/** The command `import kale`: a configuration from a settings file, which loads, and what is told of its lines. */

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import type { ImportNote } from '#src/cli/commands/import/settings-file.js'
import { run, runJson } from '../command-in-process.js'
import { project, root } from '../project.js'

interface Imported {
  readonly file?: string
  readonly config: string
  readonly notes: readonly ImportNote[]
}

/** As they stand in its README: indented, and with a quote in a comment that is not closed. */
const readmeSettings = `\n${readFileSync(join(root, 'examples/kale/settings.py'), 'utf8').replace(/^(?=.)/gm, ' '.repeat(8))}`
const queueFile = 'high_priority:\n    name: high_priority\n    priority: 100\n'

/** A folder with settings and the queue file of Kale. */
function kaleProject(settings: string | Uint8Array): string {
  const cwd = project({ 'package.json': '{"type":"module"}', 'queue_config.yaml': queueFile })
  mkdirSync(join(cwd, 'taskworker'))
  writeFileSync(join(cwd, 'taskworker/queue_config.yaml'), queueFile)
  writeFileSync(join(cwd, 'settings.py'), settings)
  return cwd
}

/** The configuration and the notes, with what other settings need around them. */
async function imported(settings: string): Promise<Imported> {
  return runJson<Imported>('import kale settings.py --out -', { cwd: kaleProject(settings) })
}

/** The options of the configuration as it is loaded, seen through a package of the same name that returns them. */
async function loadedOptions(config: string, env: Record<string, string | undefined> = {}) {
  expect(ts.transpileModule(config, { reportDiagnostics: true }).diagnostics).toEqual([])
  const { outputText } = ts.transpileModule(config, { compilerOptions: { module: ts.ModuleKind.CommonJS } })
  const module: { exports: { default?: Record<string, unknown> } } = { exports: {} }
  const require = () => ({ millrace: (options: object) => options })
  new Function('require', 'exports', 'module', 'process', outputText)(require, module.exports, module, { env })
  return module.exports.default!
}

const noteOf = ({ notes }: Imported, setting: string) =>
  notes.filter((note) => note.setting === setting).map(({ level, text }) => `${level}: ${text}`)

describe("the settings of Kale's README", () => {
  it('become a configuration that loads, and every line is reported', async () => {
    const cwd = kaleProject(readmeSettings)
    const { code, stdout, stderr } = await run('import kale settings.py', { cwd })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/\n *21 +taken +MESSAGE_QUEUE_PROXY_HOST +`store`\n/)
    expect(stdout).toMatch(/\n *23 +left +AWS_SECRET_ACCESS_KEY +is not copied: /)
    expect(stdout).not.toContain('unread')
    const config = readFileSync(join(cwd, 'millrace.config.ts'), 'utf8')
    expect(config).not.toContain('SECRET')
    expect(await loadedOptions(config)).toEqual({
      store: 'sqs://us-west-2?endpoint=http://127.0.0.1:9324',
      namespace: '',
      queues: './taskworker/queue_config.yaml',
      maxPayloadBytes: 256_000,
      worker: { selector: 'reduced-lottery' },
      tasks: [],
    })
    expect(await loadedOptions(config, { MESSAGE_QUEUE_PROXY_HOST: 'sqs.example' })).toMatchObject({
      store: 'sqs://us-west-2?endpoint=http://sqs.example:9324',
    })
    // Of which nothing listens: that the store is asked means that all was loaded.
    const doctor = await run('doctor --json', { cwd, env: { MESSAGE_QUEUE_PROXY_HOST: '127.0.0.1' } })
    expect(doctor.stderr + doctor.stdout).not.toMatch(/is not valid/)
    expect(doctor.stderr + doctor.stdout).toContain('sqs://us-west-2?endpoint=http://127.0.0.1:9324')
  }, 30_000)

  it('include a poll time without effect, and the report names what has one', async () => {
    expect(noteOf(await imported(readmeSettings), 'long_poll_time_sec')).toEqual([
      expect.stringMatching(/^left: of the queue file has no effect on SQS: .*`\?poll=each`/),
    ])
  })

  it('do not overwrite an existing file unless --force is given', async () => {
    const cwd = kaleProject(readmeSettings)
    writeFileSync(join(cwd, 'millrace.config.ts'), 'mine')
    expect(await run('import kale settings.py', { cwd })).toEqual({
      code: 2,
      signal: null,
      stdout: '',
      stderr: "millrace: 'millrace.config.ts' is there already: --force overwrites it, and --out names another file.\n",
    })
    expect(readFileSync(join(cwd, 'millrace.config.ts'), 'utf8')).toBe('mine')
    expect(await run('import kale settings.py --force', { cwd })).toMatchObject({ code: 0 })
    expect(readFileSync(join(cwd, 'millrace.config.ts'), 'utf8')).toContain('us-west-2')
  })

  it('are printed to stdout, and the report to stderr', async () => {
    const { stdout, stderr } = await run('import kale settings.py --out -', {
      cwd: kaleProject(readmeSettings),
    })
    expect(await loadedOptions(stdout)).toMatchObject({ namespace: '' })
    expect(stderr).toMatch(/^ *4 +taken +AWS_REGION +`store`\n/)
  })

  it('name the queue file relative to the folder of the configuration', async () => {
    const cwd = kaleProject(readmeSettings)
    mkdirSync(join(cwd, 'deploy'))
    const args = ['import', 'kale', 'settings.py', '--out', 'deploy/millrace.config.ts']
    const { config, notes } = await runJson<Imported>(args, { cwd })
    expect(await loadedOptions(config)).toMatchObject({ queues: '../taskworker/queue_config.yaml' })
    expect(notes.filter(({ text }) => text.includes('is not there'))).toEqual([])
  })
})

describe('a setting', () => {
  const base = "AWS_REGION = 'us-west-2'\n"
  it.each([
    [
      'endpoint',
      "MESSAGE_QUEUE_ENDPOINT_URL = 'http://localhost:9324/'",
      { store: 'sqs://us-west-2?endpoint=http://localhost:9324' },
    ],
    ['no endpoint', "MESSAGE_QUEUE_ENDPOINT_URL = ''", { store: 'sqs://us-west-2' }],
    ['size', 'SQS_TASK_SIZE_LIMIT = 250 * 1024  # 250 KB', { maxPayloadBytes: 256_000 }],
    ['size looked up', "SQS_TASK_SIZE_LIMIT = int(os.environ.get('LIMIT', '1000'))", { maxPayloadBytes: 1000 }],
    ['memory', 'DIE_ON_RESIDENT_SET_SIZE_MB = 512', { worker: { maxRss: '512MB' } }],
    [
      'selector',
      'QUEUE_SELECTOR = "kale.queue_selector.HighestPriorityFirst"',
      { worker: { selector: 'highest-first' } },
    ],
    ['absolute path', "QUEUE_CONFIG = r'/etc/kale/queues.yaml'", { queues: '/etc/kale/queues.yaml' }],
    [
      'path beside the settings',
      "HERE = os.path.dirname(os.path.abspath(__file__))\nQUEUE_CONFIG = os.path.join(HERE, 'taskworker', 'queue_config.yaml')",
      { queues: './taskworker/queue_config.yaml' },
    ],
    [
      'text of two parts',
      "QUEUE_CONFIG: str = ('task' 'worker/' u'queue_config.yaml')",
      { queues: './taskworker/queue_config.yaml' },
    ],
  ])('is translated: %s', async (_, line, expected) => {
    expect(await loadedOptions((await imported(`import os\n${base}${line}\n`)).config)).toMatchObject(expected)
  })

  it('that is read from the environment stays so, and the endpoint is that of AWS if the variable is empty', async () => {
    const { config } = await imported(
      `${base}MESSAGE_QUEUE_ENDPOINT_URL = os.getenv('SQS_URL')\nDIE_ON_RESIDENT_SET_SIZE_MB = os.environ['MB']\n`,
    )
    expect(await loadedOptions(config, { MB: '300' })).toMatchObject({
      ...{ store: 'sqs://us-west-2', worker: { maxRss: '300MB' } },
    })
    expect(await loadedOptions(config, { SQS_URL: 'http://a:1' })).toMatchObject({
      store: 'sqs://us-west-2?endpoint=http://a:1',
    })
  })

  it.each([
    ['RETRY_DELAY_MULTIPLE_SEC', '30', "exponential({ base: '30s', jitter: false })"],
    ['QUEUE_CLASS', "'mine.Queue'", '`namespace`'],
    ['QUEUE_SELECTOR', "'mine.Selector'", 'takes a function'],
    ['QUEUE_SELECTOR', "'kale.queue_selector.constructor'", 'takes a function'],
    ['USE_DEAD_LETTER_QUEUE', 'False', 'all the same'],
    ['TASK_MAPPER', '[]', '`aliases`'],
    ['SQS_TASK_SIZE_LIMIT', '2000000', 'stays 256000'],
    ['DIE_ON_RESIDENT_SET_SIZE_MB', '-1', '--max-rss'],
    ['AWS_REGION', "'mars'", 'is no region'],
    ['MESSAGE_QUEUE_ENDPOINT_URL', "'http://me:hunter2@localhost'", 'is no address'],
    ['MESSAGE_QUEUE_USE_PROXY', 'True', 'they name no host and port'],
    ['MESSAGE_QUEUE_PROXY_HOST', "'a'", 'no proxy is used'],
    ['DATABASE_URL', "'postgres://me:hunter2@db'", 'is no setting of Kale'],
    ['constructor', '1', ''],
  ])('without a counterpart gets a remedy: %s = %s', async (name, value, remedy) => {
    const told = await imported(`QUEUE_CONFIG = 'queue_config.yaml'\n${name} = ${value}\n`)
    expect(noteOf(told, name).join('\n')).toContain(remedy)
    expect(JSON.stringify(told)).not.toContain('hunter2')
    await loadedOptions(told.config)
  })

  it.each([
    ['AWS_SECRET_ACCESS_KEY', "'wJalrXUt/K7MDENG'"],
    ['AWS_ACCESS_KEY_ID', "'wJalrXUt/K7MDENG'"],
    ['UTIL_CRYPT_KEY', 'b"wJalrXUt/K7MDENG"'],
    ['UTIL_CRYPT_CIPHER', "os.getenv('KEY', 'wJalrXUt/K7MDENG')"],
    ['AWS_SECRET_ACCESS_KEY', "decrypt('wJalrXUt/K7MDENG', key='wJalrXUt/K7MDENG')"],
    ['AWS_SECRET_ACCESS_KEY', "'wJalrXUt/K7MDENG"],
    ['PASSWORD', "f'{wJalrXUt/K7MDENG}'"],
  ])('that is a secret is never copied or shown, whether it was understood or not: %s = %s', async (name, value) => {
    const cwd = kaleProject(`QUEUE_CONFIG = 'queue_config.yaml'\n${name} = ${value}\nuse("AKIAIOSFODNN7", k=1)\n`)
    const { code, stdout, stderr } = await run('import kale settings.py --out -', { cwd })
    expect(code).toBe(0)
    expect(stdout + stderr).not.toMatch(/wJalr|AKIAIOSFODNN7/)
    expect(stderr).toContain(name)
  })
})

describe('the generated configuration', () => {
  const hostile = [
    `it's \`\${process.exit(1)}\` \\`,
    "\\'",
    '*/ throw 1 /*',
    '\u2028\u2029\u0085\u202e',
    "'\n+ process.exit()",
    `\${1}`,
    '\\u{',
    '\ud800',
    '</script>',
    '"\\"',
  ]
  it.each(hostile)('is a program that does nothing else, and holds the same text: %j', async (text) => {
    const python = `'${[...text].map((char) => `\\U${char.codePointAt(0)!.toString(16).padStart(8, '0')}`).join('')}'`
    const { config } = await imported(
      `QUEUE_CONFIG = '/' ${python}\nAWS_REGION = os.getenv(${python})\nDIE_ON_RESIDENT_SET_SIZE_MB = os.getenv(${python}, 9)\n`,
    )
    expect(await loadedOptions(config, { [text]: 'us-east-1' })).toMatchObject({
      ...{ queues: `/${text}`, store: 'sqs://us-east-1', worker: { maxRss: 'us-east-1MB' } },
    })
  })
})

describe('an unusable settings file', () => {
  it.each([
    ['holds a NUL', Buffer.from("A = 1\nQUEUE_CONFIG = 'a\0b'\n"), /settings\.py:2: holds a NUL character/],
    ['is not UTF-8', Buffer.from("QUEUE_CONFIG = 'x'\nX = '\xe9'\n", 'latin1'), /settings\.py:2: is no UTF-8/],
    ['is UTF-16', Buffer.from("\ufeffQUEUE_CONFIG = 'x'", 'utf16le'), /settings\.py:1: holds a NUL character/],
    ['is huge', Buffer.alloc(1_048_577, '#'), /is larger than a settings file can be: 1,048,576 bytes/],
    ['is empty', Buffer.alloc(0), /names no setting of Kale, such as QUEUE_CONFIG; nothing was written/],
    ['is of something else', Buffer.from('a: 1\n- b\n'), /names no setting of Kale/],
  ])('is refused with exit code 2, and nothing is written: a file that %s', async (_, bytes, said) => {
    const cwd = kaleProject(bytes)
    const { code, stdout, stderr } = await run('import kale settings.py', { cwd })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(said)
    expect(() => readFileSync(join(cwd, 'millrace.config.ts'))).toThrow(/ENOENT/)
  })

  it.each([
    ['nowhere.py', /cannot be read: ENOENT/],
    ['taskworker', /is no file|EISDIR/],
    ['/dev/zero', /is no file/],
  ])('is refused with exit code 2: %s', async (path, said) => {
    const { code, stderr } = await run(['import', 'kale', path], { cwd: kaleProject('') })
    expect(code).toBe(2)
    expect(stderr).toMatch(said)
  })

  it('differs in its exit code from an output path that cannot be written: 1', async () => {
    const args = ['import', 'kale', 'settings.py', '--out', 'nowhere/millrace.config.ts']
    expect(await run(args, { cwd: kaleProject(readmeSettings) })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/could not be written: ENOENT/),
    })
  })
})
