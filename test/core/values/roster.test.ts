import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Roster } from '#src/core/values/roster.js'

it('a roster has the same entries as a Map, in the same order, after any changes', () => {
  const commands = fc.array(fc.tuple(fc.constantFrom('set', 'delete', 'clear'), fc.nat(40), fc.nat()), {
    // So many that a new Map is taken, unless all are cleared before.
    minLength: 4_000,
    maxLength: 5_000,
  })
  fc.assert(
    fc.property(commands, fc.boolean(), (given, isCleared) => {
      const [roster, map] = [new Roster<number, number>(), new Map<number, number>()]
      for (const [name, key, value] of given) {
        if (name === 'set') {
          roster.set(key, value)
          map.set(key, value)
        } else if (name === 'delete') expect(roster.delete(key)).toBe(map.delete(key))
        else if (isCleared && value % 50 === 0) {
          roster.clear()
          map.clear()
        }
        if (roster.size !== map.size || roster.get(key) !== map.get(key)) throw new Error(`${name} ${key}`)
        if (value % 3 === 0 && roster.firstKey() !== map.keys().next().value)
          throw new Error(`first after ${name} ${key}`)
      }
      expect([...roster]).toEqual([...map])
      expect([...roster.keys()]).toEqual([...map.keys()])
      expect([...roster.values()]).toEqual([...map.values()])
    }),
    { numRuns: 20, seed: 1 },
  )
})

it('a roster leaves few removed entries in the old generation of the heap; a Map leaves most of them', async () => {
  expect(await keptBy('new Map()')).toBeGreaterThan(8)
  expect(await keptBy('new Roster()')).toBeLessThan(1)
})

/** MiB by which the old generation of a process grows while 20,000 members of 1 KiB come and go, of whom 100 are in at a time. */
async function keptBy(members: string): Promise<number> {
  const program = `
    import { getHeapSpaceStatistics } from 'node:v8'
    import { Roster } from '${import.meta.resolve('#src/core/values/roster.js')}'
    const members = ${members}
    const present = []
    const turns = (count) => {
      for (let i = 1; i <= count; i += 1) {
        const member = { content: new Array(128).fill(1.5) }
        members.set(member, member)
        present.push(member)
        if (present.length > 100) members.delete(present.shift())
        if (i % 1_000 === 0) gc({ type: 'minor' })
      }
    }
    const old = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space').space_used_size
    turns(2_000)
    gc({ type: 'major' })
    const before = old()
    turns(20_000)
    console.log((old() - before) / 1_048_576)`
  // So that no major collection comes in between.
  const flags = ['--expose-gc', '--initial-old-space-size=512', '--input-type=module', '--eval', program]
  const { stdout } = await promisify(execFile)(process.execPath, flags)
  return Number(stdout)
}
