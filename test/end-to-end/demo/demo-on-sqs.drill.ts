import { describe, expect, it } from 'vitest'
import { commitIn, folderOf, ranDemo } from './demo-folder.js'

describe('the demo on SQS', { timeout: 120_000 }, () => {
  it('computes one right checksum per file and follows each file in order, on an emulator that it starts', async () => {
    const { folder, home } = folderOf(200)
    commitIn(folder, 20, 10)
    const { code, stdout, summary } = await ranDemo(folder, { MILLRACE_STORE: 'sqs://eu-central-1', TMPDIR: home })
    expect(code).toBe(0)
    expect(summary).toEqual({
      verified: true,
      jobs: 200,
      perSecond: expect.any(Number),
      shares: { high: expect.any(Number), default: expect.any(Number), low: expect.any(Number) },
      retries: 2,
      ordered: {
        ...{ verified: true, ids: 20, payloads: 200, merged: 0, runs: expect.any(Number), failed: expect.any(Number) },
        ...{ grown: expect.any(Number), most: expect.any(Number), again: 0 },
      },
    })
    expect(stdout).toMatch(/verified: each change was applied once and in order/)
    expect(stdout).toMatch(/crawl and archive are left out/)
  })
})
