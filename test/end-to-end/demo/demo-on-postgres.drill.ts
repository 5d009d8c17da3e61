import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { postgresDatabase } from '../../worker-postgres.js'
import { folderOf, ranDemo } from './demo-folder.js'

describe('the demo', { timeout: 240_000 }, () => {
  it('works completely on Postgres too, after another demo, and removes its jobs', async () => {
    const url = await postgresDatabase()
    const db = new pg.Client(url)
    await db.connect()
    onTestFinished(() => db.end())
    const { folder, home } = folderOf(100)
    for (const flags of [['--keep'], []]) {
      const { code, stderr, summary } = await ranDemo(folder, { MILLRACE_STORE: url, TMPDIR: home }, flags)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(summary).toMatchObject({
        verified: true,
        jobs: 100,
        retries: 1,
        ordered: { verified: true },
        packed: { files: 100 },
      })
      const { rows } = await db.query('SELECT count(*)::int AS left FROM "millrace-demo".job')
      expect(rows[0].left === 0).toBe(flags.length === 0)
    }
  })
})
