/**
 * The work of the demo: the SHA-256 checksum of one file; following what happens to each id of a history; fetching a page;
 * packing a tree.
 */

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { defineOrderedTask, defineTask, type OrderedContext } from 'millrace'
import { z } from 'zod'
import { Archive } from './archive.js'
import { type GatePlace, passed } from './gate.js'
import type { Change } from './history.js'
import { Ledger } from './ledger.js'
import { linksIn } from './site.js'
import { after } from './state.js'

export interface Checksum {
  readonly sha256: string
  /** Names the claim that took this job, together with its queue. */
  readonly fence: number
  /** When the handler began and ended: ms on the machine's monotonic clock, which all its processes share. */
  readonly startedAt: number
  readonly endedAt: number
  readonly attempt: number
}

export const checksum = defineTask({
  name: 'checksum',
  input: z.object({ file: z.string() }),
  timeLimit: '10m',
  retry: { max: 3, backoff: () => 200 },
  async run({ file }, { job }): Promise<Checksum> {
    const startedAt = machineMs()
    if (job.meta['failsFirst'] === true && job.attempt === 1) throw new Error('fails the first time, on purpose')
    const sha256 = await sha256Of(file)
    return { sha256, fence: job.fence, startedAt, endedAt: machineMs(), attempt: job.attempt }
  },
})

function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6
}

export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

/** Long enough for two runs of one id to meet, were they ever let. */
const followMs = 15

let ledger: Ledger | undefined

const change = z.object({ id: z.string(), place: z.number(), by: z.string(), to: z.string() })

const following = {
  name: 'follow',
  queue: 'history',
  input: change,
  id: ({ id }: Change) => id,
  batchSize: 10,
  retry: { max: 10, backoff: () => 500 },
  async run(changesById: ReadonlyMap<string, readonly Change[]>, ctx: OrderedContext): Promise<void> {
    ledger ??= new Ledger(process.env['MILLRACE_DEMO_LEDGER']!)
    const states = ledger.begin(changesById.keys(), ctx.job.fence)
    await delay(followMs)
    const entries = [...changesById].map(([id, changes]) => {
      const { attempt, payloads } = ctx.jobs.get(id)!
      const before = states.get(id)!
      const fresh = changes.filter(({ place }) => place > before.place)
      const fails = attempt === 1 && payloads.some(({ meta }) => meta['failsFirst'] === true)
      if (fails) ctx.fail(id, new Error('fails the first time, on purpose'))
      const again = changes.length - fresh.length
      return { id, attempt, given: changes.length, again, state: fails ? undefined : fresh.reduce(after, before) }
    })
    const refused = ledger.end(entries, ctx.job.fence)
    for (const id of refused) ctx.fail(id, new Error('a later run has begun with it'))
  },
}

/** Applies the changes of each id to its state: once each, also where it is given one again. */
export const follow = defineOrderedTask({ ...following, score: ({ place }) => place })

/** The same, for a store that keeps the order in which payloads are sent, and knows no other. */
export const followAsSent = defineOrderedTask(following)

/** Fetches a page and enqueues those that it links to: by their addresses, so that each is fetched once. */
export const crawl = defineTask({
  name: 'crawl',
  queue: 'crawl',
  input: z.object({ url: z.string() }),
  group: ({ url }) => new URL(url).host,
  async run({ url }): Promise<void> {
    const response = await fetch(url)
    const page = await response.text()
    if (!response.ok) throw new Error(`${url} answered ${response.status}`)
    // The configuration names this task: it is there by now.
    const { default: mill } = await import('./millrace.config.js')
    const links = linksIn(page, new URL(url).pathname).map((path) => ({ url: new URL(path, url).href }))
    await mill.enqueueMany(crawl, links, (link) => ({ id: link.url }))
  },
})

/** How far an archive is: good up to there. */
export interface Packed {
  readonly files: number
  readonly bytes: number
}

/** Packs the listed files of a folder into an archive, in a process that outlives its worker; after its own loss the next goes on. */
export const pack = defineTask({
  name: 'pack',
  queue: 'archive',
  isolate: 'process',
  timeLimit: '1h',
  retry: { max: 1, backoff: () => 200 },
  input: z.object({ folder: z.string(), list: z.string(), archive: z.string() }),
  async run({ folder, list, archive }, ctx): Promise<Packed> {
    const paths = JSON.parse(await readFile(list, 'utf8')) as string[]
    let { files, bytes } = (ctx.lastCheckpoint as Packed | undefined) ?? { files: 0, bytes: 0 }
    ctx.log(`process ${process.pid} begins at file ${files} of ${paths.length}`)
    const out = await Archive.open(archive, bytes)
    try {
      while (files < paths.length) {
        ctx.signal.throwIfAborted()
        files += await out.add(folder, paths.slice(files))
        bytes = out.bytes
        ctx.progress(files / paths.length, `${Math.round(bytes / 1e6)} MB`)
        // Where the demo kills it: with a member behind the checkpoint, which the next process is to cut off.
        const gate = ctx.job.meta['gate'] as GatePlace | undefined
        if (gate !== undefined && files >= gate.at) await passed(gate, ctx.signal)
        await ctx.checkpoint({ files, bytes })
      }
      await out.end()
      return { files, bytes: out.bytes }
    } finally {
      await out.close()
    }
  },
})
