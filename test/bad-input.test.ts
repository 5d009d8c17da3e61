/** The bad input table: each wrong thing gives one clear typed error, and nothing is stored, started or lost. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type AnyTask,
  type Duration,
  defineOrderedTask,
  defineTask,
  exponential,
  hold,
  jsonCodec,
  type MillOptions,
  millrace,
  type QueueOptions,
  type StoreDescriptor,
  snooze,
  type WorkerOptions,
} from 'millrace'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'

const email = defineTask({ name: 'email', input: z.object({ to: z.string() }) })
const anything = defineTask({ name: 'anything' })
const cyclic: Record<string, unknown> = {}
cyclic['self'] = cyclic
let deep: unknown = 1
for (let i = 0; i < 200; i += 1) deep = [deep]

/** What, the input, the options, what the message must say, and the code if it is not job-invalid. Wrong types on purpose. */
const jobs: [string, unknown, unknown, RegExp, code?: string][] = [
  ['an input of the wrong shape', { to: 1 }, {}, /input of a job of task 'email' does not match its schema:\n {2}to:/],
  ['no input', undefined, {}, /does not match its schema/],
  ['a cyclic input', cyclic, {}, /nested deeper than 100 levels, or contains itself/],
  ['an input 200 levels deep', deep, {}, /nested deeper than 100/],
  ['a function inside', { go: () => 1 }, {}, /'go' is a function/],
  ['a promise inside', { p: Promise.resolve() }, {}, /'p' is a Promise/],
  ['a symbol', Symbol('s'), {}, /is a symbol/],
  ['a prototype-polluting key', JSON.parse('{"__proto__":{"a":1}}'), {}, /key '__proto__' is refused/],
  ['a lone surrogate', '\ud800', {}, /lone surrogate/],
  ['an input over the limit', 'x'.repeat(256_001), {}, /takes 256003 bytes, the limit is 256000/, 'payload-too-large'],
  ['a meta over the limit', 1, { meta: { x: 'x'.repeat(256_001) } }, /the meta of a job/, 'payload-too-large'],
  ['a meta that is not an object', 1, { meta: 'm' }, /meta must be a plain object/],
  ['a meta that is a list', 1, { meta: [] }, /meta must be a plain object/],
  ['an empty id', 1, { id: '' }, /id must be 1 to 256 bytes/],
  ['an id of 257 bytes', 1, { id: 'é'.repeat(129) }, /id must be 1 to 256 bytes/],
  ['an id with NUL', 1, { id: 'a\0b' }, /without NUL/],
  ['an id with a lone surrogate', 1, { id: 'a\udfff' }, /valid UTF-8/],
  ['a number as id', 1, { id: 42 }, /id must be .*; got 42/],
  [
    'a priority that is not a whole number',
    1,
    { priority: 1.5 },
    /priority must be a whole number from -32768 to 32767; got 1.5/,
  ],
  ['a priority out of range', 1, { priority: 32_768 }, /priority must be/],
  ['NaN as priority', 1, { priority: Number.NaN }, /priority must be/],
  ['a delay without a unit', 1, { delay: '5' }, /delay must be a duration such as/],
  ['a negative delay', 1, { delay: -1 }, /delay must be a duration/],
  ['a delay of 11 years', 1, { delay: '4015d' }, /longer than .* the longest possible/],
  ['an infinite delay', 1, { delay: Number.POSITIVE_INFINITY }, /delay must be a duration/],
  ['an invalid expiry', 1, { expiresIn: 'soon' }, /expiresIn must be a duration .*, above 0, or 'never'; got "soon"/],
  ['an expiry at once', 1, { expiresIn: 0 }, /expiresIn must be .* above 0, or 'never'; got 0/],
  ['an expiry in 11 years', 1, { expiresIn: '4015d' }, /expiresIn of .* longer than .* the longest possible/],
  [
    'an expiry that is not longer than the delay',
    1,
    { expiresIn: '5m', delay: '5m' },
    /expiresIn \(300000 ms\) must be longer than delay \(300000 ms\)/,
  ],
  ['a bound of nothing', 1, { id: 'a', atMost: '1m' }, /atMost bounds a delay/],
  [
    'a bound below the delay',
    1,
    { id: 'a', delay: '1m', ifWaiting: 'replace', atMost: '1s' },
    /atMost \(1000 ms\) must be at least delay \(60000 ms\)/,
  ],
  ['a memory without an id', 1, { idempotency: '1d' }, /idempotency needs an id of your own/],
  ['an invalid memory', 1, { id: 'a', idempotency: 'long' }, /idempotency must be a duration/],
  ['an id that is too long', 1, { id: 'x'.repeat(257) }, /1 to 256 bytes.*`idOf\(text\)`/],
  ['a group that is too long', 1, { group: 'x'.repeat(257) }, /at most 256 bytes.*`idOf\(text\)`/],
  [
    'an expiry together with runAt',
    1,
    { expiresIn: '5m', runAt: new Date() },
    /expiresIn goes with delay, not with runAt/,
  ],
  ['a bare number as runAt', 1, { runAt: 1_536_323_288 }, /runAt must be a valid Date or ISO-8601 text with a zone/],
  ['milliseconds as runAt', 1, { runAt: 1_536_323_288_000 }, /For a time from now use delay/],
  ['runAt without a zone', 1, { runAt: '2030-01-01T00:00:00' }, /with a zone/],
  ['runAt on no day', 1, { runAt: '2030-13-45T00:00:00Z' }, /a day that exists/],
  ['an invalid Date', 1, { runAt: new Date(Number.NaN) }, /valid Date/],
  ['runAt in the year 9999', 1, { runAt: new Date('9999-01-01') }, /before the year 2287/],
  ['delay and runAt', 1, { delay: 1, runAt: new Date() }, /delay or runAt, not both/],
  ['a score', 1, { score: 3 }, /'score' is not an option of enqueue; known are id, delay, runAt, priority/],
  ['an unknown option', 1, { attempts: 3 }, /'attempts' is not an option of enqueue; known are/],
  ['options that are no object', 1, 5, /options must be an object/],
  [
    'a queue that is not declared',
    1,
    { queue: 'hihg' },
    /queue 'hihg' is not declared.*declared are: high, default/,
    'queue-unknown',
  ],
  ['fields that are no object', 1, { fields: ['a'] }, /fields must be an object of names and values; got/],
  [
    'a name of a field with a space',
    1,
    { fields: { 'a b': 1 } },
    /the name of a field must be 1 to 64 of .*; got "a b"/,
  ],
  [
    'a field of null',
    1,
    { fields: { a: null } },
    /field 'a' must be a text, a finite number or a boolean .*; got null/,
  ],
  ['a field of NaN', 1, { fields: { a: Number.NaN } }, /field 'a' must be .* a finite number .*; got NaN/],
  ['a field of an object', 1, { fields: { a: {} } }, /field 'a' must be .* as JSON; got/],
  ['a field of 257 bytes', 1, { fields: { a: 'x'.repeat(255) } }, /field 'a' must be .* at most 256 bytes as JSON/],
  ['33 fields', 1, { fields: Object.fromEntries([...Array(33).keys()].map((n) => [`f${n}`, n])) }, /at most 32/],
  [
    'fields of 5 KiB',
    1,
    { fields: Object.fromEntries([...Array(20).keys()].map((n) => [`f${n}`, 'x'.repeat(250)])) },
    /fields must be at most 32, and at most 4096 bytes/,
  ],
  ['an invalid group', 1, { group: true }, /group must be at most 256 bytes.*; got true/],
  ['a group with NUL', 1, { group: 'a\0b' }, /group must be .* without NUL/],
  ['a group of 257 bytes', 1, { group: 'é'.repeat(129) }, /group must be at most 256 bytes/],
  ['a group with a lone surrogate', 1, { group: 'a\udfff' }, /group must be .* valid UTF-8/],
  ['an infinite group', 1, { group: Number.POSITIVE_INFINITY }, /group must be .* a finite number/],
]

const queues: [string, unknown, RegExp][] = [
  ['weight 0', { weight: 0 }, /queues\.q\.weight: must be a whole number from 1 to 100; got 0/],
  ['weight 101', { weight: 101 }, /queues\.q\.weight: must be a whole number from 1 to 100/],
  ['a lease under 3 s', { lease: '2s' }, /queues\.q\.lease: must be at least 3000 ms/],
  ['a lease that is not a duration', { lease: 'long' }, /queues\.q\.lease: must be a duration such as/],
  ['an order there is not', { order: 'random' }, /queues\.q\.order/],
  ['claimSize 501', { claimSize: 501 }, /queues\.q\.claimSize: must be a whole number from 1 to 500/],
  ['no shards', { ordered: true, shards: 0 }, /queues\.q\.shards: must be a whole number from 1 to 1024; got 0/],
  ['an exclusion there is not', { ordered: true, exclusive: 'queue' }, /queues\.q\.exclusive: must be 'id' or 'shard'/],
  [
    'an order of shards there is not',
    { ordered: true, shardOrder: 'random' },
    /queues\.q\.shardOrder: must be 'lag', 'sequential' or a function; got "random"/,
  ],
  ['exclusive without `ordered`', { exclusive: 'shard' }, /queues\.q\.exclusive: is for ordered queues only/],
  [
    'a group without a turn',
    { groupWeights: { acme: 0 } },
    /queues\.q\.groupWeights: must give each group a whole number from 1 to 100/,
  ],
  ['weights of groups as a list', { groupWeights: ['acme'] }, /queues\.q\.groupWeights: must be an object/],
  [
    'a weight for a group that cannot be',
    { groupWeights: { ['x'.repeat(257)]: 2 } },
    /queues\.q\.groupWeights: must have names of groups as its keys, each at most 256 bytes/,
  ],
  [
    'weights of 101 groups',
    { groupWeights: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`g${i}`, 2])) },
    /queues\.q\.groupWeights: must have at most 100 groups/,
  ],
  ['iterations 0', { iterations: 0 }, /queues\.q\.iterations/],
  ['maxPending 0', { maxPending: 0 }, /queues\.q\.maxPending/],
  ['an unknown option', { concurrency: 3 }, /queues\.q\.concurrency: is not an option; check its spelling/],
  ['a throttle without a window', { throttle: { limit: 1 } }, /queues\.q\.throttle\.window: is missing/],
  [
    'an elastic throttle that is not moderate',
    { throttle: { limit: 2, window: '1s', elastic: { buffer: 1 } } },
    /queues\.q\.throttle: `elastic` needs `moderate: true`/,
  ],
  ['maxRunning 0', { maxRunning: 0 }, /queues\.q\.maxRunning: must be a whole number of at least 1/],
  [
    'maxRunning by group over shards',
    { ordered: true, maxRunning: { perGroup: 1 } },
    /queues\.q\.maxRunning: cannot be `\{ perGroup \}` over its 5 shards .*set `shards: 1`/,
  ],
  ['a retention of text', { retention: { results: 'forever' } }, /queues\.q\.retention\.results/],
]

const stores: [string, unknown, RegExp][] = [
  ['no store', undefined, /store: must be a store such as/],
  ['a number', 5, /store: must be a store such as/],
  ['a scheme there is not', 'mysql://u:secret@h/db', /expected 'memory:'.*got 'mysql:\/\/…@h\/db'/],
  [
    'a path without a scheme',
    './jobs.db',
    /expected 'memory:'.*; got '\.\/jobs\.db'\. For this file use 'sqlite:\.\/jobs\.db'$/,
  ],
  ['an object of no store', { file: 'jobs.db' } as never, /expected 'memory:'.*; got \[object Object\]$/],
  [
    'the options of a Redis client',
    { host: 'h', port: 6379, password: 'secret' } as never,
    /got \[object Object\]\. What clients of Redis take as \{ host, port \} is here 'redis:\/\/host:port', or \{ hosts: /,
  ],
  ['SQLite without a file', 'sqlite:', /needs a file/],
  ['SQLite in memory', 'sqlite::memory:', /needs a file/],
  ['memory with a path', 'memory:jobs', /takes no path/],
]

const workers: [string, unknown, RegExp][] = [
  ['concurrency 0', { concurrency: 0 }, /concurrency: must be a whole number from 1 to 100000; got 0/],
  ['no queues', { queues: [] }, /queues: must name at least one queue/],
  ['a selector there is not', { selector: 'fair' }, /selector: must be one of random, lottery/],
  ['a grace that is not a duration', { grace: 'soon' }, /grace: must be a duration such as/],
  ['an unknown option', { slots: 3 }, /slots: is not an option/],
  ['a queue that is not declared', { queues: ['nowhere'] }, /queue 'nowhere' is not declared/],
]

describe.each(['memory', 'sqlite'])('on the %s store', (kind) => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-bad-input-'))
  const store = kind === 'memory' ? 'memory:' : `sqlite:${join(folder, 'jobs.db')}`
  const mill = millrace({ store, tasks: [email, anything], queues: { high: {} } })

  beforeAll(async () => {
    await mill.enqueue(anything, 'was here before', { id: 'before' })
  })

  afterAll(async () => {
    await mill.close()
    rmSync(folder, { recursive: true })
  })

  it.each(jobs)('refuses %s', async (what, input, options, message, code = 'job-invalid') => {
    const task = what.includes('shape') || what === 'no input' ? email : anything
    const enqueued = mill.enqueue(task, input as never, options as never)

    await expect(enqueued).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  })

  it.each([undefined, null, {}, 'email', { name: 'email', kind: 'plain' }])('refuses %s as a task', async (task) => {
    const none = task as never
    const shown = task === undefined ? 'undefined' : '.+'
    const byName =
      typeof task === 'string' ? ' To enqueue by the name of a task, call mill\\.enqueueNamed\\(\\)\\.' : ''
    const refused = {
      code: 'argument-invalid',
      message: expect.stringMatching(
        new RegExp(
          `^enqueue(Many)?\\(\\) expects a task made by .*; got ${shown}\\..* circular import leaves it undefined\\.${byName}$`,
        ),
      ),
    }

    await expect(mill.enqueue<AnyTask>(none, 1)).rejects.toMatchObject(refused)
    await expect(mill.enqueueMany<AnyTask>(none, [1])).rejects.toMatchObject(refused)
  })

  it('has stored none of these jobs, and lost nothing', async () => {
    expect((await mill.depths()).map(({ ready, scheduled, dead }) => ready + scheduled + dead)).toEqual([0, 1])
    expect(await mill.job('before').status()).toBe('ready')
    expect(({} as Record<string, unknown>)['a']).toBeUndefined()
  })

  it.each([
    ['a cursor of nowhere', () => mill.queue('default').jobs.list({ cursor: '!' }), /cursor/],
    ['a limit of 0', () => mill.queue('default').jobs.list({ limit: 0 }), /limit must be a whole number from 1 to 200/],
    ['a limit of 201', () => mill.queue('default').jobs.list({ limit: 201 }), /limit must be/],
    [
      'a state there is not',
      () => mill.queue('default').jobs.list({ state: 'delayed' as never }),
      /state must be one of .*\. What others call delayed is here scheduled\./,
    ],
    ['an order there is not', () => mill.queue('default').jobs.list({ by: 'size' as never }), /by must be one of/],
    [
      'jobs that are no list',
      async () => mill.queue('default').jobs.cancel('some' as never),
      /list of ids, 'all', 'failed' or a filter/,
    ],
    ['an invalid id', async () => mill.queue('default').jobs.delete(['']), /a job id must be/],
    [
      'an invalid timeout',
      () => mill.job('before').result({ timeout: 'soon' as Duration }),
      /result\(\{ timeout \}\) must be a duration/,
    ],
    ['a handle without an id', async () => mill.job(''), /a job id must be/],
  ])('refuses %s', async (_, call, message) => {
    await expect(call()).rejects.toMatchObject({ code: 'argument-invalid', message: expect.stringMatching(message) })
  })

  it.each(queues)('refuses a queue with %s', (_, options, message) => {
    expect(() => millrace({ store, queues: { q: options as QueueOptions } })).toThrow(message)
  })

  it.each(workers)('refuses a worker with %s', (_, options, message) => {
    expect(() => mill.worker(options as WorkerOptions<'default'>)).toThrow(message)
  })
})

describe('a mill', () => {
  it.each(stores)('refuses %s as its store', (_, store, message) => {
    expect(() => millrace({ store: store as StoreDescriptor })).toThrow(message)
  })

  it.each<[string, Partial<MillOptions>, RegExp]>([
    ['two tasks of one name', { tasks: [email, defineTask({ name: 'email' })] }, /'email' names two tasks/],
    [
      'an alias that is another task',
      { tasks: [email, defineTask({ name: 'b', aliases: ['email'] })] },
      /'email' names two tasks/,
    ],
    [
      'a task whose onDead is not under tasks',
      { tasks: [defineTask({ name: 'a', onDead: anything })] },
      /tasks: lack 'anything', which is onDead of the task 'a': add it, or its name to `tasksElsewhere`/,
    ],
    [
      'a task whose onDead is run elsewhere, in a queue that is not declared',
      { tasks: [defineTask({ name: 'a', onDead: defineTask({ name: 'b', queue: 'c' }) })], tasksElsewhere: ['b'] },
      /queues: lack 'c', the queue of 'b', which is onDead of the task 'a': declare it/,
    ],
    [
      'a task whose onDead names a queue of its own that is not declared',
      {
        tasks: [
          defineTask({ name: 'a', onDead: defineTask({ name: 'b', queue: 'c' }) }),
          defineTask({ name: 'b', queue: 'd' }),
        ],
      },
      /queues: lack 'c', the queue of 'b', which is onDead of the task 'a': declare it/,
    ],
    [
      'a task whose onDead is in an ordered queue',
      {
        tasks: [
          defineTask({ name: 'a', onDead: defineTask({ name: 'b', queue: 'c' }) }),
          defineOrderedTask({ name: 'o', queue: 'c', id: () => 'x' }),
        ],
        tasksElsewhere: ['b'],
      },
      /tasks: have 'b', which is onDead of the task 'a', in queue 'c', which is ordered: give it another queue/,
    ],
    [
      'a task that is its own onDead',
      { tasks: [defineTask({ name: 'a', onDead: defineTask({ name: 'a' }) })] },
      /tasks: must not get the deaths of their own jobs, by onDead: 'a' → 'a'\. A job that always dies/,
    ],
    [
      'tasks that are onDead of each other, by an alias',
      {
        tasks: [
          defineTask({ name: 'first', onDead: defineTask({ name: 'a' }) }),
          defineTask({ name: 'a', onDead: defineTask({ name: 'b' }) }),
          defineTask({ name: 'c', aliases: ['b'], onDead: defineTask({ name: 'a' }) }),
        ],
      },
      /tasks: must not get the deaths of their own jobs, by onDead: 'a' → 'c' → 'a'\./,
    ],
    ['an invalid task', { tasks: [{} as never] }, /tasks\.0: must be a task made by defineTask/],
    ['a queue name with a colon', { queues: { 'a:b': {} } }, /must be 1 to 80 characters/],
    [
      'a codec without decode',
      { codec: { name: 'x', encode: () => '' } as never },
      /codec: must be \{ name, encode, decode \}/,
    ],
    [
      'a codec name with a plus, which separates codec and steps',
      { codec: { ...jsonCodec, name: 'json+gzip' } },
      /codec: must be \{ name, encode, decode \}, the name 1 to 80 characters of A-Z a-z 0-9/,
    ],
    ['compression above nothing', { compress: { above: 0 } }, /compress\.above: must be a size such as '512MB'/],
    ['compression without its limit', { compress: {} as never }, /compress\.above: is missing/],
    ['half a logger', { logger: { info: () => {} } as never }, /logger: must have debug, info, warn and error/],
    [
      'payloads over 1 MiB',
      { maxPayloadBytes: 2_000_000 },
      /maxPayloadBytes: must be a whole number from 1 to 1048576/,
    ],
    ['an unknown option', { retries: 3 } as never, /retries: is not an option/],
  ])('refuses %s', (_, options, message) => {
    expect(() => millrace({ store: 'memory:', ...options })).toThrow(message)
  })

  it('names every mistake at once', () => {
    const options = { store: 5, queues: { a: { weight: 0, lease: '1s' } }, maxPayloadBytes: -1 } as never
    expect(() => millrace(options)).toThrow(
      /store: [\s\S]*queues\.a\.weight: [\s\S]*queues\.a\.lease: [\s\S]*maxPayloadBytes: /,
    )
  })
})

describe('a call made without a mill', () => {
  it.each<[string, () => unknown, RegExp]>([
    [
      'a backoff with a base that is not a duration',
      () => exponential({ base: '1 minute' as Duration }),
      /exponential\(\{ base \}\) must be a duration/,
    ],
    ['a snooze for no duration', () => snooze('later' as Duration), /snooze\(delay\) must be a duration/],
    ['a hold for something that no server sends', () => hold(true as never), /hold\(when\) must be a duration/],
    ['a task without a name', () => defineTask({} as never), /task is not valid:\n {2}name: is missing/],
    [
      'an ordered task whose name can be no queue',
      () => defineOrderedTask({ name: 'sync order' }),
      /ordered task 'sync order' is not valid:\n {2}queue: must be given/,
    ],
    [
      'an ordered task with a priority',
      () => defineOrderedTask({ name: 's', priority: 1 } as never),
      /priority: is not an option/,
    ],
    [
      'an ordered task with onDead',
      () => defineOrderedTask({ name: 's', onDead: anything } as never),
      /onDead: is not an option.* It is an option of a plain task/,
    ],
    ['a time limit of 0', () => defineTask({ name: 't', timeLimit: 0 }), /timeLimit: must be at least 1 ms/],
    [
      'a handler for a task that has one',
      () => defineTask({ name: 't', run: () => 1 }).handle(() => 2),
      /has a handler already/,
    ],
  ])('refuses %s', (_, make, message) => {
    expect(make).toThrow(message)
  })
})
