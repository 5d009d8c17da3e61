/**
 * The fourth part of the demo: an archive of a tree, packed by a process of its own that outlives the worker process which
 * began it; and where that process itself is killed, the next goes on from its checkpoint. `tar` says whether it is right.
 */

import { writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import type { JobHandle } from 'millrace'
import { figure, say, seconds } from './display.js'
import { Gate } from './gate.js'
import { orInterrupted } from './interruption.js'
import { drill, hasEnded, type Losses, type PackRecord } from './pack-drill.js'
import { unpack, verdictOn } from './pack-verdict.js'
import type { Place } from './place.js'
import { type Progress, workShift } from './shift.js'
import { type Packed, pack } from './tasks.js'
import type { Tree } from './tree.js'

/** A cancelled process has ended by then, whatever it does. */
const patienceMs = 20_000

export interface PackFigures {
  readonly verified: true
  readonly files: number
  readonly bytes: number
  readonly archiveBytes: number
  /** Files of the folder that were not taken. */
  readonly leftOut: number
  /** Files that have changed since, of which nothing can be said. */
  readonly changed: number
  /** How many have packed. */
  readonly processes: number
  /** Files that the second of them found packed. */
  readonly from: number
}

/** Throws where the archive is not the tree, or other processes have packed it than should. */
export async function packPart(place: Place, tree: Tree): Promise<PackFigures> {
  const { folder, leftOut } = tree
  const paths = [...tree.checksums.keys()]
  if (paths.length === 0) throw new Error(`there is nothing to pack in ${folder}`)
  say('')
  const rest = leftOut > 0 ? `; ${figure(leftOut)}, large ones or too many, are left out` : ''
  say(
    `${figure(paths.length)} files of ${folder}, ${figure(tree.bytes / 1e6, 1)} MB, into an archive by one job in a process of its own${rest}`,
  )
  const startedAt = performance.now()
  const [archive, list] = [place.path('archive.tar.gz'), place.path('list.json')]
  await writeFile(list, JSON.stringify(paths))
  const gate = await Gate.build(Math.ceil((paths.length * 2) / 3))
  let losses: Losses | undefined
  const job = await orInterrupted(place.mill.enqueue(pack, { folder, list, archive }, { meta: { gate: gate.place } }))
  await workShift([pack.queue], () => progressOf(job, paths.length), {
    meanwhile: async (workers) => {
      losses = await drill(job, gate, workers)
    },
    abandoned: () => abandon(job, gate),
  })
  const record = await orInterrupted(job.record())
  const attempts = attemptsOf(record)
  const unpacked = place.path('unpacked')
  const entries = await orInterrupted(unpack(archive, unpacked))
  const { problems, changed } = await orInterrupted(verdictOn(tree, unpacked, entries))
  const [depth] = await place.depths([pack.queue])
  problems.unshift(...strayAttempts(attempts, losses!), ...endProblems(record, paths.length, depth!.failed))
  if (problems.length > 0) throw new Error(`not verified:\n${problems.map((problem) => `  ${problem}`).join('\n')}`)
  const [first, second] = attempts as [Attempt, Attempt]
  const { bytes: archiveBytes } = record!.result!
  say(
    `verified: tar unpacks each of the files as it was before${changed > 0 ? `, but for ${figure(changed)} that have changed since` : ''}`,
  )
  say(
    `worker process ${losses!.worker} was killed, and process ${first.pid} of the job went on; then that was killed, and process ${second.pid} went on from file ${figure(second.from)}`,
  )
  say(`${figure(archiveBytes / 1e6, 1)} MB; ${seconds(performance.now() - startedAt)} in all`)
  return {
    verified: true,
    files: paths.length,
    bytes: tree.bytes,
    archiveBytes,
    leftOut,
    changed,
    processes: attempts.length,
    from: second.from,
  }
}

/** A process that has packed, as it says itself in the log of the job. */
interface Attempt {
  readonly pid: number
  /** How many files others had packed. */
  readonly from: number
}

function attemptsOf(record: PackRecord | undefined): Attempt[] {
  const lines = (record?.log ?? '').matchAll(/^process (\d+) begins at file (\d+)/gm)
  return [...lines].map(([, pid, from]) => ({ pid: Number(pid), from: Number(from) }))
}

/** One from the start, through the loss of its worker, and one after its own. */
function strayAttempts(attempts: readonly Attempt[], { child, kept }: Losses): string[] {
  const told = ({ pid, from }: Attempt) => `process ${pid} from file ${from} on`
  const [first, second] = attempts
  if (attempts.length === 2 && first!.pid === child && first!.from === 0 && second!.from === kept) return []
  const expected = `process ${child} from the start, and one from file ${kept} on`
  return [`${attempts.map(told).join(', ')} have packed, instead of ${expected}`]
}

/** A killed process is a failure of its job, a killed worker is none. */
function endProblems(record: PackRecord | undefined, files: number, failed: number): string[] {
  if (record?.state === 'completed' && record.result!.files === files && failed === 1) return []
  const { state = 'gone', result } = record ?? {}
  return [
    `the job is ${state}, with ${result?.files ?? 0} of ${files} files, and has failed ${failed} times instead of once`,
  ]
}

async function progressOf(job: JobHandle<Packed>, files: number): Promise<Progress> {
  const record = (await job.record())!
  const { state, pid, attempt, progress, checkpoint } = record
  // A process that has just begun has not told yet what it has found done.
  const kept = (checkpoint as Packed | undefined)?.files ?? 0
  const done = state === 'completed' ? files : Math.max(kept, Math.round((progress?.fraction ?? 0) * files))
  return {
    bars: [{ name: pack.queue, done, of: files, ready: 0 }],
    more: progress === undefined ? state : `${progress.note} by process ${pid}, attempt ${attempt}`,
    isOver: hasEnded(record),
  }
}

/** Its process would go on without the demo. */
async function abandon(job: JobHandle<Packed>, gate: Gate): Promise<void> {
  await job.cancel()
  // Waiting there it would hear of it only when it is time to renew its lease.
  gate.open()
  for (const until = performance.now() + patienceMs; performance.now() < until; await delay(100))
    if ((await job.status()) !== 'running') return
}
