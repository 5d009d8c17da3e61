/** The programs and command lines of the documentation: each is run, and prints what its page shows. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Job, Queue } from 'bullmq'
import { defineTask, millrace } from 'millrace'
import { type StartedRedis, startRedis } from 'millrace/store-testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { run } from '../cli/command-in-process.js'
import { CommandProcess, runProcess } from '../cli/command-process.js'
import { root } from '../cli/project.js'
import { notRun } from './docs-not-run.js'
import { commandPages, Document, documents } from './document.js'
import { execute, folderOf, shellLines, shownAfter, wordsOf } from './documented-project.js'

const all = documents()
const readme = all.find(({ path }) => path === 'README.md')!
const blocks = all.flatMap((document) => document.blocks)

describe('the command lines of the documentation', () => {
  it.each([
    { name: 'the README shows', pages: [readme] },
    { name: 'the pages of the command line show', pages: commandPages() },
  ])('run one after the other as $name them', { timeout: 300_000 }, async ({ pages }) => {
    const cwd = folderOf(readme)
    const lines = pages.flatMap(shellLines).filter((line) => /^(?:npx )?millrace /.test(line))
    expect(lines.length).toBeGreaterThan(4)
    for (const line of lines) {
      // Of these two the worker is one that a reader has.
      if (/^millrace workers (stop|recycle) /.test(line)) continue
      const args = wordsOf(line.replace(/^(?:npx )?millrace /, ''))
      const ended =
        args[0] === 'work' || args[0] === 'exec'
          ? await worked(args, cwd)
          : args.includes('--watch') || args[0] === 'events' || args[0] === 'dash'
            ? await watched(args, cwd)
            : args[0] === 'enqueue'
              ? await runProcess(args, { cwd })
              : await run(args, { cwd })
      expect({ line, code: ended.code, stderr: ended.stderr }).toEqual({ line, code: 0, stderr: '' })
      expect(ended.stdout).not.toBe('')
    }
  })

  it('are all run, or listed with a reason', () => {
    const run = new Set([readme, ...commandPages()].map(({ path }) => path))
    const left = all.flatMap((document) =>
      shellLines(document)
        .filter(
          (line) => !(run.has(document.path) && /^(?:npx )?millrace /.test(line)) && line !== 'node first-job.mjs',
        )
        .map((line) => ({ line: `${document.path}: ${line}`, reason: notRun.find(([form]) => form.test(line))?.[1] })),
    )
    for (const { line, reason } of left) console.log(`not run: ${line} (${reason})`)

    expect(left.filter(({ reason }) => reason === undefined)).toEqual([])
    expect(
      notRun.filter(([form]) => !all.some((document) => shellLines(document).some((line) => form.test(line)))),
    ).toEqual([])
  })
})

/** Works until all of its processes have started, then stops. */
async function worked(args: readonly string[], cwd: string) {
  const processes = args.includes('--processes') ? Number(args[args.indexOf('--processes') + 1]) : 1
  const worker = new CommandProcess(args.toSpliced(1, 0, '--json'), { cwd })
  await worker.events('worker.started', processes)
  worker.kill('SIGTERM')
  return worker.end()
}

/** Watches until there is something to see, then interrupts. */
async function watched(args: readonly string[], cwd: string) {
  const watch = new CommandProcess(args, { cwd })
  await new Promise((resolve) => watch.child.stdout!.once('data', resolve))
  watch.kill('SIGINT')
  return watch.end()
}

describe('the programs of the documentation', () => {
  const store = pathToFileURL(join(root, 'dist/stores/memory/memory-store.js')).href
  /** On the page of those who come from BullMQ. */
  const [twins, mover] = [['with-bullmq.mjs', 'with-millrace.mjs'], 'move-delayed.mjs'] as const
  const programs: readonly {
    path: string
    file: string
    prints: string
    beside?: Record<string, string>
    /** Of its lines: what runs beside each other ends in any order. */
    inAnyOrder?: boolean
  }[] = [
    { path: 'docs/selectors.md', file: 'nightly.mjs', prints: '' },
    ...['welcome.mjs', 'insert-rows.mjs'].map((file) => ({
      path: 'docs/job-lifecycle.md',
      file,
      prints: shownAfter('docs/job-lifecycle.md', file),
    })),
    { path: 'docs/middleware.md', file: 'traced.mjs', prints: 'who-asked completed at attempt 1\nrequest-7\n' },
    {
      path: 'docs/crashes.md',
      file: 'paid-once.mjs',
      prints: `${blocks.find(({ language, at }) => language === 'text' && at.startsWith('docs/crashes.md'))!.text}\n`,
    },
    {
      path: 'docs/coming-from/lowkiq.md',
      file: 'a-test-worker.mjs',
      prints: shownAfter('docs/coming-from/lowkiq.md', 'a-test-worker.mjs'),
      inAnyOrder: true,
    },
    ...[
      ['docs/ordered-jobs.md', 'sync-orders.mjs'] as const,
      ['docs/merging.md', 'merged.mjs'] as const,
      ['docs/fencing.md', 'order-table.mjs'] as const,
      ['docs/stores/sqlite.md', 'order-and-job.mjs'] as const,
      ['docs/schedules.md', 'tenants.mjs'] as const,
      ['docs/tracing.md', 'traced-mail.mjs'] as const,
      ['docs/coming-from/redis-throttled-queue.md', 'throttled.mjs'] as const,
      ['docs/coming-from/blueque.md', 'blueque.mjs'] as const,
      ['docs/coming-from/kale.md', 'kale.mjs'] as const,
    ].map(([path, file]) => ({ path, file, prints: shownAfter(path, file) })),
    {
      path: 'docs/writing-a-store.md',
      file: 'with-my-store.mjs',
      prints: 'Hello, Ada!\n',
      beside: {
        'my-store.mjs': `import { MemoryStore } from '${store}'
import { systemClock } from '${new URL('../../core/platform/clock.js', store).href}'
export const makeStore = () => new MemoryStore(systemClock)`,
      },
    },
  ]

  it.each(programs)('run: $path, $file', ({ path, file, prints, beside = {}, inAnyOrder = false }) => {
    const cwd = folderOf(new Document(path))
    for (const [name, text] of Object.entries(beside)) writeFileSync(join(cwd, name), text)
    const { status, stdout, stderr } = execute(file, cwd)

    const shown = (text: string) => (inAnyOrder ? text.split('\n').sort().join('\n') : text)
    expect({ status, stdout: shown(stdout), stderr }).toEqual({ status: 0, stdout: shown(prints), stderr: '' })
  })

  it('run on a server: docs/fencing.md, order-cache.mjs', async () => {
    const redis = await startRedis()
    const { status, stdout, stderr } = execute('order-cache.mjs', folderOf(new Document('docs/fencing.md')), {
      REDIS_URL: redis.url,
    })
    await redis.stop()

    expect({ status, stdout, stderr }).toEqual({
      status: 0,
      stdout: shownAfter('docs/fencing.md', 'order-cache.mjs'),
      stderr: '',
    })
  })

  describe('that come from BullMQ', () => {
    const page = new Document('docs/coming-from/bullmq.md')
    let redis: StartedRedis
    beforeEach(async () => {
      redis = await startRedis()
    })
    afterEach(() => redis.stop())
    const told = (file: string, cwd: string, url = redis.url) => {
      const { status, stdout, stderr } = execute(file, cwd, { REDIS_URL: url })
      expect({ file, status, stderr }).toEqual({ file, status: 0, stderr: '' })
      return stdout
    }

    it.each(twins)('do the same job: %s', (file) => {
      const shown = page.blocks.find(({ language }) => language === 'text')!.text

      expect(told(file, folderOf(page))).toBe(`${shown}\n`)
    })

    it('move delayed jobs, each once, to the same time and order, and leave the jobs of a scheduler', async () => {
      // The mover takes all of the address: user, password and database.
      await redis.servers[0]!.ask('ACL', 'SETUSER', 'mover', 'on', '>sesame', '~*', '&*', '+@all')
      await redis.servers[0]!.ask('ACL', 'SETUSER', 'default', 'off')
      const url = `${redis.url.replace('://', '://mover:sesame@')}/1`
      const mails = new Queue('mails', { connection: { url } })
      const [first, second] = [
        await mails.add('welcome', { to: 'a' }, { delay: 3_600_000 }),
        await mails.add('welcome', { to: 'b' }, { delay: 60_000, priority: 3 }),
      ]
      // Its own fields keep the first delay and the time at which it was added.
      await second.changeDelay(7_200_000)
      await mails.add('goodbye', {}, { delay: 60_000 })
      await mails.upsertJobScheduler('digest', { every: 3_600_000, offset: 1 }, { name: 'welcome' })
      const changedAt = Date.now()
      // As a program that died after this job was enqueued, and before it was removed.
      const welcome = defineTask({ name: 'welcome', queue: 'mails' })
      const mill = millrace({ store: url, tasks: [welcome] })
      const runAt = (job: Job) => new Date(job.timestamp + 3_600_000)
      await mill.enqueue(welcome, first.data, { id: `bullmq-${first.id}`, runAt: runAt(first) })

      const [count, ...left] = told(mover, folderOf(page), url).trim().split('\n')
      expect(count).toBe('2 moved, 2 left')
      expect(left.sort()).toEqual([
        expect.stringMatching(/^\d+: no task is called 'goodbye' here$/),
        expect.stringMatching(/^repeat:.*: its scheduler '.*' makes it$/),
      ])
      const { jobs } = await mill.queue('mails').jobs.list({ by: 'id' })
      const moved = jobs.map(({ id, input, runAt, priority }) => ({ id, input, runAt, priority }))

      const [one, two] = moved
      expect(one).toEqual({ id: `bullmq-${first.id}`, input: { to: 'a' }, runAt: runAt(first), priority: 0 })
      expect(two).toMatchObject({ id: `bullmq-${second.id}`, input: { to: 'b' }, priority: -3 })
      expect(Math.abs(two!.runAt.getTime() - changedAt - 7_200_000)).toBeLessThan(60_000)
      expect(await mails.getDelayedCount()).toBe(2)
      await Promise.all([mails.close(), mill.close()])
    })
  })

  it('are all run', () => {
    // By test/testing/test-runners.drill.ts; those of the guides by test/docs/docs-guides.drill.ts.
    const asTests = ['tasks.mjs', 'sign-up.test.mjs', 'welcome.test.mjs']
    // By test/docs/docs-movers.test.ts.
    const movers = ['mails.mjs', 'move-from-pg-boss.mjs', 'move-from-graphile-worker.mjs', 'schedules-of-crontab.mjs']
    const run = new Set([
      'first-job.mjs',
      'order-cache.mjs',
      ...programs.map(({ file }) => file),
      ...twins,
      mover,
      ...asTests,
      ...movers,
    ])
    const js = blocks.filter(({ language, at }) => language === 'js' && !/^docs\/(?:troubleshooting|guides)\//.test(at))

    expect(js.filter(({ file }) => file === undefined || !run.has(file))).toEqual([])
  })
})

describe('the program on an error page', () => {
  const pages = all.filter(({ path }) => /^docs\/troubleshooting\/[a-z]/.test(path))
  const codeOf = ({ path }: Document) => /([a-z-]+)\.md$/.exec(path)![1]!
  // A worker tries for half a minute to open what its handlers need.
  it.each(pages.map((page) => [codeOf(page), page] as const))(
    'throws that error: %s',
    { timeout: 60_000 },
    (code, page) => {
      const { stdout, stderr, signal } = execute(`${code}.mjs`, folderOf(page))
      const told = stdout === '' ? /code: '([a-z-]+)'/.exec(stderr)?.[1] : stdout.trim()

      expect({ told, signal }).toEqual({ told: code, signal: null })
    },
  )

  it('exists on every page', () => {
    const programs = (page: Document) => page.blocks.filter(({ language }) => language === 'js').map(({ file }) => file)

    expect(pages.filter((page) => programs(page).join() !== `${codeOf(page)}.mjs`).map(({ path }) => path)).toEqual([])
  })

  it('has a command next to it on one of the pages', async () => {
    const page = pages.find((candidate) => codeOf(candidate) === 'task-unknown')!
    const [line] = shellLines(page)
    const { code, stderr } = await runProcess(wordsOf(line!.replace(/^millrace /, '')), { cwd: folderOf(readme) })

    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('is not declared') })
  })
})
