import { startRedis } from 'millrace/store-testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CommandProcess } from '../cli/command-process.js'
import { root } from '../cli/project.js'
import { demo, folderOf, script } from '../end-to-end/demo-folder.js'

describe('the demo', { timeout: 120_000 }, () => {
  it('does all that it does on Redis too, after another demo, and removes its jobs', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const { folder, home } = folderOf(100)
    const jobsLeft = async () => (await redis.ask('KEYS', '*:jobs')) as string[]
    for (const flags of [['--keep'], []]) {
      const { code, stdout, stderr } = await new CommandProcess([demo, folder, '--json', ...flags], {
        cwd: root,
        script,
        env: { MILLRACE_STORE: redis.url, TMPDIR: home },
      }).ended
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      const [summary] = stdout.split('\n').filter((line) => line.startsWith('{'))
      expect(JSON.parse(summary!)).toMatchObject({
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
