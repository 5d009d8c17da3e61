/** The facts of the documentation, against the code: options, defaults, errors, events, links. */

import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { defineOrderedTask, defineTask } from 'millrace'
import type { Store } from 'millrace/store'
import { describe, expect, it } from 'vitest'
import { exitCodeOf } from '#src/cli/process/exit-code.js'
import { parseDuration } from '#src/core/values/duration.js'
import { selectorNames } from '#src/selectors/named-selectors.js'
import { boundsOf } from '#src/stores/rules/limit-rules.js'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { project, root } from '../cli/project.js'
import { testMill } from '../test-mill.js'
import { Document, documents, plain } from './document.js'
import { type Member, membersOf, source, value } from './interface-members.js'

const all = documents()
const errors = new Document('docs/errors.md')
const errorPages = all.filter(({ path }) => /^docs\/troubleshooting\/[a-z]/.test(path))
const configuration = new Document('docs/configuration.md')

describe('the links of the documentation', () => {
  it.each(all.map((document) => [document.path, document] as const))('resolve: %s', (path, document) => {
    const relative = document.links.filter((link) => !/^[a-z]+:/.test(link))
    const dead = relative.filter((link) => {
      const [target, anchor] = link.split('#')
      const file = target === '' ? path : posix.join(dirname(path), target!)
      if (!existsSync(join(root, file))) return true
      return anchor !== undefined && !new Document(file).anchors.includes(anchor)
    })

    expect(dead).toEqual([])
  })

  it('lead to every page from the README or the index, and to each error page from the page of errors', () => {
    const linkedBy = (from: Document) => from.links.map((link) => posix.join(dirname(from.path), link.split('#')[0]!))
    const linked = new Set(all.filter(({ path }) => /^README|docs\/(?:index|errors)\.md/.test(path)).flatMap(linkedBy))
    const pages = all.map(({ path }) => path).filter((path) => /^docs\/(?!index)/.test(path))

    expect(pages.filter((page) => !linked.has(page))).toEqual([])
  })
})

describe('the page of errors', () => {
  const classes = new Map(
    [...source('core/errors.ts').matchAll(/class (\w+) extends MillraceError[\s\S]*?super\(\s*'([a-z-]+)'/g)].map(
      ([, name, code]) => [code!, name!],
    ),
  )
  const rows = [
    'While you put',
    'While you enqueue',
    'While you administer',
    'While you wait',
    'Inside a handler',
    'The store',
  ].flatMap((heading) =>
    errors.rows(heading).map(([code, ...cells]) => [/`([^`]+)`/.exec(code!)![1]!, ...cells.map(plain)]),
  )

  it('has every code with its class, and no other', () => {
    expect(classes.size).toBe(source('core/errors.ts').match(/ extends MillraceError/g)!.length)
    expect(Object.fromEntries(rows.map(([code, name]) => [code, name]))).toEqual(Object.fromEntries(classes))
    expect(rows.length).toBe(classes.size)
  })

  it('says for each code what it means and what to do', () => {
    expect(rows.filter((row) => row.length !== 5 || row.some((cell) => cell === ''))).toEqual([])
  })

  it('is right about the exit codes', () => {
    expect(rows.map(([code, , , , exit]) => [code, exit])).toEqual(
      rows.map(([code]) => [code, String(exitCodeOf(Object.assign(new Error(), { code })))]),
    )
  })

  it('leads to a page for every code, whose title is the code and which names the class, and to no other page', () => {
    const told = errorPages.map(({ path, headings, codeSpans }) => {
      const code = /([a-z-]+)\.md$/.exec(path)![1]!
      return { code, title: headings[0], names: codeSpans.includes(classes.get(code) ?? '') }
    })
    const expected = [...classes.keys()].map((code) => ({ code, title: `\`${code}\``, names: true }))
    const byCode = (a: { code: string }, b: { code: string }) => (a.code < b.code ? -1 : 1)

    expect(told.sort(byCode)).toEqual(expected.sort(byCode))
    expect([...classes.keys()].filter((code) => !errors.links.includes(`troubleshooting/${code}.md`))).toEqual([])
  })

  it('leads to pages that say when an error is thrown, what was stored, and what to do', () => {
    const isWhole = ({ prose, headings }: Document) =>
      /^- \*\*Thrown\*\* /m.test(prose) && /^- \*\*Stored\?\*\* /m.test(prose) && headings.includes('What to do')

    expect(errorPages.filter((page) => !isWhole(page)).map(({ path }) => path)).toEqual([])
  })

  it('lists the reasons for burial', () => {
    const reasons = /type BuryReason = (.+)/.exec(source('core/job/job.ts'))![1]!.match(/[a-z-]+/g)!
    const [, told] = errors.prose.split('## Reasons in the morgue')

    expect(reasons.filter((reason) => !told!.includes(`\`${reason}\``))).toEqual([])
  })
})

describe('the page of the configuration', () => {
  const sections: readonly [heading: string, path: string, name: string][] = [
    ['The mill', 'mill/options/mill-options.ts', 'MillOptions'],
    ['A queue', 'core/queue/queue.ts', 'QueueOptions'],
    ['A worker', 'mill/options/worker-options.ts', 'WorkerOptions'],
    ['A listener', 'mill/options/listener-options.ts', 'ListenerOptions'],
    ['A job', 'core/task/enqueue-options.ts', 'EnqueueOptions'],
    ['An ordered task', 'core/task/ordered-task.ts', 'OrderedTaskOptions'],
  ]
  const [taskRows, isolationRows, retryRows, batchRows] = configuration.tables
    .filter(({ under }) => under.startsWith('A task'))
    .map(({ rows }) => rows)

  it.each(sections)('lists every option of %s with its default, and no other', (heading, path, name) => {
    compare(configuration.rows(heading), membersOf(path, name))
  })

  it('lists every option of a task and of its retries, and no other', () => {
    const joins = membersOf('core/task/task.ts', 'JoinTaskOptions').filter(({ name }) => name === 'joins')
    compare(taskRows!, [...membersOf('core/task/task.ts', 'TaskOptions'), ...joins])
    compare(isolationRows!, membersOf('core/task/task.ts', 'IsolationOptions'))
    compare(retryRows!, membersOf('core/task/task-definition.ts', 'RetryOptions'))
    compare(batchRows!, membersOf('core/task/task.ts', 'BatchOptions'))
  })

  it('lists every option of a payload: its own, and those shared with a job', () => {
    const path = 'core/task/enqueue-options.ts'
    const [, shared] = /OrderedEnqueueOptions extends Pick<EnqueueOptions, ([^>]+)>/.exec(source(path))!
    const members = membersOf(path, 'EnqueueOptions').filter(({ name }) => shared!.includes(`'${name}'`))
    expect(members.length).toBe(3)
    compare(configuration.rows('A payload'), [...membersOf(path, 'OrderedEnqueueOptions'), ...members])
  })

  it('names every part of a throttle', () => {
    const [, queue] = configuration.prose.split('## A queue')
    for (const { name } of membersOf('core/queue/throttle-options.ts', 'ThrottleOptions'))
      expect(queue).toMatch(new RegExp(`\`${name}\\b`))
  })

  it('has the defaults of a queue', () => {
    const queue = testMill({ queues: { it: {} } }).queues.get('it')!
    const { results, dead, name: _name, throttle, maxPending, maxRunning, maxCrashes, groupWeights, ...rest } = queue

    expect({ results, dead, throttle, maxPending, maxRunning, maxCrashes, groupWeights }).toEqual({
      results: { ageMs: parseDuration('1h'), count: 1000 },
      dead: undefined,
      throttle: undefined,
      maxPending: undefined,
      maxRunning: undefined,
      maxCrashes: undefined,
      groupWeights: undefined,
    })
    expect(toldOf(configuration.rows('A queue'), 'maxCrashes')).toBe(boundsOf({}).maxCrashes)
    expect(configuration.prose).toContain("`{ age: '1h', count: 1000 }`")
    for (const [field, actual] of Object.entries(rest))
      expect({ field, told: toldOf(configuration.rows('A queue'), field) }).toEqual({ field, told: actual })
  })

  it('has the defaults of a task', () => {
    const { queue, timeLimitMs, retry } = defineTask({ name: 'it' })

    expect(toldOf(taskRows!, 'queue')).toBe(queue)
    expect(toldOf(taskRows!, 'timeLimitMs')).toBe(timeLimitMs)
    expect(toldOf(retryRows!, 'max')).toBe(retry.max)
  })

  it('has the defaults of an ordered task and its queue', () => {
    const task = defineOrderedTask({ name: 'it' })
    const rows = configuration.rows('An ordered task')

    for (const field of ['batchSize', 'merge', 'maxPayloads', 'timeLimitMs'] as const)
      expect({ field, told: toldOf(rows, field) }).toEqual({ field, told: task[field] })
    expect(rows.find(([name]) => plain(name!) === 'retry')!.at(-1)).toContain(`\`max\` is ${task.retry.max}`)
    expect(task.queue).toBe('it')
    const queue = testMill({ tasks: [task] }).queues.get('it')!
    expect(queue.ordered).toBe(true)
    expect(
      configuration
        .rows('A queue')
        .find(([name]) => plain(name!) === 'shards')!
        .at(-1),
    ).toContain(`default there ${queue.shards})`)
  })

  function compare(rows: readonly (readonly string[])[], members: readonly Member[]): void {
    const told = new Map(rows.map(([name, given]) => [plain(name!), value(given!)]))
    expect([...told.keys()].sort()).toEqual(members.map(({ name }) => name).sort())
    for (const member of members)
      if (member.told !== undefined) expect({ ...member, told: told.get(member.name) }).toEqual(member)
  }

  /** The default of an option as its cell tells it, by the name of the field it becomes. */
  function toldOf(rows: readonly (readonly string[])[], field: string): unknown {
    const name = field.replace(/Ms$/, '')
    const cell = value(rows.find(([option]) => plain(option!) === name)![1]!)
    if (field.endsWith('Ms')) return parseDuration(cell)
    return cell === 'true' || cell === 'false' ? cell === 'true' : /^\d+$/.test(cell) ? Number(cell) : cell
  }
})

describe('other tables of the documentation', () => {
  it('list every selector, and no other', () => {
    const named = new Document('docs/selectors.md').rows('Selectors').map(([name]) => /`([^`]+)`/.exec(name!)![1])

    expect(named.sort()).toEqual([...selectorNames].sort())
  })

  it('list every event with its fields, and no other', () => {
    const [, map] = source('core/events.ts').split('export interface EventMap')
    const events = [
      ...map!
        .split('\n}')[0]!
        .replaceAll(/&\n +/g, '& ')
        .matchAll(/'([a-z.]+)': (.+)/gi),
    ].map(([, name, shape]) => [name!, [...shape!.matchAll(/readonly (\w+):/g)].map(([, field]) => field!)])
    const told = new Document('docs/middleware.md')
      .rows('Events')
      .map(([name, , fields]) => [plain(name!), (fields!.match(/`\w+`/g) ?? []).map(plain)])

    expect(Object.fromEntries(told)).toEqual(Object.fromEntries(events))
  })

  it('lists every reason for putting a job back, and no other', () => {
    const workbench = source('workers/claims/in-flight.ts').matchAll(/#putBack(?:Rest|One)?\([^()]*, '([a-z-]+)'[,)]/g)
    const verdicts = [
      'runtime/run/executor.ts',
      'runtime/run/claim-decoder.ts',
      'runtime/run/verdict.ts',
      'workers/isolated/child-process.ts',
    ].flatMap((path) => [...source(path).matchAll(/kind: 'release',[^}]*reason: '([a-z-]+)'/g)])
    const lacks = source('core/packing/packing.ts').matchAll(/\breason: '([a-z-]+)',\s+stored:/g)
    const reasons = [...workbench, ...verdicts, ...lacks].map(([, reason]) => reason!)
    const told = new Document('docs/middleware.md').rows('Why jobs are put back').map(([reason]) => plain(reason!))

    expect(told.sort()).toEqual([...new Set(reasons)].sort())
  })

  it('list every room of the house on its floor', () => {
    const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
    const told = [...page.matchAll(/^- \*\*(\d) · .*(?:\n {2}.*)*/gm)].flatMap(([text, floor]) =>
      // Rooms are set in bold; alcoves are not.
      [...text!.matchAll(/\*\*[^*]*\*\*/g)].flatMap(([bold]) =>
        [...bold!.matchAll(/`([\w/-]+)\/`/g)].map(([, room]) => `${floor} ${room}`),
      ),
    )
    const house = readFileSync(join(root, 'scripts/house-laws.mjs'), 'utf8')
    const floors = [...house.matchAll(/^ {2}'?([\w/-]+)'?: (\d),$/gm)].map(([, room, floor]) => `${floor} ${room}`)
    const [, storeFloor] = /^const storeFloor = (\d)$/m.exec(house)!
    const stores = ['memory', 'sqlite', 'postgres', 'redis', 'sqs'].map((store) => `${storeFloor} stores/${store}`)

    expect(told.sort()).toEqual([...floors, ...stores].sort())
  })

  it('list every member of a store harness', () => {
    const told = new Document('docs/writing-a-store.md')
      .rows('The harness')
      .map(([name]) => /\w+/.exec(plain(name!))![0])

    expect(told).toEqual(membersOf('store-testing/harness/store-harness.ts', 'StoreHarness').map(({ name }) => name))
  })
})

describe('files that the documentation names', () => {
  it('exist', () => {
    const files = all.flatMap(({ path, codeSpans, blocks }) =>
      codeSpans.flatMap((code) => {
        const [file] = /^[\w-]+(?:\/[\w.-]+)+\.(?:ts|md)$/.exec(code) ?? []
        return file === undefined || blocks.some((block) => block.file === file) ? [] : [{ path, file }]
      }),
    )
    const places = ['', 'src']

    expect(files.length).toBeGreaterThan(10)
    expect(files.filter(({ file }) => !places.some((place) => existsSync(join(root, place, file))))).toEqual([])
  })
})

describe('the advice on backups', () => {
  it('creates, with the store open, a file that is a store with the same jobs', async () => {
    const folder = project({})
    const [file, backup] = [join(folder, 'jobs.db'), join(folder, 'backup.db')]
    const job = { id: 'a', task: 'it', payload: '1', priority: 0, rememberMs: 0 }
    const settings = { name: 'it', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
    const store: Store = new SqliteStore({ file })
    await store.open([settings])
    await store.enqueue([{ callId: '1', queue: 'it', jobs: [job] }])
    const database = (await loadDriver())(file, { readOnly: true })
    const [statement] = /VACUUM INTO '[^']+'/.exec(readFileSync(join(root, 'docs/stores/sqlite.md'), 'utf8'))!
    database.exec(statement.replace('backup.db', backup))
    database.close()
    await store.close()

    const restored: Store = new SqliteStore({ file: backup })
    await restored.open([settings])
    expect(await restored.records!.get('it', 'a')).toMatchObject({ id: 'a', state: 'ready', payload: '1' })
    await restored.close()
  })
})

describe('the table names that an application must not use in a SQLite store', () => {
  it('are those of all its tables', async () => {
    const file = join(project({}), 'jobs.db')
    const store = new SqliteStore({ file })
    await store.open([])
    await store.close()
    const database = (await loadDriver())(file, { readOnly: true })
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all() as { name: string }[]
    database.close()
    const page = readFileSync(join(root, 'docs/stores/sqlite.md'), 'utf8')
    const [, list = ''] = /Do not name them ([\s\S]+?), or with the prefix\s+`throttle`/.exec(page)!

    const own = tables.map(({ name }) => name).filter((name) => !/^(?:throttle|sqlite_)/.test(name))
    expect([...list.matchAll(/`(\w+)`/g)].map(([, name]) => name).sort()).toEqual(own.sort())
  })
})

describe('the units and images of the documentation', () => {
  /** A program in between, which a signal ends without reaching the supervisor. */
  const between = /^(?:\S*\/)?(?:npx|npm|pnpm|yarn|bunx?|(?:ba|da|z)?sh|env|nohup|sudo|su)$/
  const starting = /^\s*(?:ExecStart=|(?:CMD|ENTRYPOINT)\s+|(?:command|args):\s*)(.+)$/gm
  const found = [...all, new Document('examples/blueque/README.md')].flatMap(({ blocks }) =>
    blocks.flatMap(({ at, text }) => [...text.matchAll(starting)].map(([, started]) => ({ at, started: started! }))),
  )

  it('start the command itself, with at most an init process in between, which forwards signals', () => {
    expect(found.length).toBeGreaterThanOrEqual(3)
    for (const { at, started } of found) {
      const [program = ''] = started.startsWith('[') ? (JSON.parse(started) as string[]) : started.split(' ')
      expect(program, at).not.toMatch(between)
      expect(program, at).toMatch(/(?:^|\/)(?:node|millrace|tini)$/)
    }
  })
})
