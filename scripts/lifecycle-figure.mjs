/**
 * The figure of docs/job-lifecycle.md: the states of a job and what leads from one to another.
 * `node scripts/lifecycle-figure.mjs` writes it anew; another folder than docs/images may be given.
 */

import { blue, grey, orange, text, writeFigure } from './figure.mjs'

const [width, height] = [800, 344]
const box = { height: 40, radius: 6 }
const [upper, lower] = [88, 252]

/** Each by its left edge, its upper edge and its width. */
const states = {
  scheduled: [100, upper, 110, blue],
  ready: [336, upper, 114, blue],
  running: [650, upper, 100, blue],
  cancelled: [100, lower, 110, grey],
  dead: [336, lower, 114, orange],
  completed: [650, lower, 100, grey],
}

/** A name stands beside its arrow: where, its text, and which of its ends is there. */
const arrows = [
  { path: 'M 190 52 V 87', from: [190, 48], label: [200, 56, 'enqueue with delay or runAt', 'start'] },
  { path: 'M 420 52 V 87', from: [420, 48], label: [430, 56, 'enqueue', 'start'] },
  { path: 'M 210 108 H 335', label: [273, 100, 'due · run-now'] },
  { path: 'M 450 100 H 649', label: [550, 92, 'claim'] },
  { path: 'M 650 118 H 451', label: [550, 134, 'release · crash'] },
  { path: 'M 700 88 V 24 H 125 V 87', label: [412, 16, 'retry (counted) · snooze · unknown task'] },
  { path: 'M 155 142 V 251', label: [165, 200, 'cancel · expired', 'start'] },
  { path: 'M 352 142 V 251', label: [342, 200, 'bury', 'end'] },
  { path: 'M 388 252 V 129', label: [396, 170, 'revive', 'start'] },
  { path: 'M 668 128 V 196 H 434 V 251', label: [658, 188, 'no attempts left · bury', 'end'] },
  { label: [658, 214, 'unrecoverable · crashed too often', 'end'] },
  { path: 'M 712 128 V 251', label: [722, 200, 'complete', 'start'] },
  { path: 'M 750 108 H 790 V 338 H 155 V 293', label: [450, 330, 'cancel'] },
  { path: 'M 450 272 H 473', to: [480, 272], label: [492, 276, 'delete · retention.dead', 'start'] },
  { path: 'M 700 292 V 303', to: [700, 310], label: [686, 314, 'result expires, or none was kept', 'end'] },
  { path: 'M 100 272 H 77', to: [70, 272] },
]

const drawnState = ([name, [x, y, wide, color]]) => [
  `<rect x="${x}" y="${y}" width="${wide}" height="${box.height}" rx="${box.radius}" fill="none" stroke="${color}" stroke-width="2"/>`,
  text(x + wide / 2, y + 25, name, { color, anchor: 'middle', size: 14, bold: true }),
]

const drawnArrow = ({ path, from, to, label }) => [
  ...(path === undefined ? [] : [`<path d="${path}" fill="none" stroke="${grey}" marker-end="url(#tip)"/>`]),
  ...(from === undefined ? [] : [`<circle cx="${from[0]}" cy="${from[1]}" r="4"/>`]),
  ...(to === undefined
    ? []
    : [
        `<circle cx="${to[0]}" cy="${to[1]}" r="6" fill="none" stroke="${grey}"/>`,
        `<circle cx="${to[0]}" cy="${to[1]}" r="3"/>`,
      ]),
  ...(label === undefined ? [] : [text(label[0], label[1], label[2], { anchor: label[3] ?? 'middle' })]),
]

const tip = `<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M 0 0 L 8 4 L 0 8 z"/></marker>`
writeFigure('job-lifecycle.svg', 'The states of a job', { width, height }, [
  `<defs>${tip}</defs>`,
  // What waits is cancelled and buried in the same ways, be it due or not.
  `<rect x="88" y="76" width="374" height="66" rx="10" fill="none" stroke="${grey}" stroke-dasharray="4 4"/>`,
  ...Object.entries(states).flatMap(drawnState),
  ...arrows.flatMap(drawnArrow),
])
