/** What remains of the group of a job whose leader has died unseen. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it, onTestFinished, vi } from 'vitest'
import { type EventMap, Events } from '#src/core/events.js'
import { endRemains } from '#src/workers/isolated/job-group.js'
import { killGroup, livingIn } from '../../process-group.js'

const isLater = { timeout: 10_000 }

/** The leader of a group, who has died and left a member. `env`: what the member has in its environment. */
async function deadLeader(env: string): Promise<number> {
  const member = `${env} sh -c 'sleep 1000; :'`
  const leader = spawn('sh', ['-c', `${member} & wait`], { detached: true, stdio: 'ignore' })
  const { pid = 0 } = leader
  onTestFinished(() => killGroup(pid))
  await expect.poll(() => livingIn(pid).length, isLater).toBeGreaterThan(2)
  process.kill(pid, 'SIGKILL')
  await once(leader, 'exit')
  return pid
}

it('is ended by the next worker of the machine, which says so', async () => {
  const events = new Events()
  const ended = vi.fn<(event: EventMap['remains.ended']) => void>()
  events.on('remains.ended', ended)
  let child = 0
  // Workers of other files look for what remains, too. If one of them was first, it is theirs to say.
  for (let i = 0; i < 10 && !ended.mock.calls.some(([event]) => event.child === child); i += 1) {
    child = await deadLeader('MILLRACE_JOB_GROUP=$$/1')
    endRemains('w', events)
    await expect.poll(() => livingIn(child), isLater).toEqual([])
  }
  expect(ended).toHaveBeenCalledWith({ worker: 'w', child, processes: 2 })
})

it('is left alone if it is not of a job', async () => {
  const child = await deadLeader('')
  endRemains('w', new Events())
  expect(livingIn(child).length).toBeGreaterThan(0)
})
