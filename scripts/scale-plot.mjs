/**
 * The plot of docs/performance.md, drawn from bench/scale.json, which is what `npm run bench -- scale --json` printed.
 * `node scripts/scale-plot.mjs` writes it anew; another folder than docs/images may be given.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const home = fileURLToPath(new URL('..', import.meta.url))
const { costs } = JSON.parse(readFileSync(join(home, 'bench/scale.json'), 'utf8'))

/** Legible on white and on black. */
const [grey, blue, orange] = ['#7d8590', '#3b82f6', '#d97706']
const chart = { width: 350, height: 130, gap: 20, head: 44, foot: 46 }
const bar = { width: 26, between: 4 }
const titles = {
  processes: 'Worker processes',
  waiting: 'Waiting jobs',
  queues: 'Queues of one worker',
  shards: 'Shards of an ordered queue',
}

const short = (n) => (n >= 1e6 ? `${n / 1e6} M` : n >= 1e3 ? `${Math.round(n / 1e3)} k` : String(n))
const round = (n) => String(Math.round(n * 10) / 10)
const text = (x, y, words, { color = grey, anchor = 'middle', weight = 'normal' } = {}) =>
  `<text x="${round(x)}" y="${round(y)}" fill="${color}" text-anchor="${anchor}" font-weight="${weight}">${words}</text>`

function bars(x, base, us, mostUs, color) {
  const height = (us / mostUs) * chart.height
  const at = `x="${round(x)}" y="${round(base - height)}" width="${bar.width}" height="${round(height)}"`
  return [`<rect ${at} fill="${color}"/>`, text(x + bar.width / 2, base - height - 5, us.toFixed(1), { color })]
}

function drawn(name, left, top) {
  const points = costs[name]
  const base = top + chart.head + chart.height
  const mostUs = Math.max(...points.flatMap(({ redisUs, nodeUs }) => [redisUs, nodeUs]))
  const each = chart.width / points.length
  return [
    text(left, top + 14, titles[name], { anchor: 'start', weight: 'bold' }),
    ...points.flatMap(({ at, redisUs, nodeUs, perSecond }, i) => {
      const middle = left + (i + 0.5) * each
      return [
        ...bars(middle - bar.width - bar.between / 2, base, redisUs, mostUs, blue),
        ...bars(middle + bar.between / 2, base, nodeUs, mostUs, orange),
        text(middle, base + 17, short(at), { weight: 'bold' }),
        text(middle, base + 33, `${short(perSecond)}/s`),
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
const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="system-ui, sans-serif" font-size="12" role="img">`
const legend = [
  text(0, 14, 'µs of a job in Redis', { color: blue, anchor: 'start' }),
  text(150, 14, 'µs of a job in Node', { color: orange, anchor: 'start' }),
]
const whole = [svg, '<title>What a job costs as the work grows</title>', ...legend, ...parts, '</svg>']
writeFileSync(join(process.argv[2] ?? join(home, 'docs/images'), 'scale.svg'), `${whole.join('\n')}\n`)
