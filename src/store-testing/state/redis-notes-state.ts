/** The notes of jobs in a Redis store, and the part of canonical jobs and remains that comes from them. */

import { readBeat, readFields, readMemory, readResult } from '../../stores/redis/format/redis-job.js'
import { readRecord } from '../../stores/redis/format/redis-record.js'
import { type CanonicalJob, type CanonicalRemains, canonicalPayload } from './canonical-state.js'

type ById = ReadonlyMap<string, Buffer>

export function canonicalContent({ payload, codec, meta, group }: ReturnType<typeof readRecord>) {
  return {
    payload: canonicalPayload(payload),
    codec: codec ?? null,
    meta: meta === undefined ? null : canonicalPayload(meta),
    group: group ?? null,
  }
}

export function canonicalNotes(id: string, notes: ById) {
  const [beat, fields] = [notes.get(`b${id}`), notes.get(`f${id}`)]
  const none = { startedAt: null, host: null, boot: null, pidns: null, pid: null, ticks: null, progress: null }
  return {
    ...none,
    ...(beat === undefined ? {} : readBeat(beat)),
    worker: notes.get(`w${id}`)?.toString() ?? null,
    checkpoint: encoded(notes.get(`k${id}`)),
    log: notes.get(`l${id}`)?.toString() ?? '',
    fields: fields === undefined ? null : readFields(fields),
    error: notes.get(`e${id}`)?.toString() ?? null,
  }
}

/** The remains of a cancelled job. */
export function canonicalRemains(id: string, notes: ById): CanonicalRemains {
  const { updatedAt: _, ...noted } = canonicalNotes(id, notes)
  return { ...canonicalContent(readRecord(notes.get(`p${id}`)!)), ...noted }
}

export function encoded(bytes: Buffer | undefined): CanonicalJob['result'] {
  if (bytes === undefined) return null
  const { payload, codec } = readResult(bytes)
  return { payload: payload === undefined ? null : canonicalPayload(payload), codec: codec ?? null }
}

/** Each note belongs to a job, or to what remains of one. No other job inherits it. */
export function refuseStrayNotes(
  queue: string,
  { jobs, ended, notes }: { readonly jobs: ById; readonly ended: ById; readonly notes: ById },
): void {
  const hasRemains = (id: string) => ended.has(id) && readMemory(ended.get(id)!).hasRemains
  const stray = [...notes.keys()].filter((note) => {
    const [letter, id] = [note[0]!, note.slice(1)]
    return !(letter !== 'p' && jobs.has(id)) && ('rx'.includes(letter) || !hasRemains(id))
  })
  if (stray.length > 0) throw new Error(`notes of no job in queue '${queue}': ${JSON.stringify(stray)}`)
}
