/** The metrics of `millrace work`: of its processes, and of the store that one of them reads. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { processMessageIn } from '#src/cli/supervise/supervisor-messages.js'
import { WorkMetrics } from '#src/cli/supervise/work-metrics.js'
import { poll } from '#src/store-testing/servers/poll.js'
import { openMetricsFamilies, valuesIn } from '../../monitoring/exposition-text.js'
import { ask } from '../../web/ask.js'
import { runJson } from '../command-in-process.js'
import { CommandProcess, runProcess } from '../command-process.js'
import { project } from '../project.js'

const open = 'application/openmetrics-text; version=1.0.0'

async function working(args: readonly string[] = []) {
  const cwd = project()
  const command = new CommandProcess(['work', '--json', '--health-port', '0', '--grace', '1s', ...args], { cwd })
  const [{ url } = {}] = await command.events('health.started')
  const metricsUrl = new URL('/metrics', url as string).href
  const [{ pids } = {}] = await command.events('processes.started')
  const scrape = async () => valuesIn((await ask(metricsUrl)).text)
  /** Scrapes until it holds: a reading serves for 5 s, and a process says each second what it has counted. */
  const scraped = (holds: (values: ReadonlyMap<string, number>) => boolean) =>
    poll(
      async () => {
        const values = await scrape()
        return holds(values) ? values : undefined
      },
      { what: 'these metrics', withinMs: 20_000 },
    )
  return { cwd, command, metricsUrl, pids: pids as number[], scraped }
}

describe('millrace work --metrics', { timeout: 60_000 }, () => {
  it('reports its processes, has one process read the queues, and keeps the counts of a process that dies', async () => {
    const { cwd, command, metricsUrl, pids, scraped } = await working(['--metrics', '--processes', '2'])
    for (const [task, input] of [
      ['echo', '1'],
      ['echo', '2'],
      ['fail', '"no"'],
    ] as const)
      await runJson(['enqueue', task, input], { cwd })
    const failures = 'millrace_failures_total{queue="default",reason="error"}'
    const completed = 'millrace_task_events_total{queue="default",task="echo",event="completed"}'
    const values = await scraped(
      (one) =>
        one.get('millrace_jobs{queue="default",state="dead"}') === 1 &&
        one.get(failures) === 1 &&
        one.get(completed) === 2,
    )

    expect([...values.keys()].filter((key) => key.startsWith('millrace_process_resident'))).toHaveLength(3)
    for (const pid of pids) expect(values.get(`millrace_process_heap_bytes{pid="${pid}"}`)).toBeGreaterThan(1_000_000)
    expect(Object.fromEntries(values)).toMatchObject({
      millrace_up: 1,
      'millrace_work_processes{state="running"}': 2,
      millrace_work_deaths_total: 0,
      'millrace_workers{state="running"}': 2,
      'millrace_jobs_processed_total{queue="default"}': 2,
      'millrace_queue_workers{queue="default"}': 2,
    })
    for (const pid of pids) process.kill(pid, 'SIGKILL')
    const after = await scraped((one) => one.get('millrace_work_deaths_total') === 2 && one.get('millrace_up') === 1)
    expect(after.get(failures)).toBe(1)
    expect(after.get(completed)).toBe(2)
    const { headers, text } = await ask(metricsUrl, { headers: { accept: open } })
    expect(headers['content-type']).toBe(`${open}; charset=utf-8`)
    expect(openMetricsFamilies(text).length).toBeGreaterThan(20)
    command.kill('SIGTERM')
    expect(await command.end()).toMatchObject({ code: 0, stderr: '' })
  })

  it('answers at once with up 0 if no process runs, and only under a loopback name', async () => {
    const { cwd, command, metricsUrl, scraped } = await working(['--metrics', '--grace', '10s'])
    const gate = join(cwd, 'gate')
    await runJson(['enqueue', 'hold', JSON.stringify(gate)], { cwd })
    await command.events('test.running')
    const refused = await ask(metricsUrl, { headers: { host: 'evil.example.org' } })
    const posted = await ask(metricsUrl, { method: 'POST' })
    expect([refused.status, posted.status]).toEqual([421, 405])
    command.kill('SIGTERM')
    const values = await scraped((one) => one.get('millrace_up') === 0)
    expect(values.get('millrace_work_processes{state="stopping"}')).toBe(1)
    writeFileSync(gate, '')
    expect(await command.end()).toMatchObject({ code: 0, stderr: '' })
  })

  it('names no queue without the flag, and the flag needs a port', async () => {
    const { metricsUrl } = await working()
    expect(await ask(metricsUrl)).toMatchObject({ status: 404 })
    expect(await runProcess(['work', '--metrics'], { cwd: project() })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--metrics needs --health-port'),
    })
  })
})

describe('the metrics of a supervisor', () => {
  const pulse = {
    ...{ id: 'w', state: 'running', concurrency: 10, retired: 0, unsettled: 0, damaged: [], silentMs: 1, running: 0 },
    oldest: [],
  } as const
  const measures = {
    rssBytes: 1,
    heapBytes: 1,
    loopDelayMs: 1,
    upMs: 1,
    failures: [['mail', 'error', 3]],
    events: {},
    tasks: [],
  }

  it('ignore forged messages on the channel', () => {
    expect(processMessageIn({ millrace: 'alive', pulse: { ...pulse, measures } })).toMatchObject({
      pulse: { measures },
    })
    expect(processMessageIn({ millrace: 'alive', pulse: { ...pulse, measures: { failures: 7 } } })).toEqual({
      millrace: 'alive',
      pulse,
    })
    expect(processMessageIn({ millrace: 'measured', reading: { queues: 'all' } })).toEqual({
      millrace: 'measured',
      reading: undefined,
    })
  })

  it('ask a process for the store once in 5 s, however often they are scraped', async () => {
    let asked = 0
    const measure = async () => {
      asked += 1
      throw new Error('away')
    }
    const metrics = new WorkMetrics(() => ({ reports: () => [], measure }))
    const texts = [await metrics.text('prometheus'), await metrics.text('prometheus')]

    expect(asked).toBe(1)
    expect(texts.map((text) => valuesIn(text).get('millrace_up'))).toEqual([0, 0])
    expect(valuesIn(texts[1]!).get('millrace_scrape_errors_total{part="store"}')).toBe(1)
  })
})
