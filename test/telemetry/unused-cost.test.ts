/** What tracing costs where nobody uses it, and what a job carries where somebody does. */

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineTask, type MillOptions } from 'millrace'
import type { EnqueueCall, NewJob } from 'millrace/store'
import { tracing } from 'millrace/telemetry'
import { describe, expect, it } from 'vitest'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { project } from '../cli/project.js'
import { testMillOn } from '../test-mill.js'
import { collectedSpans, inSpan } from './span-scene.js'

const mail = defineTask({ name: 'mail', run: async () => {} })

class WatchedStore extends MemoryStore {
  readonly stored: NewJob[] = []

  override enqueue(calls: readonly EnqueueCall[]) {
    this.stored.push(...calls.flatMap(({ jobs }) => jobs))
    return super.enqueue(calls)
  }
}

/** The meta of a job as it is stored. */
async function storedMeta(middleware: MillOptions['middleware'] = []): Promise<NewJob['meta']> {
  const store = new WatchedStore()
  const mill = testMillOn(store, { tasks: [mail], middleware })
  await mill.enqueue(mail, undefined)
  return store.stored[0]!.meta
}

describe('a mill without tracing', () => {
  it('stores no trace, whatever span its caller is in', async () => {
    collectedSpans()
    let meta: unknown = 'unknown'
    await inSpan(async () => {
      meta = await storedMeta()
    })

    expect(meta).toBeUndefined()
  })

  it('loads no part of OpenTelemetry while it enqueues and runs; a mill with tracing does', () => {
    const cwd = project({
      'package.json': '{"type":"module"}',
      'watch.mjs': `import { register } from 'node:module'; register('./hooks.mjs', import.meta.url)`,
      'hooks.mjs': `import { appendFileSync } from 'node:fs'
export async function load(url, context, next) {
  appendFileSync(new URL('./' + process.env.LOADED, import.meta.url), url + '\\n')
  return next(url, context)
}`,
      'plain.mjs': `import { defineTask, millrace } from 'millrace'
const mail = defineTask({ name: 'mail', run: async () => 'sent' })
const mill = millrace({ store: 'memory:', tasks: [mail], middleware: globalThis.traced ?? [] })
const job = await mill.enqueue(mail, undefined)
await mill.worker().start()
console.log(await job.result({ timeout: '10s' }))
await mill.close()`,
      'traced.mjs': `import { tracing } from 'millrace/telemetry'
globalThis.traced = [tracing()]
await import('./plain.mjs')`,
    })
    const loadedBy = (program: string) => {
      const env = { ...process.env, LOADED: `${program}.txt` }
      const { stdout } = spawnSync(process.execPath, ['--import', './watch.mjs', program], {
        ...{ cwd, env, encoding: 'utf8', timeout: 25_000 },
      })
      expect(stdout).toBe('sent\n')
      return readFileSync(join(cwd, `${program}.txt`), 'utf8').match(/opentelemetry|\/dist\/telemetry\//g) ?? []
    }

    expect(loadedBy('plain.mjs')).toEqual([])
    expect(loadedBy('traced.mjs')).not.toEqual([])
  })
})

describe('a mill with tracing', () => {
  it('stores no trace without an SDK and a span', async () => {
    expect(await storedMeta([tracing()])).toBeUndefined()
  })

  it('stores a few hundred bytes with a job', async () => {
    collectedSpans()

    expect(String(await storedMeta([tracing()]))).toMatch(
      /^\{"millrace:origin":\{"trace":\{"traceparent":"00-[0-9a-f]{32}-[0-9a-f]{16}-01"\}\}\}$/,
    )
  })
})
