import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { millrace } from 'millrace'
import { startRedis } from 'millrace/store-testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { redisTraits } from '#src/stores/redis/redis-traits.js'
import { sqliteTraits } from '#src/stores/sqlite/sqlite-traits.js'
import { CommandProcess, runProcess } from '../cli/command-process.js'
import { project, root } from '../cli/project.js'

const script = join(root, 'node_modules/jiti/lib/jiti-cli.mjs')

/**
 * Pops, three at once, until the queue is empty again, and says of every item between which moments it was given: sent and answered, by a
 * clock that all processes of a machine share.
 */
const popper = `
import { setTimeout as sleep } from 'node:timers/promises'
import { millrace } from 'millrace'

const now = () => performance.timeOrigin + performance.now()
const mill = millrace({ store: process.env['STORE']! })
const queue = mill.throttledQueue<string>('testqueue', { limit: 10, window: '10s' })
const say = (line: object) => console.log(JSON.stringify(line))
/** By how much its last nap was too long: a busy machine wakes nobody in time. */
let lateMs = 0
const nap = async (forMs: number) => {
  const until = now() + forMs
  await sleep(forMs)
  lateMs = Math.max(0, now() - until)
}

async function popAll() {
  let hasBegun = false
  const until = now() + 16_000
  while (now() < until) {
    const sentAt = now()
    const popped = await queue.tryPop()
    if (popped.wait === undefined) say({ event: 'popped', item: popped.item, sentAt, answeredAt: now(), lateMs })
    if (popped.wait === 'empty' && hasBegun) break
    hasBegun ||= popped.wait !== 'empty'
    if (popped.wait !== undefined) await nap(Math.min(popped.forMs ?? 5, popped.wait === 'empty' ? 5 : 1_000))
  }
}

try {
  await queue.length()
  say({ event: 'ready' })
  await Promise.all([popAll(), popAll(), popAll()])
} finally {
  await mill.close()
}
`

interface Given {
  readonly item: string
  readonly sentAt: number
  readonly answeredAt: number
  readonly lateMs: number
}

/** Where the items lie: the URL of a store, and the flags by which the example finds it. */
interface Place {
  readonly store: (cwd: string) => string
  readonly flags: readonly string[]
}

const places: readonly [string, boolean, () => Promise<Place>][] = [
  ['SQLite', sqliteTraits.throttled, async () => ({ store: (cwd) => `sqlite:${cwd}/.millrace/jobs.db`, flags: [] })],
  [
    'Redis',
    redisTraits.throttled,
    async () => {
      const server = await startRedis()
      onTestFinished(() => server.stop())
      const { hostname, port } = new URL(server.url)
      return { store: () => server.url, flags: ['-r', hostname, '-p', port] }
    },
  ],
]

function example(): string {
  const cwd = project({ 'popper.ts': popper })
  cpSync(join(root, 'examples/throttled-queue'), cwd, { recursive: true })
  return cwd
}

// They begin to run with the stores that have throttles.
for (const [name, isThrottled, place] of places) {
  describe.skipIf(!isThrottled)(`a throttled queue on ${name}`, { timeout: 60_000 }, () => {
    it('gives two processes ten items at once, each of the next ten 10.0 to 10.35 s after its predecessor, and none twice', async () => {
      const cwd = example()
      const store = (await place()).store(cwd)
      const poppers = [1, 2].map(() => new CommandProcess('popper.ts', { cwd, script, env: { STORE: store } }))
      await Promise.all(poppers.map((one) => one.events('ready')))
      const mill = millrace({ store })
      const queue = mill.throttledQueue<string>('testqueue', { limit: 10, window: '10s' })
      await Promise.all(Array.from({ length: 20 }, (_, i) => queue.push(`item-${i}`, i)))
      const ended = await Promise.all(poppers.map((one) => one.end()))
      await mill.close()
      expect(ended.map(({ code, stderr }) => ({ code, stderr }))).toEqual([1, 2].map(() => ({ code: 0, stderr: '' })))
      const given = ended
        .flatMap(({ stdout }) => stdout.trim().split('\n'))
        .map((line) => JSON.parse(line) as Given & { readonly event: string })
        .filter(({ event }) => event === 'popped')

      expect(given.map(({ item }) => item).sort()).toEqual(Array.from({ length: 20 }, (_, i) => `item-${i}`).sort())
      // The highest first: by their order one knows which came how many after which.
      const inOrder = given.sort((a, b) => Number(b.item.slice(5)) - Number(a.item.slice(5)))
      expect(inOrder[9]!.sentAt - inOrder[0]!.answeredAt).toBeLessThanOrEqual(100)
      for (const [k, first] of inOrder.slice(0, 10).entries()) {
        const next = inOrder[k + 10]!
        // Clocks of two processes are a millisecond apart.
        expect(next.answeredAt - first.sentAt).toBeGreaterThanOrEqual(9_999)
        // The window, its spread of 250 ms, and what two calls take; less what the machine took.
        expect(next.sentAt - first.answeredAt - next.lateMs).toBeLessThanOrEqual(10_350)
      }
    })

    it('works in the example, with the words of the original', async () => {
      const cwd = example()
      const { flags } = await place()
      const shown = new CommandProcess(['throttled-queue.ts', ...flags, '-w', '3', '-n', '10'], { cwd, script })
      const { input: said } = await shown.stdoutMatches(/(?:My item .*\n){20}/)
      shown.kill('SIGINT')
      const { code, stdout, stderr } = await shown.end()

      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(stdout).toMatch(
        /^Adding 20 items for testing\nKill when satisfied \^C\n(?:My item item-\d+ My time: \d+\.\d{5}\n){20}Finished\n$/,
      )
      const items = [...said.matchAll(/item-(\d+) My time: ([\d.]+)/g)].map(([, item, time]) => ({
        item: Number(item),
        time: Number(time),
      }))
      expect(items.map(({ item }) => item)).toEqual(Array.from({ length: 20 }, (_, i) => 19 - i))
      // The first call takes as long as it takes; the window begins with its grant.
      expect(items[9]!.time - items[0]!.time).toBeLessThan(3)
      expect(items[10]!.time).toBeGreaterThan(3)

      const other = await runProcess(['throttled-queue.ts', ...flags, '-w', '2', '-n', '10'], { cwd, script })
      expect(other).toMatchObject({ code: 1, stdout: 'Adding 20 items for testing\n' })
      expect(other.stderr).toMatch(/^the throttle of queue 'testqueue' is stored as 10 in 3 ?s and cannot be opened as/)
    })
  })
}

describe('the example of a throttled queue', () => {
  it('lists its flags, and says that it needs no server', async () => {
    const { code, stdout, stderr } = await runProcess(['throttled-queue.ts', '--help'], { cwd: example(), script })

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    for (const flag of ['-r', '-p', '-m', '-w', '-n', '-q', '-e']) expect(stdout).toContain(`  ${flag}, --`)
    expect(stdout).toContain('without it, SQLite in .millrace/jobs.db, and no server is needed')
  })

  it.each([
    [['-x'], /^Unknown option '-x'/],
    [['-n', 'many'], /limit: must be a whole number from 1 to 1000000; got NaN/],
    [['-e'], /`elastic` needs `moderate: true`/],
  ])('explains wrong flags: %j', async (flags, message) => {
    const { code, stdout, stderr } = await runProcess(['throttled-queue.ts', ...flags], { cwd: example(), script })

    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(message)
    expect(stderr).not.toContain('    at ')
  })
})
