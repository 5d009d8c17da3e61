/**
 * The plots of docs/throttling.md, drawn from the simulation that `millrace simulate throttle` draws from.
 * `npm run build && node scripts/throttle-plots.mjs` writes them anew; another folder than docs/images may be given.
 */

import { mostWithin, seededRandom, simulated } from '#src/cli/commands/throttle-simulation.js'
import { blue, grey, orange, round, text, writeFigure } from './figure.mjs'

const second = 1_000
const minute = 60 * second
const frame = { left: 46, right: 20, width: 720 }
const inside = frame.width - frame.left - frame.right

const rule = (limit, windowMs, more = {}) => ({ limit, windowMs, moderate: false, ...more })
const starts = (given, forMs, more = {}) =>
  simulated({ rules: [given], forMs, arrivals: {}, random: seededRandom(1), ...more }).starts

/** When a limit in each minute of the clock would start so many jobs that came together. */
function fixedWindowStarts({ limit, windowMs }, cameAt, jobs) {
  const opensAt = (i) => (i === 0 ? cameAt : (Math.floor(cameAt / windowMs) + i) * windowMs)
  return Array.from({ length: jobs }, (_, n) => opensAt(Math.floor(n / limit)))
}

/** Steps of how many have started so far. */
const sums = (instants) => instants.map((at, i) => [at, i + 1])

/** Steps of how many have started in the closed window that ends at each moment. */
function inLast(instants, windowMs) {
  const moments = [...new Set(instants.flatMap((at) => [at, at + windowMs + 1]))].sort((a, b) => a - b)
  return moments.map((now) => [now, instants.filter((at) => at <= now && at >= now - windowMs).length])
}

const clock = (ms) => (ms === 0 ? '0' : `${ms / minute}m`)
const line = (x1, y1, x2, y2, more = '') =>
  `<line x1="${round(x1)}" y1="${round(y1)}" x2="${round(x2)}" y2="${round(y2)}" stroke="${grey}"${more}/>`

/** Writes charts below each other, over the same time. */
function writeCharts(name, title, { forMs, tickMs }, charts) {
  const x = (at) => frame.left + (at / forMs) * inside
  let top = 10
  const parts = charts.flatMap(({ height, draw, title: chartTitle }) => {
    const base = top + 22 + height
    const drawn = [text(frame.left, top + 12, chartTitle, { bold: true }), ...draw({ x, base, height })]
    for (let at = 0; at <= forMs; at += tickMs)
      drawn.push(line(x(at), base, x(at), base + 4), text(x(at), base + 17, clock(at), { anchor: 'middle' }))
    drawn.push(line(frame.left, base, frame.width - frame.right, base))
    top = base + 30
    return drawn
  })
  writeFigure(`throttle-${name}.svg`, title, { width: frame.width, height: top }, parts)
}

/** Lines that go up and down in steps, with their names, and a limit where there is one. */
function steps(title, height, top, series, { limit, namesAt = 0.01 } = {}) {
  const draw = ({ x, base }) => {
    const y = (n) => base - (n / top) * height
    const lines = series.map(({ points, color, straight = false }) => {
      const path = points.map(([at, n], i) =>
        i === 0
          ? `M${round(x(at))} ${round(y(n))}`
          : straight
            ? `L${round(x(at))} ${round(y(n))}`
            : `H${round(x(at))}V${round(y(n))}`,
      )
      return `<path d="${path.join('')}${straight ? '' : `H${frame.width - frame.right}`}" fill="none" stroke="${color}" stroke-width="2"/>`
    })
    const names = series.map(({ name, color }, i) =>
      text(frame.left + namesAt * inside, base - height + 14 + i * 16, name, { color }),
    )
    return [
      text(frame.left - 6, y(top) + 4, top, { anchor: 'end' }),
      text(frame.left - 6, base + 4, 0, { anchor: 'end' }),
      ...(limit === undefined
        ? []
        : [
            line(frame.left, y(limit), frame.width - frame.right, y(limit), ' stroke-dasharray="4 4"'),
            text(frame.left - 6, y(limit) + 4, limit, { anchor: 'end' }),
          ]),
      ...lines,
      ...names,
    ]
  }
  return { title, height, draw }
}

/** A dot for each start, those of one moment above each other: lines of no length with round ends. */
function dots(title, height, instants, color) {
  const draw = ({ x, base }) => {
    const seen = new Map()
    const path = instants.map((at) => {
      const below = seen.get(at) ?? 0
      seen.set(at, below + 1)
      return `M${round(x(at))} ${round(base - 6 - below * 7)}h0`
    })
    return [`<path d="${path.join('')}" stroke="${color}" stroke-width="6" stroke-linecap="round"/>`]
  }
  return { title, height, draw }
}

function rollingWindow() {
  const forMs = 3 * minute
  const [ten, jobs, cameAt] = [rule(10, minute), 20, 50 * second]
  const fixed = fixedWindowStarts(ten, cameAt, jobs)
  const rolling = starts(ten, forMs - cameAt, { arrivals: { burst: jobs } }).map((at) => at + cameAt)
  const counted = (name, color, instants) => ({
    name: `${name}: at most ${mostWithin(instants, minute)} in 60 s`,
    color,
    points: [[0, 0], ...inLast(instants, minute)].filter(([at]) => at <= forMs),
  })
  writeCharts(
    'rolling-window',
    'A fixed and a rolling window, and 20 jobs that came together',
    { forMs, tickMs: minute },
    [
      dots('Fixed window: 10 in each minute of the clock', 72, fixed, orange),
      dots('Rolling window: 10 in any 60 s', 72, rolling, blue),
      steps('Started in the last 60 s', 110, 20, [counted('fixed', orange, fixed), counted('rolling', blue, rolling)], {
        limit: 10,
        namesAt: 0.64,
      }),
    ],
  )
}

function moderate() {
  const forMs = 3 * minute
  const burst = { arrivals: { burst: 30 } }
  const plain = starts(rule(10, minute), forMs, burst)
  const even = starts(rule(10, minute, { moderate: true }), forMs, burst)
  writeCharts('moderate', 'With moderate and without', { forMs, tickMs: minute }, [
    dots('10 in 60 s', 72, plain, orange),
    dots('10 in 60 s, moderate: one each 6 s', 12, even, blue),
    steps('Started in all, of 30 jobs that came at once', 110, 30, [
      { name: 'plain', color: orange, points: sums(plain) },
      { name: 'moderate', color: blue, points: sums(even) },
    ]),
  ])
}

function elastic() {
  const forMs = 10 * minute
  const polls = { least: 0, most: 3 }
  const even = starts(rule(33, minute, { moderate: true }), forMs, { polls })
  const caughtUp = starts(rule(33, minute, { moderate: true, elasticBuffer: 0 }), forMs, { polls })
  writeCharts('elastic', 'With elastic and without', { forMs, tickMs: minute }, [
    steps('33 in 60 s, moderate, asked every 0 to 3 spacings: started in all', 190, 330, [
      {
        name: '33 a minute',
        color: grey,
        straight: true,
        points: [
          [0, 0],
          [forMs, 330],
        ],
      },
      {
        name: `elastic: ${caughtUp.length}, at most ${mostWithin(caughtUp, minute)} in 60 s`,
        color: blue,
        points: sums(caughtUp),
      },
      {
        name: `not elastic: ${even.length}, at most ${mostWithin(even, minute)} in 60 s`,
        color: orange,
        points: sums(even),
      },
    ]),
  ])
}

function twoGroups() {
  const forMs = 3 * minute
  const even = rule(10, minute, { moderate: true })
  const busy = starts(even, forMs, { arrivals: { burst: 200 } })
  const calm = starts(even, forMs, { arrivals: { rate: { jobs: 4, ms: minute } } })
  writeCharts('two-groups', 'Two groups', { forMs, tickMs: minute }, [
    dots('busy.example: 200 jobs wait, one starts each 6 s', 12, busy, orange),
    dots('calm.example: about 4 jobs a minute, each starts as it comes', 12, calm, blue),
    steps('Started in all', 100, 40, [
      { name: 'busy.example', color: orange, points: sums(busy) },
      { name: 'calm.example', color: blue, points: [[0, 0], ...sums(calm)] },
    ]),
  ])
}

for (const plot of [rollingWindow, moderate, elastic, twoGroups]) plot()
