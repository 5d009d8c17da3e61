/**
 * A throttle scene: a sequence of steps from a seed on the throttle of one scope — claims, rests, other rules, a clock that
 * goes on and is set back, a server that is started anew — done by the memory store's throttle, and by the Lua of the Redis
 * store, which must answer alike.
 */

import { ruleText, type Throttle, type ThrottleRule } from '#src/core/queue/throttle.js'
import { Dice } from '#src/store-testing/sequences/dice.js'
import { MemoryThrottle } from '#src/stores/memory/queue/memory-throttle.js'
import type { RedisClient } from '#src/stores/redis/client/redis-client.js'
import { redisScript } from '#src/stores/redis/client/redis-script.js'
import { throttle } from '#src/stores/redis/lua/throttle-lua.js'

/** Done by one script; the subjects one after the other. */
export type Step =
  | {
      readonly verb: 'claim'
      readonly of: readonly { subject: string; want: number; hasMore: boolean; lateMs: number }[]
    }
  | { readonly verb: 'rest'; readonly subject: string; readonly isOpen: boolean }
  | { readonly verb: 'set'; readonly rules: readonly ThrottleRule[] }
  /** Absent: the group has no rules of its own. */
  | { readonly verb: 'rate'; readonly subject: string; readonly rules: readonly ThrottleRule[] | undefined }
  | { readonly verb: 'pass' }

export interface Moment {
  readonly step: Step
  readonly now: number
  readonly run: string
}

export interface Planned extends Moment {
  /** What the memory store's throttle said to the step, and what all of it looks like afterwards. */
  readonly answers: readonly number[]
  readonly looks: readonly Look[]
  readonly quietForMs: number
  readonly recoveries: number
  readonly subjects: readonly string[]
}

export interface Look {
  readonly subject: string
  readonly hits: readonly number[]
  readonly waitMs: number
  readonly log: readonly { readonly at: number; readonly count: number }[]
  readonly grids: readonly (readonly [slotUs: number | undefined, credit: number])[]
}

/** What the memory store's throttle makes of a seed. */
export interface Scene {
  readonly throttle: Throttle
  readonly subjects: readonly string[]
  readonly plan: readonly Planned[]
}

interface SceneClock {
  now: number
  /** How often the server was started. */
  run: number
}

const groups = ['x', 'xy', 'É', '']

export function throttleScene(seed: number, steps: number): Scene {
  const dice = new Dice(seed)
  // In some so many start a moment apart that the log is read in several pieces.
  const limits = dice.chance(0.3) ? [5, 20, 20, 60, 300] : [1, 2, 3, 4, 7, 7, 20, 60]
  const isDense = limits.includes(300)
  const by = isDense ? 'queue' : dice.pick(['queue', 'group'] as const)
  const subjects = by === 'queue' ? [''] : groups
  const first: Throttle = { scope: 'api', by, rules: someRules(dice, limits) }
  const memory = new MemoryThrottle(first)
  const clock: SceneClock = { now: 1_700_000_000_000 + dice.whole(0, 999), run: 1 }
  const plan: Planned[] = []
  while (plan.length < steps) {
    const step = nextStep(dice, memory, subjects, clock, limits)
    plan.push(planned(memory, subjects, { step, now: clock.now, run: runOf(clock.run) }))
  }
  return { throttle: first, subjects, plan }
}

/** What it makes of these moments. */
export function sceneOf(throttle: Throttle, subjects: readonly string[], moments: readonly Moment[]): Scene {
  const memory = new MemoryThrottle(throttle)
  return { throttle, subjects, plan: moments.map((moment) => planned(memory, subjects, moment)) }
}

/** As the server tells it. */
export const runOf = (count: number) => count.toString(16).padStart(40, '0')

function planned(memory: MemoryThrottle, subjects: readonly string[], { step, now, run }: Moment): Planned {
  const answers = done(memory, step, now, run)
  const at = Math.max(now, memory.recovery?.lastAt ?? now)
  return {
    ...{ step, now, run, answers },
    looks: subjects.map((subject) => lookAt(memory, subject, now, at)),
    quietForMs: memory.quietForMs(now),
    recoveries: memory.recovery?.count ?? 0,
    subjects: memory.subjects(now),
  }
}

function lookAt(memory: MemoryThrottle, subject: string, now: number, at: number): Look {
  const { log, grids } = memory.counter(subject, at)
  return {
    ...{ subject, hits: memory.hits(subject, now), waitMs: memory.waitMs(subject, now), log },
    grids: grids.map(({ slotUs, credit }) => [slotUs, credit]),
  }
}

function done(memory: MemoryThrottle, step: Step, now: number, run: string): number[] {
  switch (step.verb) {
    case 'claim':
      return step.of.flatMap(({ subject, want, hasMore, lateMs }) => {
        const before = memory.permits(subject, now, run)
        const count = Math.min(want, before.permits)
        if (count > 0) memory.started(subject, count, hasMore, now, lateMs)
        const after = memory.permits(subject, now, run)
        return [before.permits, before.forMs, after.permits, after.forMs]
      })
    case 'rest':
      memory.rests(step.subject, now)
      return []
    case 'set':
      memory.replaceRules(step.rules)
      return []
    case 'rate':
      memory.setRate(step.subject, step.rules)
      return []
    case 'pass':
      return []
  }
}

function nextStep(
  dice: Dice,
  memory: MemoryThrottle,
  subjects: readonly string[],
  clock: SceneClock,
  limits: readonly number[],
): Step {
  const isDense = limits.includes(300)
  if (isDense && dice.chance(0.9)) clock.now += dice.whole(0, 3)
  else
    clock.now += dice.weighted<() => number>([
      [4, () => 0],
      [4, () => dice.whole(1, 40)],
      [3, () => dice.pick(memory.told.rules).windowMs + dice.whole(-1, 2)],
      [4, () => Math.floor(spacingOf(dice.pick(memory.told.rules))) + dice.whole(-1, 1)],
      [1, () => dice.whole(1, 3_000)],
      [0.3, () => 3_600_000],
    ])()
  if (dice.chance(isDense ? 0.01 : 0.04)) clock.run += 1
  if (dice.chance(isDense ? 0.02 : 0.06))
    clock.now -= dice.pick([1, 500, 1_000, 1_001, 60_000, 3_600_000, dice.whole(1, 5_000)])
  return dice.weighted<() => Step>([
    [
      14,
      () => ({
        verb: 'claim',
        of: dice.several(1, 3, () => ({
          subject: dice.pick(subjects),
          want: dice.pick(isDense ? [1, 1, 2, 3] : [0, 1, 1, 2, 3, 50]),
          hasMore: dice.chance(isDense ? 0.97 : 0.85),
          lateMs: dice.chance(0.8) ? 0 : dice.pick([1, 60, 1_000, 10_000]),
        })),
      }),
    ],
    [1, () => ({ verb: 'rest', subject: dice.pick(subjects), isOpen: dice.chance(0.5) })],
    [0.7, () => ({ verb: 'set', rules: someRules(dice, limits) })],
    [
      memory.told.by === 'group' ? 0.7 : 0,
      () => ({
        verb: 'rate',
        subject: dice.pick(subjects),
        rules: dice.chance(0.7) ? someRules(dice, limits) : undefined,
      }),
    ],
    [1, () => ({ verb: 'pass' })],
  ])()
}

const spacingOf = ({ limit, windowMs }: ThrottleRule) => windowMs / limit

function someRules(dice: Dice, limits: readonly number[]): ThrottleRule[] {
  const lengths = limits.includes(300)
    ? [50, 100, 200, 1_000, 900_000]
    : [7, 100, 1_000, 1_000, 5_000, 900_000, 3_600_000]
  const windows = new Set(dice.several(1, 3, () => dice.pick(lengths)))
  return [...windows].map((windowMs) => {
    const limit = dice.pick(limits)
    const moderate = dice.chance(limits.includes(300) ? 0.25 : 0.55)
    const isElastic = moderate && dice.chance(0.6)
    return { limit, windowMs, moderate, ...(isElastic ? { elasticBuffer: dice.whole(0, limit - 1) } : {}) }
  })
}

/** The four keys of a scope. */
export const keysOf = (scope: string) => ['rules', 'starts', 'counters', 'idle'].map((name) => `{t}:${scope}:${name}`)

/** In place of the prelude: the clock and the run of the server are handed in. */
export const throttleHeader = String.raw`
local RULES, STARTS, COUNTERS, IDLE = unpack(KEYS)
local now = tonumber(ARGV[1])
local pack, unpackn, sub, byte, char, find = struct.pack, struct.unpack, string.sub, string.byte, string.char, string.find
local function call(command, ...)
  if command == 'INFO' then return '# Server\r\nredis_version:7\r\nrun_id:' .. ARGV[2] .. '\r\ntcp_port:1\r\n' end
  return redis.call(command, ...)
end
local function many(command, key, args)
  for i = 1, #args, 1000 do call(command, key, unpack(args, i, math.min(i + 999, #args))) end
end
`

/** ARGV: instant, run, then of each call its verb and what it is of. Returns the answers. */
const acting = `
local answers = {}
local function say(n) answers[#answers + 1] = string.format('%.17g', n) end
if ARGV[3] == 'set' then throttle_set('rules', ARGV[4]) return answers end
if ARGV[3] == 'rate' then throttle_rate(ARGV[4], ARGV[5]) return answers end
if ARGV[3] == 'pass' then return answers end
if ARGV[3] == 'rest' then
  if ARGV[5] == '1' then throttle_open() else throttle_read() end
  throttle_rests(ARGV[4])
  call = function(command, ...)
    if string.find(command, '^[HZ][^GMR]') or string.find(command, '^ZREM') then error(command .. ' though nothing would change') end
    return redis.call(command, ...)
  end
  throttle_rests(ARGV[4])
  return answers
end
throttle_open()
for i = 4, #ARGV, 4 do
  local permits, for_ms = throttle_permits(ARGV[i])
  say(permits) say(for_ms)
  local count = math.min(permits, tonumber(ARGV[i + 1]))
  if count > 0 then throttle_started(ARGV[i], count, ARGV[i + 2] == '1', tonumber(ARGV[i + 3])) end
  permits, for_ms = throttle_permits(ARGV[i])
  say(permits) say(for_ms)
end
if ARGV[3] == 'trim' then throttle_trim(300) end
return answers
`

/** ARGV: instant, run, subjects. Returns what is quiet, subjects, group or queue; then of each its wait and its hits. */
const looking = `
local answers = {}
local function say(n) answers[#answers + 1] = string.format('%.17g', n) end
throttle_read()
say(throttle_quiet()) say(throttle_subjects()) say(BY_GROUP and 1 or 0)
for i = 3, #ARGV do
  say(throttle_wait(ARGV[i]))
  for _, hits in ipairs(throttle_hits(ARGV[i])) do say(hits) end
end
return answers
`

const scripts = (lua: string) => ({
  act: redisScript('act', throttleHeader + lua + acting),
  look: redisScript('look', throttleHeader + lua + looking, { readOnly: true }),
})

/** What the Lua says to the steps, all sent in one go. */
export interface Heard {
  readonly answers: readonly number[]
  readonly look: readonly number[]
  readonly rules: Readonly<Record<string, string>>
  readonly starts: readonly Buffer[]
  readonly counters: ReadonlyMap<string, Buffer>
}

/** `isTrimmed`: whether claims forget what is idle. */
export async function heardOf(
  client: RedisClient,
  scope: string,
  { throttle: first, subjects, plan }: Scene,
  { lua = throttle, isTrimmed = true } = {},
): Promise<Heard[]> {
  const keys = keysOf(scope)
  const { act, look } = scripts(lua)
  const opened = client.command('HSET', [
    keys[0]!,
    'by',
    first.by,
    'rules',
    first.rules.map(ruleText).join(' '),
    'version',
    '1',
  ])
  const heard = plan.map(async ({ step, now, run }): Promise<Heard> => {
    const at = [String(now), run]
    const [answers, looks, rules, starts, counters] = (await Promise.all([
      client.run(act, keys, [...at, ...argumentsOf(step, isTrimmed)]),
      client.run(look, keys, [...at, ...subjects]),
      client.command('HGETALL', [keys[0]!]),
      client.command('ZRANGE', [keys[1]!, '0', '-1']),
      client.command('HGETALL', [keys[2]!]),
    ])) as Buffer[][]
    return {
      answers: answers!.map(Number),
      look: looks!.map(Number),
      rules: Object.fromEntries(pairs(rules!).map(([name, value]) => [name, String(value)])),
      starts: starts!,
      counters: new Map(pairs(counters!).map(([subject, value]) => [String(subject), value])),
    }
  })
  await opened
  const all = await Promise.all(heard)
  await client.command('DEL', keys)
  return all
}

function argumentsOf(step: Step, isTrimmed: boolean): string[] {
  switch (step.verb) {
    case 'claim':
      return [
        isTrimmed ? 'trim' : 'keep',
        ...step.of.flatMap(({ subject, want, hasMore, lateMs }) => [
          ...[subject, String(want), hasMore ? '1' : '0', String(lateMs)],
        ]),
      ]
    case 'rest':
      return ['rest', step.subject, step.isOpen ? '1' : '0']
    case 'set':
      return ['set', step.rules.map(ruleText).join(' ')]
    case 'rate':
      return ['rate', step.subject, (step.rules ?? []).map(ruleText).join(' ')]
    case 'pass':
      return ['pass']
  }
}

const pairs = (list: readonly Buffer[]): [Buffer, Buffer][] =>
  list.flatMap((name, i) => (i % 2 === 0 ? [[name, list[i + 1]!]] : []))
