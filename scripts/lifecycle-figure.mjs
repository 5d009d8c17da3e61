/**
 * The figure of docs/job-lifecycle.md: the states of a job and what leads from one to another.
 * `node scripts/lifecycle-figure.mjs` writes it anew; another folder than docs/images may be given.
 */

import { blue, grey, orange, text, writeFigure } from './figure.mjs'

const [width, height] = [800, 414]
const box = { height: 40, radius: 6 }
/** A job that waits for others is above all; the rest begins below it. */
const below = 70
const [upper, lower] = [88 + below, 252 + below]

/** Each by its left edge, its upper edge and its width. */
const states = {
  waiting: [336, 20, 114, blue],
  scheduled: [100, upper, 110, blue],
  ready: [336, upper, 114, blue],
  running: [650, upper, 100, blue],
  cancelled: [100, lower, 110, grey],
  dead: [336, lower, 114, orange],
  completed: [650, lower, 100, grey],
}

/** A name stands beside its arrow: where, its text, and which of its ends is there. */
const arrows = [
  { path: 'M 536 40 H 451', from: [540, 40], label: [552, 44, 'enqueue with after', 'start'] },
  { path: 'M 370 60 V 157', label: [362, 130, 'all have ended', 'end'] },
  { path: 'M 336 40 H 30 V 388 H 393 V 363', label: [186, 32, 'one did not complete · late'] },
  { path: 'M 190 122 V 157', from: [190, 118], label: [200, 126, 'enqueue with delay or runAt', 'start'] },
  { path: 'M 420 122 V 157', from: [420, 118], label: [430, 126, 'enqueue', 'start'] },
  { path: 'M 210 178 H 335', label: [273, 170, 'due · run-now'] },
  { path: 'M 450 170 H 649', label: [550, 162, 'claim'] },
  { path: 'M 650 188 H 451', label: [550, 204, 'release · crash'] },
  { path: 'M 700 158 V 94 H 125 V 157', label: [412, 86, 'retry (counted) · snooze · unknown task'] },
  { path: 'M 155 212 V 321', label: [165, 270, 'cancel · expired', 'start'] },
  { path: 'M 352 212 V 321', label: [342, 270, 'bury', 'end'] },
  { path: 'M 388 322 V 199', label: [396, 240, 'revive', 'start'] },
  { path: 'M 668 198 V 266 H 434 V 321', label: [658, 258, 'no attempts left · bury', 'end'] },
  { label: [658, 284, 'unrecoverable · crashed too often', 'end'] },
  { path: 'M 712 198 V 321', label: [722, 270, 'complete', 'start'] },
  { path: 'M 750 178 H 790 V 408 H 155 V 363', label: [450, 400, 'cancel'] },
  { path: 'M 450 342 H 473', to: [480, 342], label: [492, 346, 'delete · retention.dead', 'start'] },
  { path: 'M 700 362 V 373', to: [700, 380], label: [686, 384, 'result expires, or none was kept', 'end'] },
  { path: 'M 100 342 H 77', to: [70, 342] },
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
  `<rect x="88" y="${upper - 12}" width="374" height="66" rx="10" fill="none" stroke="${grey}" stroke-dasharray="4 4"/>`,
  ...Object.entries(states).flatMap(drawnState),
  ...arrows.flatMap(drawnArrow),
])
