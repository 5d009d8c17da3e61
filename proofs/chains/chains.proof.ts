/**
 * Proof of the chains: a parent that dies again and again between its calls of `ctx.enqueue()` has each child exactly
 * once.
 */

import { startRedis } from 'millrace/store-testing'
import type { Report, Summary } from '../report.js'
import { type ChainsSeen, chains } from './chains-drill.js'

export const seed = 0

const chain = { children: 60, kills: 50 }

export async function prove(report: Report): Promise<Summary> {
  const redis = await startRedis()
  try {
    return {
      sqlite: told(report, 'sqlite', await chains(chain)),
      redis: told(report, 'redis', await chains(chain, redis.url)),
    }
  } finally {
    await redis.stop()
  }
}

function told(report: Report, store: string, seen: readonly ChainsSeen[]): readonly ChainsSeen[] {
  for (const { kind, runs, wanted, ran, repeated, completed, seconds } of seen) {
    report.say(
      `— ${store}, ${kind}: ${runs} runs, ${ran} of ${wanted} children, ${completed} completed, in ${seconds} s`,
    )
    report.claim(`${store}, ${kind}: the parent was killed ${chain.kills} times`, runs === chain.kills + 1)
    report.claim(
      `${store}, ${kind}: each child is there exactly once`,
      ran === wanted && completed === wanted && repeated === 0,
    )
  }
  return seen
}
