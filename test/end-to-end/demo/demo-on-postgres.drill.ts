import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { postgresDatabase } from '../../worker-postgres.js'
import { folderOf, ranDemo } from './demo-folder.js'

describe('the demo', { timeout: 480_000 }, () => {
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
      // Ids that were given are remembered for some minutes.
      const kept = 'SELECT id FROM "millrace-demo".ended WHERE result IS NOT NULL'
      const { rows } = await db.query(`SELECT id FROM "millrace-demo".job UNION ALL ${kept}`)
      expect(rows.length === 0).toBe(flags.length === 0)
    }
  })
})
