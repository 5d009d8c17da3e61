/**
 * The layout of a graph of joins: jobs and sets of members as boxes in columns, those that are waited for left of those
 * that wait. Pure. Lengths are in sixteenths of the size of the page's text.
 */

import type { GraphJob, GraphSet, JobState, JoinGraph } from '../../api/answers.js'

/**
 * A job, or a set of many: `rows`, a line for each member; `tiles`, a small square for each; `counts`, only how many of
 * them have ended, and how.
 */
export interface GraphBox {
  readonly kind: 'job' | 'rows' | 'tiles' | 'counts'
  /** The jobs in it, by their places. */
  readonly jobs: readonly number[]
  /** The set whose members they are; absent for a single job. */
  readonly set?: GraphSet
  /** The jobs that wait for it, by their places. */
  readonly before: readonly number[]
  readonly column: number
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** A line from a box to one that waits for it, by their places. */
export interface GraphLine {
  readonly from: number
  readonly to: number
  /** Whether the second still waits for the first. */
  readonly isOpen: boolean
  /** Between the boxes of the columns on its way it is straight, from one x to the next; the rest are curves. */
  readonly way: readonly { readonly fromX: number; readonly toX: number; readonly y: number }[]
}

export interface GraphLayout {
  /** Column by column, each from top to bottom. */
  readonly boxes: readonly GraphBox[]
  readonly lines: readonly GraphLine[]
  readonly width: number
  readonly height: number
}

/** A set with more members is drawn as tiles. */
const mostRows = 6
const [narrow, wide] = [224, 404]
const [rowHeight, tileSize, tilesInRow] = [26, 27, 14]
const [columnGap, boxGap] = [72, 14]
/** The room of a line that passes through a column. */
const passHeight = 2
/** How often the columns are put in order again. */
const sweeps = 4

interface Unit {
  readonly jobs: number[]
  readonly set?: GraphSet
  readonly before: Set<Unit>
  readonly after: Set<Unit>
  /** Those that still wait for it. */
  readonly open: Set<Unit>
  /** Where its lines pass through the next columns. */
  readonly passes: Unit[]
  readonly isPass: boolean
  column: number
}

export function layoutOf(graph: JoinGraph): GraphLayout {
  const units = unitsOf(graph)
  setColumns(units)
  const columns = orderedColumns([...units, ...passesOf(units)])
  const sizes = columns.map((column) => column.map((unit) => ({ unit, ...sizeOf(unit, graph) })))
  const heights = sizes.map((column) => column.reduce((sum, { height }) => sum + height + boxGap, -boxGap))
  const height = Math.max(0, ...heights)
  const boxes: GraphBox[] = []
  const places = new Map<Unit, number>()
  const ways = new Map<Unit, GraphLine['way'][number]>()
  let left = 0
  for (const [column, some] of sizes.entries()) {
    const right = left + Math.max(0, ...some.map(({ width }) => width))
    let y = (height - heights[column]!) / 2
    for (const { unit, kind, ...size } of some) {
      // On the right: lines leave it without passing behind a wider one.
      const x = right - size.width
      const isPass = unit.isPass
      ways.set(unit, { fromX: left, toX: isPass ? right : x, y: y + size.height / 2 })
      if (!isPass) {
        const before = [...unit.before].map(({ jobs }) => jobs[0]!)
        places.set(unit, boxes.length)
        boxes.push({ kind, jobs: unit.jobs, ...(unit.set && { set: unit.set }), before, column, x, y, ...size })
      }
      y += size.height + boxGap
    }
    left = right + columnGap
  }
  const lines = units.flatMap((unit) =>
    [...unit.before].map((to) => ({
      from: places.get(unit)!,
      to: places.get(to)!,
      isOpen: unit.open.has(to),
      way: [...unit.passes.filter(({ column }) => column < to.column), to].map((one) => ways.get(one)!),
    })),
  )
  return { boxes, lines, width: Math.max(0, left - columnGap), height }
}

function newUnit(jobs: number[], set?: GraphSet, column = 0, isPass = false): Unit {
  const none = () => new Set<Unit>()
  return { jobs, ...(set && { set }), before: none(), after: none(), open: none(), passes: [], isPass, column }
}

/** Sets with the same members are one unit; a job that is in none is one by itself. */
function unitsOf({ jobs, sets }: JoinGraph): Unit[] {
  const units: Unit[] = []
  const made = (of: number[], set?: GraphSet): Unit => {
    const unit = newUnit(of, set)
    units.push(unit)
    return unit
  }
  const ofSet = new Map<string, Unit>()
  const ofJob = new Map<number, Unit>()
  // A set may be the beginning of another one.
  const bySize = [...sets].sort((a, b) => b.members.length - a.members.length)
  for (const set of bySize) {
    const key = keyOf(set)
    if (!set.isMany || set.added === 0 || ofSet.has(key)) continue
    const unit = made([...set.members], set)
    ofSet.set(key, unit)
    for (const place of set.members) ofJob.set(place, unit)
  }
  for (const place of jobs.keys()) if (!ofJob.has(place)) ofJob.set(place, made([place]))
  for (const set of sets) {
    const from = set.isMany ? ofSet.get(keyOf(set)) : ofJob.get(set.members[0] ?? -1)
    const to = ofJob.get(set.join)!
    if (from === undefined || from === to) continue
    from.before.add(to)
    to.after.add(from)
    if (set.done < (set.size ?? set.added + 1)) from.open.add(to)
  }
  return units
}

function keyOf({ queue, ids }: GraphSet): string {
  return `${queue}/${ids}`
}

/** As many columns as the longest way has steps; what waits for nothing stands right before whom it is for. */
function setColumns(units: readonly Unit[]): void {
  // A store that is damaged might say that jobs wait for each other: the rounds are bounded.
  for (let round = 0, isChanged = true; isChanged && round < units.length; round += 1) {
    isChanged = false
    for (const unit of units) {
      const column = Math.max(0, ...[...unit.after].map((one) => one.column + 1))
      if (column <= unit.column || column >= units.length) continue
      unit.column = column
      isChanged = true
    }
  }
  for (const unit of units)
    if (unit.after.size === 0 && unit.before.size > 0)
      unit.column = Math.max(0, Math.min(...[...unit.before].map(({ column }) => column)) - 1)
}

/** Room for lines that are longer than one column, so that they pass no box: those of one box keep together. */
function passesOf(units: readonly Unit[]): Unit[] {
  return units.flatMap((unit) => {
    const furthest = Math.max(unit.column, ...[...unit.before].map(({ column }) => column))
    let last = unit
    for (let column = unit.column + 1; column < furthest; column += 1) {
      const pass = newUnit([], undefined, column, true)
      pass.after.add(last)
      if (last.isPass) last.before.add(pass)
      unit.passes.push(pass)
      last = pass
    }
    for (const to of unit.before) unit.passes[to.column - unit.column - 2]?.before.add(to)
    return unit.passes
  })
}

/** The units of each column, so that few lines cross: each as near as it may be to the middle of its neighbours. */
function orderedColumns(units: readonly Unit[]): Unit[][] {
  const last = Math.max(0, ...units.map(({ column }) => column))
  const columns = Array.from({ length: last + 1 }, (_, column) => units.filter((unit) => unit.column === column))
  const place = new Map<Unit, number>()
  const number = (column: readonly Unit[]) => {
    // Relative: a column of one is in the middle of a column of many.
    for (const [i, unit] of column.entries()) place.set(unit, (i + 0.5) / column.length)
  }
  columns.forEach(number)
  for (let sweep = 0; sweep < sweeps; sweep += 1) {
    const isBack = sweep % 2 === 0
    for (const column of isBack ? columns.toReversed() : columns) {
      const middle = new Map(column.map((unit) => [unit, middleOf(unit, isBack ? unit.before : unit.after, place)]))
      column.sort((a, b) => middle.get(a)! - middle.get(b)!)
      number(column)
    }
  }
  return columns.filter((column) => column.length > 0)
}

function middleOf(unit: Unit, neighbours: ReadonlySet<Unit>, place: ReadonlyMap<Unit, number>): number {
  if (neighbours.size === 0) return place.get(unit)!
  return [...neighbours].reduce((sum, one) => sum + place.get(one)!, 0) / neighbours.size
}

function sizeOf({ jobs, set, isPass }: Unit, graph: JoinGraph): Pick<GraphBox, 'kind' | 'width' | 'height'> {
  if (isPass) return { kind: 'job', width: 0, height: passHeight }
  if (set === undefined) return { kind: 'job', width: narrow, height: 62 }
  if (set.isCounted) {
    const kinds = Object.values(countsOf(set)).filter((count) => count > 0).length
    return { kind: 'counts', width: narrow, height: 46 + 20 * kinds + rowHeight * jobs.length }
  }
  if (jobs.length <= mostRows) return { kind: 'rows', width: narrow, height: 38 + rowHeight * jobs.length }
  const states = new Set(jobs.map((place) => graph.jobs[place]!.state)).size
  const height = 40 + 22 * Math.ceil(states / 3) + tileSize * Math.ceil(jobs.length / tilesInRow)
  return { kind: 'tiles', width: wide, height }
}

/** How many jobs there are of a state; `ended`: nobody knows how. */
export type StateCounts = Partial<Record<JobState | 'expired' | 'ended' | 'not ended', number>>

/** The members of a set that is given by its counts. */
export function countsOf({ counts, size, added }: GraphSet): StateCounts {
  const { completed, dead, cancelled, expired } = counts
  const left = Math.max(0, (size ?? added) - completed - dead - cancelled - expired)
  return { 'not ended': left, completed, dead, cancelled, expired }
}

export function statesOf(jobs: readonly GraphJob[]): StateCounts {
  const counts: StateCounts = {}
  for (const job of jobs) add(counts, { [stateWord(job)]: 1 })
  return counts
}

export function stateWord({ state, hasExpired }: GraphJob): keyof StateCounts {
  return hasExpired ? 'expired' : (state ?? 'ended')
}

function add(counts: StateCounts, more: StateCounts): void {
  for (const [state, count] of Object.entries(more) as [keyof StateCounts, number][])
    if (count > 0) counts[state] = (counts[state] ?? 0) + count
}

/** The jobs of the graph by task and state, with those of sets that are given by their counts. */
export function countsByTask({ jobs, sets }: JoinGraph): readonly (readonly [task: string | undefined, StateCounts])[] {
  const byTask = new Map<string | undefined, StateCounts>()
  const of = (task: string | undefined) => {
    const counts = byTask.get(task) ?? {}
    byTask.set(task, counts)
    return counts
  }
  const counted = new Map(sets.filter(({ isCounted, isMany }) => isCounted && isMany).map((set) => [keyOf(set), set]))
  const inCounts = new Set([...counted.values()].flatMap(({ members }) => members))
  for (const [place, job] of jobs.entries()) if (!inCounts.has(place)) add(of(job.task), statesOf([job]))
  for (const set of counted.values()) add(of(set.task), countsOf(set))
  return [...byTask]
}
