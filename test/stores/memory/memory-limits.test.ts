/** The limits of the memory store, over random sequences of everything that can happen to a queue: whatever comes, they hold. */

import { memoryHarness } from 'millrace/store-testing'
import { describe, expect, it } from 'vitest'
import { groupRules, type ThrottleRule } from '#src/core/queue/throttle.js'
import type { Command } from '#src/store-testing/sequences/command.js'
import { CommandRun } from '#src/store-testing/sequences/command-run.js'
import { limitedQueues, limitedSequence } from '#src/store-testing/sequences/limited-sequence.js'
import type { CanonicalState } from '#src/store-testing/state/canonical-state.js'
import type { Claimed } from '#src/stores/contract/claim.js'
import { mostIn } from '../../rules/trial.js'

const seeds = Array.from({ length: 20 }, (_, i) => 1 + i)
const steps = 250

interface Granted {
  readonly at: number
  readonly queue: string
  readonly group: string
}

/** All grants of a sequence; `look` sees each command with the state before and after it. */
async function grants(
  seed: number,
  look: (step: { command: Command; answer: Partial<Claimed>; before: CanonicalState; after: CanonicalState }) => void,
): Promise<Granted[]> {
  const harness = await memoryHarness()
  const run = new CommandRun(harness)
  const granted: Granted[] = []
  let before = await harness.dump()
  // With other rules and bounds there are other windows and lanes.
  const fixed = limitedSequence(seed, steps).filter(
    ({ verb }, i) => i === 0 || !['set throttle', 'set rate', 'open'].includes(verb),
  )
  for (const command of fixed) {
    const answer = (await run.answer(command)) as Partial<Claimed>
    const after = await harness.dump()
    look({ command, answer, before, after })
    const claims = command.verb === 'claim' ? (answer.claims ?? []) : []
    granted.push(...claims.map(({ queue, group = '' }) => ({ at: after.now, queue, group })))
    before = after
  }
  await harness.close()
  return granted
}

describe.each(seeds)('limited sequence %i', (seed) => {
  it('keeps its throttles, its limits and its holds, and forgets no lane', async () => {
    let total = 0
    const granted = await grants(seed, ({ command, answer, before, after }) => {
      for (const { queue, group } of (command.verb === 'claim' && answer.claims) || []) {
        total += 1
        const asked = before.queues.filter(({ name }) => name === queue)
        expect(asked.every(({ heldInMs }) => heldInMs === null)).toBe(true)
        expect(asked.flatMap(({ lanes }) => lanes.held.map((held) => held.group))).not.toContain(group ?? '')
        expect(asked.flatMap(({ lanes }) => lanes.paused)).not.toContain(group ?? '')
        const shards = after.queues.filter(({ name }) => name === queue)
        const running = shards.flatMap(({ jobs }) => jobs.filter(({ state }) => state === 'running'))
        const { maxRunning } = shards[0]!
        if (typeof maxRunning === 'number') expect(running.length).toBeLessThanOrEqual(maxRunning)
        if (typeof maxRunning === 'object' && maxRunning !== null)
          expect(running.filter((job) => (job.group ?? '') === (group ?? '')).length).toBeLessThanOrEqual(
            maxRunning.perGroup,
          )
      }
      for (const { lanes, jobs, maxRunning } of after.queues) {
        const waiting = jobs.filter(({ state, suspect, group }) => state === 'ready' && !suspect && group !== null)
        const open = lanes.turns.map((turn) => turn.replace(/ after \d+$/, ''))
        const lined = [...open, ...lanes.shut.map(({ group }) => group)]
        expect(new Set(lined).size).toBe(lined.length)
        const isFull = (group: string) =>
          typeof maxRunning === 'object' &&
          maxRunning !== null &&
          jobs.filter((job) => job.state === 'running' && job.group === group).length >= maxRunning.perGroup
        const hasRoom = (group: string) => !isFull(group) && !lanes.paused.includes(group)
        const meant = [...new Set(waiting.map(({ group }) => group!))].filter(hasRoom)
        expect(lined.filter((group) => group !== '').sort()).toEqual(meant.sort())
      }
    })
    expect(total).toBeGreaterThan(0)
    keepsWindows(granted)
  })
})

function keepsWindows(granted: readonly Granted[]): void {
  for (const throttle of limitedQueues.flatMap(({ throttle }) => throttle ?? [])) {
    const sharing = limitedQueues.filter((queue) => queue.throttle?.scope === throttle.scope).map(({ name }) => name)
    const started = granted.filter(({ queue }) => sharing.includes(queue))
    if (throttle.by === 'queue') keepsRules(throttle.rules, started)
    for (const subject of new Set(started.map(({ group }) => group)))
      keepsRules(
        groupRules(throttle) ?? [],
        started.filter(({ group }) => group === subject),
      )
  }
}

function keepsRules(rules: readonly ThrottleRule[], starts: readonly Granted[]): void {
  const started = starts.map(({ at }) => ({ at, count: 1 }))
  for (const { limit, windowMs } of rules) expect(mostIn(windowMs, started)).toBeLessThanOrEqual(limit)
}
