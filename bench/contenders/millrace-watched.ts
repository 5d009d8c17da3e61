/**
 * Millrace with everything that watches it: its history, a scrape of its metrics each second, and the stream of the
 * overview.
 */

import { text } from 'node:stream/consumers'
import { webHandler } from 'millrace/web'
import { opening } from './millrace-redis.js'

const everyMs = 1_000
const site = 'http://localhost'
/** Without a token the window answers to its own machine alone. */
const here = { address: '127.0.0.1' }

export const open = opening({}, (mill) => {
  const window = webHandler(mill)
  const over = new AbortController()
  const scrape = async () => {
    const answer = await window.fetch(new Request(`${site}/metrics`), here)
    if (!answer.ok) throw new Error(`/metrics answered ${answer.status}: ${await answer.text()}`)
    await answer.arrayBuffer()
  }
  const stream = window
    .fetch(new Request(`${site}/api/v1/events`, { signal: over.signal }), here)
    .then(({ body }) => body && text(body as never))
    .catch(() => {})
  const timer = setInterval(() => void scrape(), everyMs)
  return async () => {
    clearInterval(timer)
    over.abort()
    await window.close()
    await stream
  }
})
