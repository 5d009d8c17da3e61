/** Statements of absence: what the documentation says that Millrace has not is looked for among what it exports and accepts. */

import { join } from 'node:path'
import type { Command } from 'commander'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { createProgram } from '#src/cli/program.js'
import { root } from '../cli/project.js'
import { Document, documents, plain } from './document.js'

/** Every name of the public types: `millrace`, `JobContext`, `JobContext.log`. */
function exportedNames(): Set<string> {
  const index = join(root, 'dist/index.d.ts')
  const program = ts.createProgram([index], {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    skipLibCheck: true,
    target: ts.ScriptTarget.ES2023,
    types: [],
  })
  const checker = program.getTypeChecker()
  const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(index)!)!)
  return new Set(
    exported.flatMap((symbol) => {
      const real = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
      const members = checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(real))
      return [symbol.name, ...members.map(({ name }) => `${symbol.name}.${name}`)]
    }),
  )
}

/** Every command and flag: `millrace jobs list`, `millrace work --grace`. */
function commandNames(command: Command, above = ''): string[] {
  const name = `${above}${command.name()}`
  const flags = command.options.map(({ long }) => `${name} ${long}`)
  return [name, ...flags, ...command.commands.flatMap((one) => commandNames(one as Command, `${name} `))]
}

const known = new Set([...exportedNames(), ...commandNames(await createProgram())])

/** The row of a page that says none or not yet, and the names under which Millrace would have it. */
const absent: Readonly<Record<string, readonly string[]>> = {
  'bullmq: continueParentOnFailure': ['SetOptions.onFirstDead', 'SetOptions.continueOnDead'],
  'bullmq: a parent that adds children while it runs, moveToWaitingChildren()': [
    'JobContext.waitForChildren',
    'JobContext.join',
  ],
  'sidekiq: on(:complete, …): all have run once, some may retry': ['SetOptions.onComplete', 'Task.onMembersRun'],
  'sidekiq: a job that adds jobs to its batch': ['JobContext.addMember', 'JobHandle.addMembers'],
  'blueque: queue.enqueue_due_tasks()': ['QueueAdmin.promote', 'QueueAdmin.enqueueDue'],
  'blueque: listener.claim_orphan()': ['QueueListener.claimOrphan', 'QueueListener.orphans'],
  'blueque: reclaimed_node': ['JobRecord.reclaimedNode', 'JobRecord.reclaimedHost'],
  'kale: InvalidTaskDelayException, above 900 s': ['QueueOptions.maxDelay', 'MillOptions.maxDelay'],
  'kale: _publisher, PUBLISHER_STR_FUNC': ['MillOptions.publisher', 'JobRecord.publisher'],
  'kale: _on_pre_batch_run, _on_post_batch_run': ['MillOptions.onBatch', 'WorkerOptions.onBatch'],
  'kale: SIGTSTP, _on_sigtstp': ['MillOptions.onSuspend', 'WorkerOptions.onSuspend'],
  'kale: RESET_TIMEOUT_THRESHOLD (1)': ['WorkerOptions.resetThreshold', 'QueueOptions.resetThreshold'],
  'kale: DeleteMessagesException, SendMessagesException, ChangeMessagesVisibilityException': [
    'DeleteMessagesError',
    'SendMessagesError',
  ],
  'kale: SQS_MAX_TASK_DELAY_SEC (900)': ['SqsStoreOptions.maxDelay'],
  'kale: USE_DEAD_LETTER_QUEUE, ENABLE_DEAD_LETTER_QUEUE': ['QueueOptions.deadLetters', 'SqsStoreOptions.deadLetters'],
  'kale: PICKLE_PROTOCOL': ['pickle', 'pickleCodec'],
  'lowkiq: Lowkiq.poll_interval (1 s)': ['WorkerOptions.pollInterval', 'millrace work --poll-interval'],
  'lowkiq: Lowkiq.client_pool_size (5)': ['MillOptions.poolSize', 'RedisStoreOptions.poolSize'],
  'lowkiq: Lowkiq.pool_timeout (5 s)': ['MillOptions.poolTimeout', 'RedisStoreOptions.poolTimeout'],
  'lowkiq: Lowkiq.dump_error, Lowkiq.load_error': ['MillOptions.dumpError', 'MillOptions.loadError'],
  'lowkiq: Lowkiq.dump, in “Extended error info”': ['MillOptions.dump'],
  'lowkiq: hiredis, driver: :hiredis': ['RedisStoreOptions.driver'],
  'lowkiq: require, require_dependency, no lazy loading': ['MillOptions.require', 'millrace work --require'],
  'lowkiq: … and for up to poll_interval': ['WorkerOptions.pollInterval'],
  'lowkiq: config.to_prepare, the main autoloader': ['MillOptions.prepare', 'MillOptions.autoload'],
  'lowkiq: Lowkiq.build_default_splitter': ['defaultSplitter', 'buildDefaultSplitter'],
  'lowkiq: rev_range_by_…, min, max': ['ListOptions.min', 'ListOptions.max', 'ListOptions.reverse'],
  'redis-throttled-queue: windowName other than modName': [
    'ThrottledQueueOptions.windowName',
    'ThrottleOptions.windowName',
  ],
  'redis-throttled-queue: t.moderation, t.window, t.limit changed at run time': [
    'ThrottledQueue.window',
    'ThrottledQueue.limit',
  ],
  'redis-throttled-queue: pop(timeout)': ['PopOptions'],
  'redis-throttled-queue: allowed()': ['ThrottledQueue.allowed'],
  'redis-throttled-queue: queue refresh, queue timeout': ['QueueOptions.refresh', 'QueueOptions.timeout'],
}

/** Sentences of other pages that say so, and the names under which Millrace would have it. */
const absentElsewhere: readonly (readonly [RegExp, readonly string[]])[] = [
  [/events\s+that\s+are\s+kept/, ['QueueAdmin.eventLog', 'Mill.events']],
  [/RRULE\s+schedules,\s+`publish\(\)`/, ['ScheduleOptions.rrule', 'Mill.publish', 'Mill.subscribe']],
  [/a\s+crontab\s+as\s+a\s+file/, ['MillOptions.crontab', 'millrace schedules import']],
]

const pages = documents().filter(({ path }) => path.startsWith('docs/coming-from/'))
const says = /^(?:none\b(?! or)|\[?not yet\b)/
const rows = pages.flatMap((page) =>
  page.tables.flatMap((table) =>
    table.rows
      .filter((cells) => cells.slice(1).some((cell) => says.test(cell)))
      .map(([first]) => `${page.path.replace(/^.*\/|\.md$/g, '')}: ${plain(first!)}`),
  ),
)

describe('a feature that the documentation calls absent', () => {
  it('is listed here, with the names that it would have', () => {
    expect(rows.toSorted()).toEqual(Object.keys(absent).toSorted())
  })

  it.each(Object.entries(absent))('is neither exported nor accepted: %s', (_, names) => {
    expect(names.filter((name) => known.has(name))).toEqual([])
  })

  it('is listed here if a sentence mentions it, and is neither exported nor accepted', () => {
    const told = documents()
      .filter(({ path }) => path !== 'CHANGELOG.md')
      .flatMap(({ path, prose }) =>
        prose
          .split(/\n\n|(?<=[.])\s/)
          .filter((text) =>
            /\b(?:not there yet|not yet built|is \[?on its way(?! out)|no released|what Millrace lacks)\b/i.test(text),
          )
          .map((text) => ({ path, text })),
      )
    const unnamed = told.filter(({ text }) => !absentElsewhere.some(([form]) => form.test(text)))
    const there = absentElsewhere.flatMap(([, names]) => names.filter((name) => known.has(name)))

    expect({ unnamed, there }).toEqual({ unnamed: [], there: [] })
  })

  it('would be found: these features are known', () => {
    for (const name of [
      'JobContext.log',
      'QueueOptions.maxRunning',
      'ThrottleOptions.by',
      'TaskOptions.isolate',
      'Mill.listener',
      'millrace',
      'millrace jobs list',
      'millrace work --grace',
    ])
      expect(known).toContain(name)
  })
})

describe('the page for users of BullMQ', () => {
  it('names the features for limits, groups, processes and logs', () => {
    const text = new Document('docs/coming-from/bullmq.md').prose
    for (const [word, name] of [
      ['throttle', 'QueueOptions.throttle'],
      ['maxRunning', 'QueueOptions.maxRunning'],
      ["by: 'group'", 'ThrottleOptions.by'],
      ["isolate: 'process'", 'TaskOptions.isolate'],
      ['ctx.log()', 'JobContext.log'],
    ] as const) {
      expect(known).toContain(name)
      expect(text).toContain(word)
    }
  })
})
