/** The check of a Redis store finds what is wrong with the lanes of a queue. */

import { describe, expect, it } from 'vitest'
import { RedisScene, settings, sharedRedis } from '../redis-scene.js'

const { client } = await sharedRedis()

/** Two jobs of `x` wait and one runs, of which only one may; one of `y` waits, and one without a group. */
async function laned(): Promise<RedisScene> {
  const scene = new RedisScene(client)
  await scene.store.open([{ ...settings, maxRunning: { perGroup: 1 } }])
  await scene.add({ id: 'x-1', group: 'x' }, { id: 'x-2', group: 'x' }, { id: 'x-3', group: 'x' })
  await scene.take()
  await scene.add({ id: 'y-1', group: 'y' }, { id: 'none' })
  return scene
}

async function found(scene: RedisScene): Promise<string[]> {
  const findings = await scene.health.check('mail')
  return findings.filter(({ level }) => level !== 'ok').map(({ level, text }) => `${level}: ${text}`)
}

const member = async (scene: RedisScene, key: 'lanes' | 'grouped', id: string) =>
  (await scene.all(key)).find((one) => one.toString().endsWith(id))!

type Command = Parameters<RedisScene['raw']>

const breaches: readonly [title: string, raw: Command | ((scene: RedisScene) => Promise<Command>), text: RegExp][] = [
  [
    'a job that is in no lane',
    async (s) => ['ZREM', 'lanes', await member(s, 'lanes', 'x-2')],
    /^error: missing from 'lanes': x-2\. They never run/m,
  ],
  [
    'a job that lists leave out',
    async (s) => ['ZREM', 'grouped', await member(s, 'grouped', 'y-1')],
    /^error: missing from 'grouped': y-1\. Lists leave them out/m,
  ],
  [
    'a place in a lane without a job',
    ['ZADD', 'lanes', '0', `y\0${'\x7f\x7f'.padEnd(15, '1')}gone`],
    /^error: stand in 'lanes' without a job: gone\./m,
  ],
  [
    'a job in the lane of another group',
    async (s) => [
      'ZADD',
      'lanes',
      '0',
      Buffer.concat([Buffer.from('z'), (await member(s, 'lanes', 'y-1')).subarray(1)]),
    ],
    /^error: stand in 'lanes', where they do not belong: y-1\./m,
  ],
  ['a lane that has lost its turn', ['ZREM', 'turns', 'y'], /^error: groups whose jobs in 'lanes' have no turn: y\./m],
  ['a turn of a group without jobs', ['ZADD', 'turns', '9', 'z'], /^warning: stand in 'turns' without a job: z\./m],
  [
    'a lane open and shut',
    ['ZADD', 'shut', '9', 'y'],
    /^error: stand in '(?:turns|shut)', where they do not belong: y\./m,
  ],
  [
    'a running job whose group is not counted',
    ['HDEL', 'running-by-group', 'x'],
    /^error: they run, and 'running-by-group' counts none of their group: x-1\. More of the group may run/m,
  ],
  [
    'a group that counts too many',
    ['HSET', 'running-by-group', 'x', '7'],
    /^error: 'running-by-group' and its companions differ in number/m,
  ],
  [
    'an invalid count',
    ['HSET', 'running-by-group', 'z', 'many'],
    /^error: what 'running-by-group' holds of them cannot be read: z\./m,
  ],
]

describe('the check of lanes', () => {
  it('finds no fault if every group has its turn or is full', async () => {
    expect(await found(await laned())).toEqual([])
  })

  it.each(breaches)('finds %s', async (_, raw, text) => {
    const scene = await laned()
    await scene.raw(...(typeof raw === 'function' ? await raw(scene) : raw))

    expect((await found(scene)).join('\n')).toMatch(text)
  })
})
