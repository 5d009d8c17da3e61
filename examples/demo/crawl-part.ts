/**
 * The third part of the demo: two sites are crawled, page by page, each at its own even pace whoever of the worker processes
 * asks; and the sites' own logs are what it is judged by.
 */

import { median, problemsOf, reachableFrom } from './crawl-verdict.js'
import { figure, say, seconds } from './display.js'
import { orInterrupted } from './interruption.js'
import type { Place } from './place.js'
import { crawlPace } from './queues.js'
import { type Progress, workShift } from './shift.js'
import { Site } from './site.js'
import { crawl } from './tasks.js'

/** Where each crawl begins. */
const firstPage = '/README.md'

export interface CrawlFigures {
  readonly verified: true
  readonly sites: number
  readonly pages: number
  /** Between two visits of a site: as the throttle spaces them, and in the middle as the sites saw them. */
  readonly spacingMs: number
  readonly medianGapMs: number
}

/** Throws where a page was not fetched exactly once, or a site was asked too often. */
export async function crawlPart(place: Place, root: string): Promise<CrawlFigures> {
  const pages = reachableFrom(root, firstPage)
  const sites = [await Site.open(root), await Site.open(root)]
  const { limit, windowMs } = crawlPace
  try {
    say('')
    say(
      `two web sites of ${figure(pages.length)} pages, this documentation; ${limit} pages in ${seconds(windowMs)} of each, evenly spaced`,
    )
    const startedAt = performance.now()
    const urls = sites.map(({ host }) => `http://${host}${firstPage}`)
    await orInterrupted(
      place.mill.enqueueMany(
        crawl,
        urls.map((url) => ({ url })),
        ({ url }) => ({ id: url }),
      ),
    )
    await workShift([crawl.queue], () => progressOf(place, sites, pages.length))
    const problems = sites.flatMap((site) => problemsOf(site, pages))
    if (problems.length > 0) throw new Error(`not verified:\n${problems.map((problem) => `  ${problem}`).join('\n')}`)
    const medianGapMs = Math.round(median(sites.flatMap(({ visits }) => gapsOf(visits.map(({ at }) => at)))))
    say(`verified by the sites' own logs: each page was fetched once, and none too soon`)
    say(
      `${figure(sites.length * pages.length)} pages, one every ${figure(medianGapMs)} ms of each site; ${seconds(performance.now() - startedAt)} in all`,
    )
    return { verified: true, sites: sites.length, pages: pages.length, spacingMs: windowMs / limit, medianGapMs }
  } finally {
    for (const site of sites) await site.close()
  }
}

function gapsOf(instants: readonly number[]): number[] {
  return instants.slice(1).map((at, i) => at - instants[i]!)
}

async function progressOf(place: Place, sites: readonly Site[], pages: number): Promise<Progress> {
  const [depth] = await place.depths([crawl.queue])
  const { ready, scheduled, running } = depth!
  return {
    bars: sites.map(({ host, visits }) => ({
      name: host.replace('127.0.0.1', ''),
      done: visits.length,
      of: pages,
      ready: 0,
    })),
    more: `${figure(running)} running, ${figure(ready)} held back`,
    isOver: ready + scheduled + running === 0,
  }
}
