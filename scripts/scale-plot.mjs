/**
 * The plot of docs/performance.md, drawn from bench/scale.json, which is what `npm run bench -- scale --json` printed.
 * `node scripts/scale-plot.mjs` writes it anew; another folder than docs/images may be given.
 */

import { readFileSync } from 'node:fs'
import { blue, grey, orange, round, text, writeFigure } from './figure.mjs'

const { costs } = JSON.parse(readFileSync(new URL('../bench/scale.json', import.meta.url), 'utf8'))

const chart = { width: 350, height: 130, gap: 20, head: 44, foot: 46 }
const bar = { width: 26, between: 4 }
const titles = {
  processes: 'Worker processes',
  waiting: 'Waiting jobs',
  queues: 'Queues of one worker',
  shards: 'Shards of an ordered queue',
}

const short = (n) => (n >= 1e6 ? `${n / 1e6} M` : n >= 1e3 ? `${Math.round(n / 1e3)} k` : String(n))

function bars(x, base, us, mostUs, color) {
  const height = (us / mostUs) * chart.height
  const at = `x="${round(x)}" y="${round(base - height)}" width="${bar.width}" height="${round(height)}"`
  return [
    `<rect ${at} fill="${color}"/>`,
    text(x + bar.width / 2, base - height - 5, us.toFixed(1), { color, anchor: 'middle' }),
  ]
}

function drawn(name, left, top) {
  const points = costs[name]
  const base = top + chart.head + chart.height
  const mostUs = Math.max(...points.flatMap(({ redisUs, nodeUs }) => [redisUs, nodeUs]))
  const each = chart.width / points.length
  return [
    text(left, top + 14, titles[name], { bold: true }),
    ...points.flatMap(({ at, redisUs, nodeUs, perSecond }, i) => {
      const middle = left + (i + 0.5) * each
      return [
        ...bars(middle - bar.width - bar.between / 2, base, redisUs, mostUs, blue),
        ...bars(middle + bar.between / 2, base, nodeUs, mostUs, orange),
        text(middle, base + 17, short(at), { anchor: 'middle', bold: true }),
        text(middle, base + 33, `${short(perSecond)}/s`, { anchor: 'middle' }),
      ]
    }),
    `<line x1="${left}" y1="${base}" x2="${left + chart.width}" y2="${base}" stroke="${grey}"/>`,
  ]
}

const names = Object.keys(titles)
const [width, cell] = [2 * chart.width + chart.gap, chart.head + chart.height + chart.foot]
const height = 24 + 2 * cell
const parts = names.flatMap((name, i) =>
  drawn(name, (i % 2) * (chart.width + chart.gap), 24 + Math.floor(i / 2) * cell),
)
const legend = [
  text(0, 14, 'µs of a job in Redis', { color: blue }),
  text(150, 14, 'µs of a job in Node', { color: orange }),
]
writeFigure('scale.svg', 'What a job costs as the work grows', { width, height }, [...legend, ...parts])
