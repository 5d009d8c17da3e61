/** A Prometheus of its own, which scrapes a window and is asked what it has understood. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { freePort } from '#src/store-testing/servers/free-port.js'
import { GuardedProcess } from '#src/store-testing/servers/guarded-process.js'
import type { MachineProgram } from '#src/store-testing/servers/machine-program.js'
import { poll } from '#src/store-testing/servers/poll.js'
import { mail, token, WebScene } from '../web/web-scene.js'
import { prometheusProgram } from './promtool.js'

let program: MachineProgram
beforeAll(async () => {
  program = await prometheusProgram('prometheus')
}, 180_000)

interface Found {
  readonly data: {
    readonly result: readonly { readonly metric: { readonly le?: string }; readonly value: readonly [number, string] }[]
  }
}

/** A server that scrapes the target each second; resolves with what asks it. */
async function prometheus(target: URL) {
  const directory = mkdtempSync(join(tmpdir(), 'millrace-prometheus-'))
  const port = await freePort()
  const scrape = {
    job_name: 'millrace',
    scrape_interval: '1s',
    scrape_timeout: '1s',
    authorization: { credentials: token },
    static_configs: [{ targets: [target.host] }],
  }
  // YAML is JSON and more.
  writeFileSync(join(directory, 'prometheus.yml'), JSON.stringify({ scrape_configs: [scrape] }))
  const args = [`--web.listen-address=127.0.0.1:${port}`, '--config.file=prometheus.yml', '--storage.tsdb.path=data']
  const server = new GuardedProcess({ ...program, args, directory })
  onTestFinished(async () => {
    server.kill('SIGKILL')
    await server.ended
    rmSync(directory, { recursive: true, force: true })
  })
  return async (query: string) => {
    const url = new URL(`http://127.0.0.1:${port}/api/v1/query`)
    url.searchParams.set('query', query)
    const answer = await fetch(url).catch(() => undefined)
    if (answer?.status !== 200) return undefined
    const { data } = (await answer.json()) as Found
    return data.result.map(({ metric, value }) => ({ ...metric, value: Number(value[1]) }))
  }
}

it('Prometheus reads every exposed sample with its labels', { timeout: 60_000 }, async () => {
  const scene = await WebScene.on('sqlite')
  await scene.mill.enqueueMany(mail, [{ to: 'ada' }, { to: 'bob' }])
  const ask = await prometheus(new URL(scene.url))
  const ready = await poll(
    async () => {
      const found = await ask('millrace_jobs{queue="mail",state="ready"}')
      return found !== undefined && found.length > 0 ? found : undefined
    },
    { what: 'a scrape', withinMs: 30_000 },
  )
  const refused = await ask('up{job="millrace"} == 0')
  const buckets = await ask('millrace_job_duration_seconds_bucket{queue="mail"}')

  expect(ready).toMatchObject([{ job: 'millrace', queue: 'mail', state: 'ready', value: 2 }])
  expect(refused).toEqual([])
  expect(buckets?.map(({ le }) => le).sort()).toEqual(['+Inf', '0.01', '0.1', '1.0', '10.0', '60.0', '600.0'])
})
