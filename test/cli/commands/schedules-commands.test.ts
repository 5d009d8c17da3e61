import { describe, expect, it } from 'vitest'
import { printed, run, runJson } from '../command-in-process.js'
import { project } from '../project.js'

const config = `
import { defineTask, millrace } from 'millrace'
const report = defineTask({ name: 'report', queue: 'reports' })
export default millrace({
  store: 'sqlite:jobs.db',
  tasks: [report],
  schedules: {
    nightly: { cron: '0 3 * * *', timeZone: 'Europe/Zurich', task: report, input: { kind: 'daily' } },
    sync: { every: '15m', task: report, until: '2020-01-01T00:00Z' },
  },
})
`
const reconciled = async () => {
  const cwd = project({ 'millrace.config.mjs': config })
  await run('schedules reconcile', { cwd })
  return cwd
}

describe('millrace schedules', () => {
  it('reconcile applies the configuration to the store once', async () => {
    const cwd = project({ 'millrace.config.mjs': config })
    expect((await printed('schedules list', { cwd }))[0]).toMatch(/^no schedule is stored/)
    expect(await runJson('schedules reconcile', { cwd })).toEqual({
      changes: [
        { schedule: 'nightly', change: 'added' },
        { schedule: 'sync', change: 'added' },
      ],
    })
    expect((await run('schedules reconcile', { cwd })).stdout).toBe('Nothing differs.\n')
  })

  it('list shows the next tick of each', async () => {
    const cwd = await reconciled()
    expect(await printed('schedules list', { cwd })).toEqual([
      '2 schedules',
      expect.stringMatching(/^schedule {2}ticks +next +ticked {2}skipped {2}missed {2}declared {2}task$/),
      expect.stringMatching(/^nightly {3}0 3 \* \* \* Europe\/Zurich {2}in \d+.* 0 +0 +0 {2}yes +report$/),
      expect.stringMatching(/^sync {6}every 15m +ended +0 +0 +0 {2}yes +report$/),
    ])
    const { schedules } = await runJson<{ schedules: { name: string }[] }>('schedules list', { cwd })
    expect(schedules.map(({ name }) => name)).toEqual(['nightly', 'sync'])
  })

  it('show prints everything about a schedule, and next prints its ticks', async () => {
    const cwd = await reconciled()
    expect((await run('schedules show nightly', { cwd })).stdout).toMatch(
      /^name +nightly\ntask +report\nqueue +reports\ninput +\{\n +"kind": "daily"\n +\}\ncron +0 3 \* \* \*\n/,
    )
    const { ticks } = await runJson<{ ticks: string[] }>('schedules next nightly --count 3', { cwd })
    expect(ticks).toEqual(Array(3).fill(expect.stringMatching(/T0[12]:00:00\.000Z$/)))
    expect(await printed('schedules next nightly', { cwd })).toHaveLength(5)
    expect((await run('schedules next sync', { cwd })).stdout).toBe('sync: it ticks no more.\n')
  })

  it('run enqueues at once; pause stops the schedule and resume continues it', async () => {
    const cwd = await reconciled()
    const ran = await runJson<{ id: string }>('schedules run nightly', { cwd })
    expect(ran).toEqual({ schedule: 'nightly', queue: 'reports', id: ran.id, outcome: 'added' })
    expect(await runJson(['jobs', 'show', ran.id], { cwd })).toMatchObject({ task: 'report', input: { kind: 'daily' } })
    const paused = { schedule: 'nightly', paused: true, waiting: 1 }
    expect(await runJson('schedules pause nightly', { cwd })).toEqual(paused)
    expect((await run('schedules list', { cwd })).stdout).toMatch(/nightly .* paused +1 /)
    expect((await run('schedules resume nightly', { cwd })).stdout).toMatch(/^nightly: resumed, next \d{4}-/)
  })

  it('clear deletes its waiting jobs, which pause has mentioned, and remove deletes the schedule with them', async () => {
    const cwd = await reconciled()
    const ran = await runJson<{ id: string }>('schedules run nightly', { cwd })
    const { stdout } = await run('schedules pause nightly', { cwd })
    expect(stdout).toMatch(/1 job of it that no worker has begun will still run: `millrace schedules clear nightly`/)
    const shown = await run(['jobs', 'show', ran.id], { cwd })
    expect(shown.stdout).toMatch(/^schedule +nightly, tick of \d{4}-/m)
    expect((await run('schedules clear nightly', { cwd })).stdout).toBe('nightly: 1 job deleted.\n')
    expect((await run(['jobs', 'show', ran.id], { cwd })).code).toBe(1)
    await run('schedules run nightly', { cwd })
    expect(await runJson('schedules remove nightly', { cwd })).toEqual({ schedule: 'nightly', removed: true })
    expect(await runJson('jobs list reports', { cwd })).toMatchObject({ queues: [{ jobs: [] }] })
    expect((await run('schedules remove nightly', { cwd })).code).toBe(1)
  })

  it('fails for an unknown name with the list of known ones', async () => {
    const cwd = await reconciled()
    const { code, stderr } = await run('schedules run weekly', { cwd })
    expect(code).not.toBe(0)
    expect(stderr).toMatch(/there is no schedule 'weekly'; there are 'nightly', 'sync'\./)
    expect((await run('schedules show weekly', { cwd })).code).toBe(1)
    expect((await run('schedules next nightly --count 0', { cwd })).code).toBe(2)
  })
})
