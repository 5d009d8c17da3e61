import { defaultStartAt, ManualClock, type StoreHarness } from 'millrace/store-testing'
import { expect, it } from 'vitest'
import { sqliteHarness } from '#src/store-testing/harness/sqlite-harness.js'
import { CommandRun } from '#src/store-testing/sequences/command-run.js'
import { limitedQueues, limitedSequence } from '#src/store-testing/sequences/limited-sequence.js'
import { memoryState } from '#src/store-testing/state/memory-state.js'
import { MemoryData, MemoryStore } from '#src/stores/memory/memory-store.js'
import { SqliteWakeTokens, tokenName } from '#src/stores/sqlite/sqlite-wake-token.js'

const names = limitedQueues.map(({ name }) => name)

/** A memory store whose bell can be listened to. */
function memory(data: MemoryData): StoreHarness {
  const clock = new ManualClock(defaultStartAt)
  return {
    name: 'memory',
    open: async () => new MemoryStore(clock, data),
    advance: async (ms) => clock.advance(ms),
    step: async (ms) => clock.step(ms),
    async restart() {
      data.run += ' again'
    },
    dump: async () => memoryState(data, clock.now()),
    audit: async () => [],
    close: async () => {},
  }
}

for (const seed of [1, 2, 3, 4]) {
  it(`limited queues ring exactly when the memory store rings, in seed ${seed}`, async () => {
    const data = new MemoryData()
    const sqlite = await sqliteHarness()
    const tokens = new SqliteWakeTokens(sqlite.file)
    const [model, subject] = [new CommandRun(memory(data)), new CommandRun(sqlite)]
    let rings = 0
    for (const [step, command] of limitedSequence(seed, 100).entries()) {
      await model.answer(command)
      await subject.answer(command)
      const expected = data.bell.unheard(names)
      rings += expected.length
      const found = names.filter((name) => tokens.take(tokenName(name)))
      expect({ step, verb: command.verb, rung: found }).toEqual({ step, verb: command.verb, rung: expected })
    }
    await sqlite.close()

    expect(rings).toBeGreaterThan(10)
  })
}
