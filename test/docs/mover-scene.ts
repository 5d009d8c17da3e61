/** The scene of a mover: a database in which another queue has jobs, a project with the mover of its page, and a mill that looks. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Logger, makeWorkerUtils } from 'graphile-worker'
import { type JobRecord, type Mill, millrace } from 'millrace'
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { expect, onTestFinished } from 'vitest'
import { postgresDatabase } from '../worker-postgres.js'
import { Document } from './document.js'
import { execute, folderOf } from './documented-project.js'

/** A project with the programs of this page, on a database of its own. */
export async function pageOn(name: string) {
  const page = new Document(`docs/coming-from/${name}.md`)
  const url = await postgresDatabase()
  const cwd = folderOf(page)
  const run = (file: string) => {
    const { status, signal, stdout, stderr } = execute(file, cwd, { DATABASE_URL: url })
    return { status: signal ?? status, stdout: stdout.trim().split('\n'), stderr }
  }
  const db = new pg.Client(url)
  await db.connect()
  onTestFinished(() => db.end())
  return { page, url, db, cwd, run, mover: `move-from-${name}.mjs` }
}

/** The mover with some of its text changed, as a file beside it. */
export function changed(page: Document, cwd: string, mover: string, changes: Readonly<Record<string, string>>): string {
  let { text } = page.blocks.find(({ file }) => file === mover)!
  for (const [was, is] of Object.entries(changes)) {
    expect(text).toContain(was)
    text = text.replaceAll(was, is)
  }
  const name = `changed-${mover}`
  writeFileSync(join(cwd, name), text)
  return name
}

/** A mill that looks, and does not work. */
export function lookingAt(url: string): Mill {
  const mill = millrace({ store: url, queues: { mails: {} } })
  onTestFinished(() => mill.close())
  return mill
}

/** In the order in which they run. */
export async function jobsOf(mill: Mill, queue: string): Promise<JobRecord[]> {
  const found: JobRecord[] = []
  for (let page: { cursor?: string } = {}; ; ) {
    const { jobs, cursor } = await mill.queue(queue).jobs.list({ ...page, by: 'time', limit: 200 })
    found.push(...jobs)
    if (cursor === undefined) return found
    page = { cursor }
  }
}

/** What a mover dies by, where a statement of it stood. */
export const dies = `process.kill(process.pid, 'SIGKILL')`

/** The queue that the mover takes from, with its tables in the database. */
export async function pgBossOn(url: string): Promise<PgBoss> {
  const boss = new PgBoss({ connectionString: url, schedule: false, supervise: false })
  boss.on('error', () => {})
  await boss.start()
  onTestFinished(() => boss.stop({ graceful: false }))
  await boss.createQueue('welcome', { retryLimit: 2 })
  return boss
}

/** The same of the other mover. */
export async function graphileOn(url: string) {
  const utils = await makeWorkerUtils({ connectionString: url, logger: new Logger(() => () => {}) })
  onTestFinished(() => utils.release())
  await utils.migrate()
  return utils
}
