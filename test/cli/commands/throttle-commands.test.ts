import { describe, expect, it } from 'vitest'
import { printed, run, runJson } from '../command-in-process.js'
import { project } from '../project.js'

const hour = 3_600_000
const rules = [
  { limit: 3, windowMs: hour, spreadMs: 1_000, moderate: false },
  { limit: 20, windowMs: 24 * hour, spreadMs: 1_000, moderate: false },
]
const lines = (text: string) => text.trimEnd().split('\n')

describe('millrace queues throttle', () => {
  it('shows the count of each window, who shares it and when the next job may start', async () => {
    const cwd = throttledProject()
    expect(await printed('queues throttle mail', { cwd })).toEqual([
      'mail · scope api, shared with sms',
      'limit  window  started',
      '    3      1h        2',
      '   20      1d        2',
      'The next job may start now.',
    ])
    expect(await runJson('queues throttle sms', { cwd })).toEqual({
      queue: 'sms',
      scope: 'api',
      by: 'queue',
      rules,
      queues: ['mail', 'sms'],
      hits: [2, 2],
      forMs: 0,
      quietForMs: 0,
    })
  })

  it('counts the groups of a throttle by group, and shows a named one', async () => {
    const cwd = throttledProject()
    expect(await printed('queues throttle crawl', { cwd })).toEqual([
      'crawl · by group',
      'limit  window  spacing',
      '   10      1m  one each 6.1s, elastic with a buffer of 2',
      '2 groups counted; --group shows one of them.',
    ])
    expect(await printed('queues throttle crawl --group a.example', { cwd })).toEqual([
      'crawl · by group',
      "group 'a.example'",
      'limit  window  started  spacing',
      '   10      1m        1  one each 6.1s, elastic with a buffer of 2',
      expect.stringMatching(/^The next job may start in [56]s\.$/),
    ])
    expect(await runJson('queues throttle crawl --group new', { cwd })).toMatchObject({
      group: 'new',
      hits: [0],
      forMs: 0,
      groups: 2,
    })
  })

  it('sets other rules for every queue of the scope, and prints the earlier ones', async () => {
    const cwd = throttledProject()
    expect(
      await printed('queues throttle mail --set 3/s --set 300/h', {
        cwd,
      }),
    ).toEqual([
      'mail: 3 in 1s and 300 in 1h; before: 3 in 1h and 20 in 1d.',
      "It holds for sms too, by the scope 'api'.",
      'Give the configuration the same rules: a mill with others is refused as throttle-conflict.',
    ])
    const args = ['queues', 'throttle', 'sms', '--set', '10/60s', '--moderate', '--elastic', '2']
    expect(await runJson(args, { cwd })).toEqual({
      queue: 'sms',
      queues: ['mail', 'sms'],
      before: rules,
      after: [{ limit: 10, windowMs: 60_000, spreadMs: 1_000, moderate: true, elasticBuffer: 2 }],
    })
  })

  it('gives a group its own rate, whatever the configuration says', async () => {
    const args = ['queues', 'throttle', 'crawl', '--group', 'a.example', '--set', '1/10m']
    expect(await printed(args, { cwd: throttledProject(), env: { DAILY: '30' } })).toEqual([
      "crawl, group 'a.example': 1 in 10m; before: 10 in 1m, one each 6.1s, elastic with a buffer of 2, like all groups.",
      'It stays until --set default: no configuration changes it.',
    ])
  })

  it('lists the groups with their own rates, shows one, and ends it', async () => {
    const [cwd, env] = [throttledProject(), { RATED: '1' }]
    const own = { limit: 1, windowMs: 600_000, spreadMs: 1_000, moderate: false }
    expect((await printed('queues throttle crawl', { cwd, env })).slice(-3)).toEqual([
      '2 groups counted; --group shows one of them.',
      'group         rate of its own',
      'slow.example  1 in 10m',
    ])
    expect(await runJson('queues throttle crawl', { cwd, env })).toMatchObject({
      own: { groups: 1, longestMs: 601_000, leastSpreadMs: 1_000 },
      rates: [{ group: 'slow.example', rules: [own] }],
    })
    const group = ['queues', 'throttle', 'crawl', '--group', 'slow.example']
    expect(await printed(group, { cwd, env })).toEqual([
      'crawl · by group',
      "group 'slow.example' · a rate of its own",
      'limit  window  started',
      '    1     10m        0',
      'The next job may start now.',
    ])
    expect(await printed([...group, '--set', 'default'], { cwd, env })).toEqual([
      "crawl, group 'slow.example': 10 in 1m, one each 6.1s, elastic with a buffer of 2, like all groups; before: 1 in 10m.",
      'The configuration says the rules of all groups.',
    ])
    const stats = await run('stats', { cwd, env })
    expect(stats.stdout).toContain('10 in 1m for each group, 2 groups counted, 1 with a rate of its own')
  })

  it('shows and sets rules for the whole queue and for each group', async () => {
    const [cwd, env] = [throttledProject(), { BOTH: '1' }]
    expect(await printed('queues throttle hosts', { cwd, env })).toEqual([
      'hosts',
      'limit  window  started  of',
      '  100      1h        2  all',
      '    1      2h        -  each group',
      'The next job may start now.',
      '2 groups counted; --group shows one of them.',
    ])
    expect((await printed('queues throttle hosts --group a.example', { cwd, env })).slice(1, 5)).toEqual([
      "group 'a.example'",
      'limit  window  started  of',
      '  100      1h        2  all',
      '    1      2h        1  the group',
    ])
    const set = (...more: string[]) => run(['queues', 'throttle', 'hosts', ...more], { cwd, env })
    expect(lines((await set('--set', '50/h')).stdout)[0]).toBe('hosts: 50 in 1h; before: 100 in 1h.')
    expect(lines((await set('--set', '2/h', '--by', 'group')).stdout)[0]).toBe(
      'hosts, each group: 2 in 1h; before: 1 in 2h.',
    )
    expect(lines((await set('--set', '2/h', '--group', 'x')).stdout)[0]).toBe(
      "hosts, group 'x': 2 in 1h; before: 1 in 2h, like all groups.",
    )
    const stats = await run('stats', { cwd, env })
    expect(stats.stdout).toContain('2/100 in 1h, 1 in 2h for each group, 2 groups counted')
  })

  it('sets the rules even if configured and stored ones differ, and so does a read-only command', async () => {
    const cwd = throttledProject()
    const env = { DAILY: '30' }
    const { code, stdout } = await run('queues throttle mail --set 3/1h,30/1d', { cwd, env })
    expect({ code, first: lines(stdout)[0] }).toEqual({
      code: 0,
      first: 'mail: 3 in 1h and 30 in 1d; before: 3 in 1h and 20 in 1d.',
    })
    expect((await run('stats', { cwd, env })).code).toBe(0)
  })

  it('says that a queue is not stored yet if the store does not have it', async () => {
    const { code, stdout, stderr } = await run('queues throttle plain', {
      cwd: throttledProject(),
      env: { DAILY: '30' },
    })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toBe(
      "millrace: queue 'plain' is not stored yet: it gets its throttle when a worker or a producer first uses it.\n",
    )
  })

  it.each([
    [['video'], 1, /queue 'video' has no throttle; give it one by `throttle` in the configuration/],
    [['video', '--set', '3/s'], 2, /queue 'video' has no throttle/],
    [['nope'], 2, /queue 'nope' is not declared/],
    [['mail', '--group', 'x'], 2, /holds for all of its jobs together: leave --group out/],
    [['mail', '--set', '3/s', '--group', 'x'], 2, /queue 'mail' has one throttle for all of its jobs together/],
    [['mail', '--by', 'group'], 2, /--by goes with --set/],
    [['crawl', '--by', 'group', '--group', 'x'], 2, /leave --by out/],
    [['crawl', '--set', 'default'], 2, /ends the rate of one group: name it by --group/],
    [['crawl', '--group', 'x', '--set', 'default', '--moderate'], 2, /--moderate goes with --set/],
    [['crawl', '--group', 'x', '--set', '3/s', '--set', 'default'], 2, /default stands alone/],
    [['mail', '--moderate'], 2, /--moderate goes with --set, such as --set 10\/60s/],
    [['mail', '--set', '3/s', '--elastic', '1'], 2, /--set: `elastic` needs `moderate: true`/],
    [['mail', '--set', '3/s,5/1s'], 2, /--set: must have different windows/],
  ])('%j exits with %i and the reason', async (args, expected, message) => {
    const { code, stdout, stderr } = await run(['queues', 'throttle', ...args], { cwd: throttledProject() })
    expect({ code, stdout }).toEqual({ code: expected, stdout: '' })
    expect(stderr).toMatch(message)
    expect(lines(stderr)).toHaveLength(1)
  })
})

describe('millrace stats', () => {
  it('has a line for each queue with limits: running of allowed, started, and when the next may start', async () => {
    const cwd = throttledProject()
    const { stdout } = await run('stats', { cwd })
    const [, limits] = stdout.split('\n\n')
    expect(lines(limits!)).toEqual([
      'queue    running      next  started',
      'mail     -             now  2/3 in 1h, 2/20 in 1d',
      'sms      -             now  2/3 in 1h, 2/20 in 1d',
      'crawl    -               -  10 in 1m for each group, 2 groups counted',
      'video    full 2/2        -  -',
      'tenants  ≤ 1 a group     -  -',
    ])
    const { queues } = await runJson<{ queues: Record<string, unknown>[] }>('stats', { cwd })
    const of = (name: string) => queues.find(({ queue }) => queue === name)!
    expect(of('mail')).toMatchObject({ throttle: { hits: [2, 2], queues: ['mail', 'sms'], forMs: 0 } })
    expect(of('video')).toMatchObject({ running: 2, maxRunning: 2 })
    expect(Object.keys(of('plain'))).not.toContain('throttle')
  })

  it('shows that a throttle is silent after the store was restarted', async () => {
    const { stdout } = await run('stats', { cwd: throttledProject(), env: { RESTARTED: '1' } })
    expect(stdout).toMatch(/\ncrawl +- +silent (?:1m(?: ?1s)?|59s) +10 in 1m for each group/)
  })
})

describe('millrace doctor', () => {
  it('reports a throttle whose configuration differs from the store', async () => {
    const { code, stdout } = await run('doctor', { cwd: throttledProject(), env: { DAILY: '30' } })
    expect(code).toBe(1)
    expect(stdout).toMatch(
      /^error {4}throttle {2}the throttle of queues 'mail', 'sms' is stored as .*--set 3\/1h,30\/1d`\.\n$/,
    )
  })

  it('reports a silent throttle, and nothing if all is well', async () => {
    const cwd = throttledProject()
    const { code, stdout } = await run('doctor', { cwd, env: { RESTARTED: '1' } })
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^warning {2}throttle {2}the throttle of queue 'crawl' is silent for (?:1m(?: ?1s)?|59s): the store was restarted/,
    )
    expect((await run('doctor', { cwd })).stdout).toMatch(/there is nothing that doctor could look at/)
  })
})

describe('millrace simulate throttle', () => {
  const simulate = (...args: string[]) => ['simulate', 'throttle', ...args]

  it('draws when jobs would start, without a configuration', async () => {
    const { code, stdout, stderr } = await run(simulate('--limit', '10', '--window', '60s', '--moderate'), { cwd: '/' })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const drawn = lines(stdout)
    expect(drawn.slice(0, 2)).toEqual(['10 in 1m, one each 6.1s', 'always a job waiting, 5m, seed 1'])
    expect(drawn.slice(-2)).toEqual(['50 started in 5m.', 'Most in any 1m, wherever it begins: 10 (limit 10).'])
    expect(Math.max(...drawn.map((line) => line.length))).toBeLessThanOrEqual(80)
  })

  it('prints every start as JSON, the same for the same seed', async () => {
    const args = simulate('--limit', '5', '--window', '1s', '--arrivals', '20/s', '--for', '4s', '--seed', '7')
    const first = await runJson<{ starts: number[]; worst: object[] }>(args, { cwd: '/' })
    expect(first).toMatchObject({ forMs: 4_000, seed: 7, started: first.starts.length, worst: [{ limit: 5, most: 5 }] })
    expect(await runJson(args, { cwd: '/' })).toEqual(first)
  })

  it('shows how long jobs have waited', async () => {
    const { stdout } = await run(simulate('--limit', '10', '--window', '60s', '--burst', '50'), { cwd: '/' })
    expect(lines(stdout).at(-1)).toBe('Waited before the start: half of them up to 2m2s, the longest 4m4s.')
  })

  it.each([
    [['--limit', '10'], /required option '--window <duration>' not specified/],
    [['--limit', '0', '--window', '1s'], /Expected a whole number from 1 to 1,000,000/],
    [['--limit', '5', '--window', '0'], /this throttle: window must be at least 1 ms; got 0/],
    [['--limit', '5', '--window', '1s', '--elastic', '2'], /this throttle: `elastic` needs `moderate: true`/],
    [['--limit', '5', '--window', '1s', '--poll-jitter', '3..1'], /Expected a range such as 0\.\.3/],
    [['--limit', '5', '--window', '1s', '--arrivals', 'many'], /Expected jobs\/time such as 3\/s/],
    [['--limit', '5', '--window', '1s', '--for', '0'], /Expected more than no time, such as 5m/],
    [
      ['--limit', '1000000', '--window', '1ms'],
      /might be [\d,]+ starts; at most 10,000 are drawn\. Give a shorter --for/,
    ],
    [['--limit', '1', '--window', '1h', '--arrivals', '9999/1ms'], /might be [\d,]+ jobs; at most 100,000/],
    [
      ['--limit', '1000', '--window', '1s', '--poll-jitter', '0..1', '--burst', '1', '--for', '1h'],
      /looks; at most 1,000,000/,
    ],
  ])('%j is refused', async (args, message) => {
    const { code, stdout, stderr } = await run(simulate(...args), { cwd: '/' })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(message)
    expect(lines(stderr)).toHaveLength(1)
  })
})

/**
 * `mail` and `sms` share the scope `api`: 2 have started, of 3 in an hour and 20 in a day; `crawl` counts by group, one of
 * `a.example` and one of `b.example`; `video` runs as many as may, `tenants` is bounded by group, `plain` by nothing.
 * With `BOTH` in the environment `hosts` has rules for all and for each group, and two have started. With `RATED` in the environment `slow.example` has a rate of its own; with `RESTARTED` the store has been started anew since.
 */
const storeFile = `
import { memoryHarness } from 'millrace/store-testing'

const make = async () => {
  const harness = await memoryHarness({ startAt: Date.now() })
  const store = await harness.open()
  const rule = (limit, windowMs, more) => ({ limit, windowMs, spreadMs: 1_000, moderate: false, ...more })
  const queue = (name, more) => ({ name, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, ...more })
  const api = { scope: 'api', by: 'queue', rules: [rule(3, 3_600_000), rule(20, 86_400_000)] }
  const even = rule(10, 60_000, { moderate: true, elasticBuffer: 2 })
  await store.open([
    queue('mail', { throttle: api }),
    queue('sms', { throttle: api }),
    queue('crawl', { throttle: { scope: 'crawl', by: 'group', rules: [even] } }),
    ...(process.env.BOTH ? [queue('hosts', { throttle: { scope: 'hosts', by: 'queue', rules: [rule(100, 3_600_000)], eachGroup: [rule(1, 7_200_000)] } })] : []),
    queue('video', { maxRunning: 2 }),
    queue('tenants', { maxRunning: { perGroup: 1 } }),
  ])
  let calls = 0
  const run = async (queue, groups) => {
    const jobs = groups.map((group, i) => ({ id: 'job-' + calls + '-' + i, task: 'it', payload: '1', priority: 0, rememberMs: 0, group }))
    await store.enqueue([{ callId: 'call-' + calls++, queue, jobs }])
    await store.claim([{ queue, limit: 10 }], { worker: 'w', leaseMs: 600_000 })
  }
  await run('mail', ['', ''])
  await run('crawl', ['a.example', 'b.example'])
  await run('video', ['', '', ''])
  if (process.env.BOTH) await run('hosts', ['a.example', 'b.example'])
  if (process.env.RATED) await store.throttles.setRate('crawl', 'slow.example', [rule(1, 600_000)])
  if (process.env.RESTARTED) {
    await harness.restart()
    await run('crawl', ['c.example'])
  }
  return harness
}
export default async () => (await (globalThis.harness ??= make())).open()
`

const configFile = `
import { millrace } from 'millrace'
import open from './store.js'
const api = [{ limit: 3, window: '1h', scope: 'api' }, { limit: Number(process.env['DAILY'] ?? 20), window: '1d', scope: 'api' }]
const crawl = { limit: 10, window: '60s', by: 'group', moderate: true, elastic: { buffer: 2 } }
const mill = millrace({
  store: { module: './store.js' },
  queues: {
    mail: { throttle: api },
    sms: { throttle: api },
    crawl: { throttle: crawl },
    video: { maxRunning: 2 },
    tenants: { maxRunning: { perGroup: 1 } },
    plain: {},
    ...(process.env['BOTH'] ? { hosts: {} } : {}),
  },
  tasks: [],
})
const queue = mill.queue.bind(mill)
mill.queue = (name) => {
  const admin = queue(name)
  if ('throttle' in admin) return admin
  const throttle = {
    get: async (group) => {
      const state = await (await open()).throttles.state(name, group)
      if (state === undefined) return undefined
      const { throttle, ...counted } = state
      return { ...throttle, ...counted }
    },
    set: async (windows) => {
      const rules = windows.map(({ limit, window, moderate = false, elastic }) => ({
        limit, windowMs: window, spreadMs: 1_000, moderate, ...(elastic && { elasticBuffer: elastic.buffer }),
      }))
      await (await open()).throttles.set(name, rules)
    },
  }
  return Object.assign(admin, { throttle })
}
export default mill
`

/** A user's folder whose store, in memory, has counted the same starts for every command anew. */
function throttledProject(): string {
  return project({ 'store.js': storeFile, 'package.json': '{"type":"module"}', 'millrace.config.js': configFile })
}
