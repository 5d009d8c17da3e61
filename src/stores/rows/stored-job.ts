/** The record of a job, made from its row in a SQL store. */

import type { StoredJob } from '../contract/job-records.js'
import { waitedBeyond } from '../rules/sequence.js'
import { noteBits, stateNames } from './job-row.js'
import { placesIn } from './join-row.js'
import { type Row, valueFromStored } from './stored-text.js'

/** Of a row of `job` or of `remembered`, which names its states. */
export function storedJob(queue: string, row: Row): StoredJob {
  const { result, progress, checkpoint = null, fields } = row
  const state = stateNames[Number(row['state'])] ?? row['state']
  return present({
    queue,
    id: row['id'],
    task: row['task'],
    state,
    // Null: only the id of a job is remembered that had not begun.
    payload: valueFromStored(row['payload'] ?? ''),
    codec: row['codec'],
    meta: valueFromStored(row['meta']),
    priority: 0 - Number(row['rank']),
    group: row['grp'],
    attempt: row['attempt'],
    crashes: row['crashes'],
    suspect: row['suspect'] === 1 ? true : null,
    createdAt: row['created_at'],
    updatedAt: row['updated_at'] ?? row['finished_at'],
    runAt: Math.floor(Number(row['stamp']) / 1_000),
    waitedUntil:
      state === 'ready' || state === 'running'
        ? waitedBeyond(Number(row['stamp']), row['waited_until'] as number | null)
        : null,
    expiresAt: state === 'completed' ? null : row['expires_at'],
    startedAt: row['started_at'],
    finishedAt: row['finished_at'],
    worker: row['worker'],
    host: row['host'],
    boot: row['boot'],
    pidns: row['pidns'],
    pid: row['pid'],
    ticks: row['ticks'],
    progress: progress && JSON.parse(String(progress)),
    fields: fields && JSON.parse(String(fields)),
    checkpoint:
      checkpoint === null ? null : present({ payload: valueFromStored(checkpoint), codec: row['checkpoint_codec'] }),
    log: valueFromStored(row['log']),
    result:
      state !== 'completed' || result === undefined
        ? null
        : present({ payload: valueFromStored(result), codec: row['result_codec'] }),
    error: valueFromStored(row['error']),
    reason: valueFromStored(row['reason']),
    memberOf: row['places'] && placesIn(String(row['places']), String(row['id'])),
    isJoin: Number(row['noted'] ?? 0) & noteBits.join ? true : null,
  }) as unknown as StoredJob
}

/** The fields that are not null: absent means absent. */
export function present(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined))
}
