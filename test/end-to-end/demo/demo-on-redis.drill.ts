import { startRedis } from 'millrace/store-testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { folderOf, ranDemo } from './demo-folder.js'

describe('the demo', { timeout: 120_000 }, () => {
  it('works completely on Redis too, after another demo, and removes its jobs', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const { folder, home } = folderOf(100)
    const jobsLeft = async () => (await redis.ask('KEYS', '*:jobs')) as string[]
    for (const flags of [['--keep'], []]) {
      const { code, stderr, summary } = await ranDemo(folder, { MILLRACE_STORE: redis.url, TMPDIR: home }, flags)
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      expect(summary).toMatchObject({
        verified: true,
        jobs: 100,
        retries: 1,
        ordered: { verified: true },
        packed: { files: 100 },
      })
      expect(await jobsLeft()).toHaveLength(flags.length === 0 ? 0 : 4)
    }
  })
})
